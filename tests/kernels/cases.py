"""NumPy references of the kernels here."""

import math

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def cases():
    p, q = normal((192, 960), 1), normal((192, 960), 2)
    yield dict(
        name="midpoint", file="midpoint.py", args=dict(p=p, q=q, weight=0.25), expect=dict(out=(p - q) * np.float32(0.25) + q),
        rtol=0, atol=0
    )

    x = normal((128, 512), 1)
    yield dict(name="regions", file="regions.py", args=dict(x=x), expect=dict(out=2 * x), rtol=0, atol=0)

    x = normal((10, 112, 384), 3)
    for kernel in ("side_by_side", "tile_of_its_own", "tile_in_common", "tiles_in_a_list", "assigned"):
        yield dict(name=f"panels-{kernel}", file="panels.py", kernel=kernel, args=dict(x=x), expect=dict(out=2 * x[::-1]), rtol=0, atol=0)

    for shape in ((200, 700), (97, 257), (96, 256), (1, 1)):
        x = normal(shape, 4)
        yield dict(name=f"ragged-{shape[0]}x{shape[1]}", file="ragged.py", args=dict(x=x), expect=dict(out=-x), rtol=0, atol=0)

    pages = normal((5 * 80, 300), 5)
    for number in (0, 3):
        yield dict(
            name=f"page-by-number-{number}",
            file="lookups.py",
            kernel="page_by_number",
            args=dict(pages=pages, number=np.array([[number]], np.int32)),
            expect=dict(out=pages[number * 80:number * 80 + 80, 150:]),
            rtol=0,
            atol=0,
        )
    x = normal((120, 200), 6, bfloat16)
    yield dict(
        name="every-third-row-upwards",
        file="lookups.py",
        kernel="every_third_row_upwards",
        args=dict(x=x),
        expect=dict(out=x[117::-3]),
        rtol=0,
        atol=0,
    )

    x = normal((128, 64), 7)
    yield dict(
        name="dynamic-loop-static-bounds", file="loops.py", kernel="static_bounds", args=dict(x=x), expect=dict(out=x + 10)
    )
    for bound, trips in ((12, 4), (5, 0), (6, 1)):
        yield dict(
            name=f"dynamic-loop-register-bounds-{bound}",
            file="loops.py",
            kernel="register_bounds",
            args=dict(x=x, bound=np.array([[bound]], dtype=np.int32)),
            expect=dict(out=x + trips),
        )
    yield dict(name="register-while", file="loops.py", kernel="register_while", args=dict(x=x), expect=dict(out=x * 32))
    x3 = normal((6, 128, 64), 8)
    yield dict(
        name="fori-loop", file="loops.py", kernel="loop_functions", args=dict(x=x3), expect=dict(out=x3), rtol=0, atol=0
    )

    x = normal((6, 64, 14_000), 30)
    combined = np.stack([x[0] + x[1] + x[2], x[1], x[2], x[3] * x[4] * x[5], x[4], x[5]])
    yield dict(name="tiles-above-each-other", file="halves.py", args=dict(x=x), expect=dict(out=combined), rtol=0, atol=0)

    x = normal((8, 128, 256), 9, bfloat16)
    yield dict(name="modular-allocation", file="allocation.py", args=dict(x=x), expect=dict(out=x), rtol=0, atol=0)

    x = normal((200, 96), 10)
    want = x
    for _ in range(3):
        want = want * np.float32(3.0) + np.float32(-1.5)
    yield dict(
        name="metaprogram", file="language.py", args=dict(x=x, amounts=(3.0, -1.5), repeat=3), expect=dict(out=want)
    )

    x, w, y = normal((128, 64), 20), normal((128, 64), 21), normal((128, 64), 22)
    e = np.exp(x - x.max(1, keepdims=True))
    yield dict(
        name="nl-operations",
        file="nl_operations.py",
        kernel="nl_operations",
        args=dict(x=x, w=w, y=y),
        expect=dict(
            softmax=e / e.sum(1, keepdims=True),
            norm=x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w,
            floor=np.floor(x),
            ceil=np.ceil(x),
            trunc=np.trunc(x),
            variance=x.var(1, keepdims=True),
            mean=x.mean(1, keepdims=True),
            chosen=np.where(x > y, x, np.float32(0.5)),
            product=x.T @ y,
            turned=x @ y.T,
            difference=1 - x,
            root=1 / np.sqrt(abs(x)),
            row=x + w[0:1],
            column=np.minimum(x, y[:, 0:1]),
            cosine=np.cos(x),
            identity=np.eye(128, dtype=np.float32),
            zeros=np.zeros((300, 70), np.float32),
        ),
        atol=1e-4,
    )
    column = y[:, :1] > 0
    yield dict(
        name="nl-choices",
        file="nl_operations.py",
        kernel="nl_choices",
        args=dict(x=x, y=y),
        expect=dict(
            rows=np.where(column, x, y),
            branch=np.where(column, x, np.float32(2)),
            single=np.where(x > y, x[:, :1], y),
        ),
    )

    row = w[:1]
    yield dict(
        name="nl-rows",
        file="nl_operations.py",
        kernel="nl_rows",
        args=dict(x=x, w=row),
        expect=dict(
            product=x * row,
            difference=row - x,
            power=abs(row) ** abs(x[:, :1]),
            single=row[:, :1] + x,
            outer=x[:, :1] * row,
            own=np.maximum(x[5:6], x),
            norm=x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * row,
            condition=np.where(row > 0, x, np.float32(0.5)),
            branch=np.where(x > 0, row, x),
            rows=np.where(row > 0, row, x),
        ),
        atol=1e-4,
    )

    yield from functions()
    yield from random_numbers()


def functions():
    """Every function of nki.language that returns a tile, against NumPy."""
    x = np.random.default_rng(30).uniform(0.1, 3.0, (64, 48)).astype(np.float32)
    erf = np.vectorize(math.erf)
    sigmoid = 1 / (1 + np.exp(-x))
    bell = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    cdf = (1 + erf(x / np.sqrt(2))) / 2
    tanh_gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    wide = 1 / (1 + np.exp(-1.702 * x))
    yield dict(
        name="nl-unary",
        file="nl_functions.py",
        kernel="unary",
        args=dict(x=x, functions=("abs", "square", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "gelu",
                                  "gelu_apprx_sigmoid", "gelu_apprx_tanh", "gelu_dx", "gelu_apprx_sigmoid_dx", "silu",
                                  "silu_dx", "softplus", "mish", "erf", "erf_dx", "reciprocal", "copy", "sin", "cos",
                                  "tan", "arctan", "ceil", "floor", "trunc", "negative", "sign")),
        expect=f32(
            abs=abs(x), square=x * x, exp=np.exp(x), log=np.log(x), sqrt=np.sqrt(x), rsqrt=1 / np.sqrt(x), tanh=np.tanh(x),
            sigmoid=sigmoid, relu=x, gelu=x * cdf, gelu_apprx_sigmoid=x * wide, gelu_apprx_tanh=tanh_gelu,
            gelu_dx=cdf + x * bell, gelu_apprx_sigmoid_dx=wide * (1 + 1.702 * x * (1 - wide)), silu=x * sigmoid,
            silu_dx=sigmoid * (1 + x * (1 - sigmoid)), softplus=np.log1p(np.exp(x)), mish=x * np.tanh(np.log1p(np.exp(x))),
            erf=erf(x), erf_dx=2 / np.sqrt(np.pi) * np.exp(-x * x), reciprocal=1 / x, copy=x, sin=np.sin(x), cos=np.cos(x),
            tan=np.tan(x), arctan=np.arctan(x), ceil=np.ceil(x), floor=np.floor(x), trunc=np.trunc(x), negative=-x,
            sign=np.sign(x),
        ),
        rtol=1e-4,
        atol=1e-5,
    )
    rng = np.random.default_rng(31)
    a, b = rng.uniform(-3, 3, (64, 48)).astype(np.float32), rng.uniform(-3, 3, (64, 48)).astype(np.float32)
    b[:, :8] = a[:, :8]
    compare = dict(equal=a == b, not_equal=a != b, less=a < b, less_equal=a <= b, greater=a > b, greater_equal=a >= b)
    yield dict(
        name="nl-binary",
        file="nl_functions.py",
        kernel="binary",
        args=dict(x=a, y=b, functions=("add", "subtract", "multiply", "divide", "maximum", "minimum", "mod", "fmod", *compare)),
        expect=f32(
            add=a + b, subtract=a - b, multiply=a * b, divide=a / b, maximum=np.maximum(a, b), minimum=np.minimum(a, b),
            mod=np.mod(a, b), fmod=np.fmod(a, b), **compare,
        ),
        rtol=1e-5,
        atol=1e-5,
    )
    yield dict(name="nl-absolute", file="nl_functions.py", kernel="binary", target="trn3",
               args=dict(x=a, y=b, functions=("abs_max", "abs_min")),
               expect=f32(abs_max=np.where(abs(a) > abs(b), a, b), abs_min=np.where(abs(a) < abs(b), a, b)))
    p = abs(a)
    yield dict(name="nl-power", file="nl_functions.py", kernel="binary", args=dict(x=p, y=b, functions=("power",)),
               expect=f32(power=p**b), rtol=1e-4)
    i, j = rng.integers(0, 2**31, (64, 48), dtype=np.int32), rng.integers(0, 2**31, (64, 48), dtype=np.int32)
    yield dict(name="nl-bits", file="nl_functions.py", kernel="binary",
               args=dict(x=i, y=j, functions=("bitwise_and", "bitwise_or", "bitwise_xor")),
               expect=dict(bitwise_and=i & j, bitwise_or=i | j, bitwise_xor=i ^ j))
    few = rng.integers(0, 8, (64, 48), dtype=np.int32)
    low = rng.integers(0, 1000, (64, 48), dtype=np.int32)
    yield dict(name="nl-shifts", file="nl_functions.py", kernel="binary",
               args=dict(x=low, y=few, functions=("left_shift", "right_shift")),
               expect=dict(left_shift=low << few, right_shift=low >> few))
    s, t = rng.integers(0, 2, (64, 48)).astype(np.uint8), rng.integers(0, 2, (64, 48)).astype(np.uint8)
    yield dict(name="nl-logical", file="nl_functions.py", kernel="binary",
               args=dict(x=s, y=t, functions=("logical_and", "logical_or", "logical_xor")),
               expect=dict(logical_and=s & t, logical_or=s | t, logical_xor=s ^ t))
    yield dict(name="nl-not", file="nl_functions.py", kernel="unary", args=dict(x=s, functions=("logical_not",)),
               expect=dict(logical_not=1 - s))
    yield dict(name="nl-invert", file="nl_functions.py", kernel="unary", args=dict(x=i, functions=("invert",)),
               expect=dict(invert=~i))
    yield dict(
        name="nl-reductions",
        file="nl_functions.py",
        kernel="reductions",
        args=dict(x=x, functions=("sum", "max", "min", "mean", "prod", "var", "all")),
        expect=f32(sum=x.sum(1, keepdims=True), max=x.max(1, keepdims=True), min=x.min(1, keepdims=True),
                   mean=x.mean(1, keepdims=True), prod=x.prod(1, keepdims=True), var=x.var(1, keepdims=True),
                   all=x.all(1, keepdims=True)),
        rtol=1e-4,
    )
    x = normal((96, 64), 32)
    indices = rng.integers(0, 64, (96, 20)).astype(np.uint32)
    order = normal((40, 128), 33, bfloat16)
    marked = np.zeros((96, 64), np.float32)
    marked[:, :3] = 1
    gathered = np.take_along_axis(x, indices.astype(np.int64), 1)
    yield dict(
        name="nl-moves",
        file="nl_functions.py",
        kernel="moves",
        args=dict(x=x, indices=indices, order=order),
        expect=dict(gathered=gathered, as_float=gathered.astype(bfloat16), turned=x.T.copy(),
                    turned_wide=order.astype(np.float32).T.copy(), middle=x.astype(bfloat16), marked=marked,
                    sevens=np.full((96, 20), 7, np.uint32), last=np.full((4, 5), 2.5, np.float32)),
        rtol=0,
        atol=0,
    )
    yield dict(
        name="nl-constants",
        file="nl_functions.py",
        kernel="constants",
        args=dict(),
        expect=dict(floats=np.array([[1.5, -2, 0.25], [4, 5, 6]], np.float32), whole=np.array([[1, 2], [3, 70000]], np.int32),
                    identity=np.eye(64, dtype=bfloat16), default=np.eye(32, dtype=np.uint8)),
        rtol=0,
        atol=0,
    )


def f32(**arrays):
    return {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}


def random_numbers():
    ones, column = np.ones((128, 512), np.float32), np.ones((128, 1), np.float32)
    for target in ("trn1", "trn2", "trn3"):
        yield dict(
            name=f"rand-{target}",
            file="random_numbers.py",
            kernel="uniform",
            target=target,
            args=dict(seed_value=np.array([[42]], np.int32)),
            # 512 numbers: the standard deviation of the mean is 0.013; a deviation above 0.08 occurs once in a billion.
            expect=dict(repeats=0 * ones, differ=column, inside=ones, mean=0.5 * column, variance=column / 12,
                        hbm_mean=np.full((100, 1), 0.5, np.float32)),
            rtol=0,
            atol=0.08,
        )
    x = np.random.default_rng(40).uniform(1, 2, (64, 512)).astype(np.float32)
    parts = x.copy()
    parts[:32] = 0
    yield dict(
        name="dropout",
        file="random_numbers.py",
        kernel="dropped",
        args=dict(x=x),
        expect=dict(kept=x, gone=0 * x, by_partition=parts, changed=0 * x, share=np.full((64, 1), 0.75, np.float32)),
        rtol=0,
        atol=0.15,
    )

    x = normal((2, 2, 64, 96), 70)
    yield dict(
        name="crossing-pipes",
        file="pipes.py",
        kernel="crossing_pipes",
        lnc=2,
        args=dict(x=x),
        expect=dict(out=x[::-1, 0] - 2 * x[::-1, 1]),
    )
    yield dict(
        name="opposite-uses",
        file="pipes.py",
        kernel="opposite_uses",
        lnc=2,
        args=dict(x=x),
        expect=dict(out=4 * x[::-1, 0] + 2 * x[::-1, 1]),
    )

    numbers = [(5, -7), (100_000, 100_000), (2**31 - 1, 1), (-2**31, 1)]
    wide = numbers + [(2**40, 3), (2**63 - 1, 1), (-2**63, 2**62)]
    for dtype, pairs in ((np.int32, numbers), (np.int64, wide)):
        for at, (a, b) in enumerate(pairs):
            x, y = np.array([[a]], dtype), np.array([[b]], dtype)
            with np.errstate(over="ignore"):
                results = [x + y, x - y, x * y, -x, x * dtype(3) + dtype(100), dtype(7) - y]
            yield dict(
                name=f"scalars-{np.dtype(dtype).name}-{at}",
                file="scalars.py",
                kernel="arithmetic",
                args=dict(a=x, b=y),
                expect=dict(out=np.concatenate(results)),
                rtol=0,
                atol=0,
            )
    x = normal((9, 40), 41)
    for number in (0, 3):
        row = x[2 * number + 1:2 * number + 2]
        yield dict(
            name=f"scalar-offsets-{number}",
            file="scalars.py",
            kernel="picked_row",
            args=dict(x=x, number=np.array([[number]], np.int64)),
            expect=dict(row=row, part=row[:, 2:4]),
            rtol=0,
            atol=0,
        )
    x = np.arange(60, dtype=np.float32).reshape(6, 10)
    for count in (-1, 0, 1, 4):
        weights = np.arange(count + 1, dtype=np.float32)
        yield dict(
            name=f"scalar-loops-{count}",
            file="scalars.py",
            kernel="triangle",
            args=dict(x=x, count=np.array([[count]], np.int32)),
            expect=dict(out=(weights @ x[:count + 1]).reshape(1, 10)),
            rtol=0,
            atol=0,
        )
    x = np.arange(-12, 12, dtype=np.int64).reshape(4, 6) * (2**33 + 1)
    yield dict(name="int64", file="scalars.py", kernel="copied_wide", args=dict(x=x), expect=dict(out=x), rtol=0, atol=0)

    x = normal((100, 130), 42)
    for rows, columns in ((32, 48), (100, 130), (7, 130), (128, 64)):
        yield dict(
            name=f"tiles-{rows}x{columns}",
            file="grids.py",
            kernel="negated_by_tiles",
            args=dict(x=x, tile_rows=rows, tile_columns=columns),
            expect=dict(out=-x),
            rtol=0,
            atol=0,
        )
    for shape in ((100, 130), (128, 96), (33, 1)):
        x = normal(shape, 43)
        yield dict(
            name=f"blocks-{shape[0]}x{shape[1]}", file="grids.py", kernel="negated_by_blocks", args=dict(x=x), expect=dict(out=-x), rtol=0, atol=0
        )
    x = normal((2, 128, 96), 44)
    yield dict(name="tiles-at-once", file="grids.py", kernel="doubled_at_once", args=dict(x=x), expect=dict(out=2 * x), rtol=0, atol=0)
