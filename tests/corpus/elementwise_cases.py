"""Element-wise instructions, products, moves and registers: random shapes, dtypes and views."""

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16

F32 = np.float32
FLOATS = (np.float32, bfloat16, np.float16)
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "divide": np.divide,
    "equal": np.equal,
    "less": np.less,
    "greater_equal": np.greater_equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "not_equal": np.not_equal,
    "mod": np.mod,
    "fmod": np.fmod,
    "abs_max": lambda x, y: np.where(np.abs(x) > np.abs(y), x, y),
    "abs_min": lambda x, y: np.where(np.abs(x) < np.abs(y), x, y),
    "logical_or": np.logical_or,
    "logical_and": np.logical_and,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


def erf(x):
    import math

    return np.vectorize(math.erf)(x)


UNARY = {
    "copy": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "square": np.square,
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": erf,
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normal_cdf(x):
    return (1 + erf(x / np.sqrt(2))) / 2


def swish_dx(x, k):
    s = sigmoid(k * x)
    return s + k * x * s * (1 - s)


# Every function of nisa.activation (manual, "Supported Activation Functions"), and its range of validity.
ACTIVATIONS = {
    "copy": (lambda x: x, -9, 9),
    "square": (np.square, -9, 9),
    "sigmoid": (sigmoid, -30, 30),
    "relu": (lambda x: np.maximum(x, 0), -9, 9),
    "prelu": (lambda x: np.maximum(x, 0), -9, 9),
    "gelu": (lambda x: x * normal_cdf(x), -5, 9),
    "gelu_dx": (lambda x: normal_cdf(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi), -0.5, 9),
    "gelu_apprx_tanh": (lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2, -3, 9),
    "gelu_apprx_sigmoid": (lambda x: x * sigmoid(1.702 * x), -9, 9),
    "gelu_apprx_sigmoid_dx": (lambda x: swish_dx(x, 1.702), -0.5, 9),
    "silu": (lambda x: x * sigmoid(x), -9, 9),
    "silu_dx": (lambda x: swish_dx(x, 1), -1, 9),
    "tanh": (np.tanh, -9, 9),
    "softplus": (lambda x: np.log1p(np.exp(x)), -30, 30),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), -9, 9),
    "erf": (erf, -5, 5),
    "erf_dx": (lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), -5, 5),
    "exp": (np.exp, -60, 60),
    "log": (np.log, 1e-3, 1e6),
    "sin": (np.sin, -3.14, 3.14),
    "arctan": (np.arctan, -1.57, 1.57),
    "sqrt": (np.sqrt, 1e-6, 1e6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-6, 1e6),
    "reciprocal": (lambda x: 1 / x, 1e-3, 1e3),
    "sign": (np.sign, -9, 9),
    "abs": (np.abs, -9, 9),
}


def cast(x, dtype):
    """Conversion from fp32: to integers by rounding to nearest even, with saturation."""
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return np.clip(np.rint(x.astype(np.float64)), info.min, info.max).astype(dtype)
    return x.astype(dtype)


class Draw:
    def __init__(self, seed):
        self.r = np.random.default_rng(seed)

    def shape(self, partitions=128, most=300):
        return int(self.r.integers(1, partitions + 1)), int(self.r.integers(1, most))

    def of(self, *choices):
        return choices[int(self.r.integers(len(choices)))]

    def array(self, shape, dtype):
        if np.issubdtype(dtype, np.integer):
            info = np.iinfo(dtype)
            return self.r.integers(max(info.min, -1000), min(info.max, 1000) + 1, shape).astype(dtype)
        return (self.r.standard_normal(shape) * 3).astype(dtype)

    def step(self):
        return int(self.r.integers(1, 4))


def name(dtype):
    return np.dtype(dtype).name


def case(title, kernel, args, expect, rtol=0, atol=0, target="trn2"):
    return dict(
        name=title, file="elementwise.py", kernel=kernel, target=target, args=args, expect=expect, rtol=rtol, atol=atol
    )


def tensors():
    for i, op in enumerate(["add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "logical_xor"] * 2):
        d = Draw(100 + i)
        shape = d.shape()
        a, b = (d.array(shape, d.of(*FLOATS, np.int8, np.uint8, np.int16)) for _ in range(2))
        b[:, ::3] = a.astype(b.dtype)[:, ::3]
        dtype = d.of(np.float32, bfloat16, np.float16, np.int32, np.uint8)
        with np.errstate(all="ignore"):
            want = cast(BINARY[op](a.astype(F32), b.astype(F32)).astype(F32), dtype)
        args = dict(a=a, b=b, op=op, dtype=name(dtype), engine=d.of("vector", "gpsimd"), steps=tuple(d.step() for _ in range(3)))
        yield case(f"tensor-tensor-{op}-{i}", "two_tensors", args, dict(out=want))
    # The other operators. If a quotient is close to an integer, the remainder may be that of the next integer.
    others = ("divide", "not_equal", "greater", "greater_equal", "less_equal", "logical_and", "logical_or", "abs_max", "abs_min", "mod", "fmod")
    for i, op in enumerate(others):
        d = Draw(160 + i)
        a, b = (d.r.integers(-40, 41, (96, 130)).astype(d.of(*FLOATS, np.int8, np.int16)) for _ in range(2))
        b[b == 0] = 3
        want = BINARY[op](a.astype(F32), b.astype(F32)).astype(F32)
        target = "trn3" if op.startswith("abs") else "trn2"
        args = dict(a=a, b=b, op=op, dtype="float32", engine=d.of("vector", "gpsimd"), steps=tuple(d.step() for _ in range(3)))
        yield case(f"tensor-tensor-{op}", "two_tensors", args, dict(out=want), target=target)
    d = Draw(180)
    a, b = d.r.uniform(0.1, 9, (64, 90)).astype(F32), d.r.uniform(-3, 3, (64, 90)).astype(F32)
    args = dict(a=a, b=b, op="power", dtype="float32", engine="gpsimd", steps=(1, 2, 1))
    want = np.power(a.astype(np.float64), b).astype(F32)
    yield case("tensor-tensor-power", "two_tensors", args, dict(out=want), rtol=1e-6)
    for i, op in enumerate(("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")):
        d = Draw(130 + i)
        dtype = (np.uint32, np.uint16, np.uint8)[i % 3]
        a = d.r.integers(0, np.iinfo(dtype).max, d.shape(), dtype, endpoint=True)
        b = d.r.integers(0, 8 if "shift" in op else np.iinfo(dtype).max, a.shape).astype(dtype)
        args = dict(a=a, b=b, op=op, dtype=name(dtype), engine="vector", steps=(2, 1, 3))
        yield case(f"tensor-tensor-{op}", "two_tensors", args, dict(out=BINARY[op](a, b)))
    # 32-bit integers: exact on GpSimd, via fp32 on the vector engine.
    d = Draw(140)
    a, b = (d.r.integers(-(2**30), 2**30, (64, 40)).astype(np.int32) for _ in range(2))
    for engine, want in (("gpsimd", a + b), ("vector", cast(a.astype(F32) + b.astype(F32), np.int32))):
        args = dict(a=a, b=b, op="add", dtype="int32", engine=engine, steps=(1, 1, 1))
        yield case(f"tensor-tensor-int32-{engine}", "two_tensors", args, dict(out=want))


def scalars():
    ops = ["add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal"]
    for i in range(14):
        d = Draw(200 + i)
        op0, op1 = ops[i % 7], d.of(*ops)
        shape = d.shape()
        dtype = d.of(np.float32, bfloat16, np.float16, np.int16)
        data = d.array(shape, d.of(*FLOATS, np.int8, np.uint16))
        first, second = d.array((shape[0], 1), np.float32), float(np.float32(d.r.standard_normal()))
        reverse = bool(d.r.integers(2)), bool(d.r.integers(2))

        def apply(x, y, op, swap):
            return (BINARY[op](y, x) if swap else BINARY[op](x, y)).astype(F32)

        state = apply(data.astype(F32), first, op0, reverse[0])
        shared = dict(op0=op0, op1=op1, reverse0=reverse[0], reverse1=reverse[1], dtype=name(dtype), step=d.step())
        engine = d.of("vector", "unknown")
        args = dict(data=data, first=first, second=second, engine=engine, **shared)
        yield case(
            f"tensor-scalar-{op0}-{op1}-{i}",
            "tensor_and_scalars",
            args,
            dict(out=cast(apply(state, F32(second), op1, reverse[1]), dtype)),
        )
        other = d.array(shape, d.of(*FLOATS))
        args = dict(data=data, first=first, other=other, **shared)
        yield case(
            f"scalar-tensor-tensor-{op0}-{op1}-{i}",
            "scalar_and_tensors",
            args,
            dict(out=cast(apply(state, other.astype(F32), op1, reverse[1]), dtype)),
        )


def copies():
    dtypes = (np.float32, bfloat16, np.float16, np.int8, np.uint8, np.int16, np.int32, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3)
    for i in range(12):
        d = Draw(300 + i)
        x = d.array(d.shape(), d.of(*dtypes[:7]))
        dtype = d.of(*dtypes)
        engine = d.of("vector", "gpsimd", "scalar", "unknown")
        want = x if dtype == x.dtype else cast(x.astype(F32), dtype)
        args = dict(x=x, dtype=name(dtype), engine=engine, steps=(d.step(), d.step()))
        yield case(f"copy-{x.dtype.name}-{name(dtype)}-{i}", "copy", args, dict(out=want))
    for i, dtype in enumerate((np.float32, bfloat16, np.int32, np.uint8)):
        d = Draw(320 + i)
        shape = d.shape()
        x, old = d.array(shape, dtype), d.array(shape, dtype)
        predicate = d.r.integers(0, 3, shape).astype((np.uint8, np.uint16, np.uint32)[i % 3])
        args = dict(x=x, old=old, predicate=predicate, step=d.step())
        yield case(f"copy-predicated-{name(dtype)}", "copy_where", args, dict(out=np.where(predicate != 0, x, old)))
        number = x[0, 0].item() if dtype in (np.int32, np.uint8) else float(x[0, 0])
        args = dict(number=number, old=old, predicate=predicate, step=args["step"])
        want = np.where(predicate == 0, x[0, 0], old)
        yield case(f"set-predicated-{name(dtype)}", "set_where", args, dict(out=want))


def functions():
    for i, dtype in enumerate((np.float32, bfloat16, np.float16)):
        d = Draw(400 + i)
        x = d.array(d.shape(), dtype)
        x[x == 0] = 1
        yield case(
            f"reciprocal-{name(dtype)}", "invert", dict(x=x, step=d.step()), dict(out=F32(1) / x.astype(F32)), rtol=2e-7
        )
    for i, op in enumerate(UNARY):
        d = Draw(420 + i)
        x = d.array(d.shape(), d.of(*FLOATS))
        bias, scale = d.array((x.shape[0], 1), np.float32), float(F32(d.r.uniform(-2, 2)))
        argument = (x.astype(F32) * F32(scale) + bias).astype(np.float64)
        args = dict(x=x, bias=bias, scale=scale, op=op, dtype="float32", step=d.step())
        # The argument may be rounded once instead of twice (a fused multiply-add); the rest is the function's own error.
        slack = 2e-7 * (1 + np.abs(x.astype(F32) * scale).max() + np.abs(bias).max())
        want = UNARY[op](argument)
        factor = np.abs(want).max() if op == "exp" else 2 * (1 + np.abs(argument).max()) if op == "square" else 2
        yield case(f"activation-{op}", "activate", args, dict(out=want.astype(F32)), rtol=1e-6, atol=slack * factor)
    for i, (op, (function, low, high)) in enumerate(ACTIVATIONS.items()):
        for dtype in (np.float32, bfloat16):
            d = Draw(450 + i)
            x = d.r.uniform(low, high, (128, 60)).astype(dtype)
            want = function(x.astype(np.float64))
            args = dict(x=x, bias=np.zeros((128, 1), F32), scale=1.0, op=op, dtype=name(dtype), step=d.step())
            exact = want.astype(F32).astype(dtype)
            # Within two units in the last place of fp32; for bfloat16 that is at most one rounding.
            yield case(
                f"activation-{op}-{name(dtype)}",
                "activate",
                args,
                dict(out=exact),
                # The argument, 1.702 x, is rounded first.
                rtol=(1e-6 if op == "gelu_apprx_sigmoid" else 3e-7) if dtype == np.float32 else 2**-7,
                atol=1e-7 if op in ("sin", "mish", "silu_dx", "gelu_apprx_sigmoid_dx") else 1e-30,
            )
    for i, op in enumerate(("exp", "tanh", "square")):
        d = Draw(440 + i)
        x, bias = d.array((100, 2 * 83), np.float32) / F32(3), d.array((100, 1), np.float32) / F32(3)
        want = UNARY[op]((x + bias).astype(np.float64))
        total = want.sum(axis=1, keepdims=True).astype(F32)
        yield case(
            f"activation-and-sum-{op}",
            "activate_and_sum",
            dict(x=x, bias=bias, op=op),
            dict(out=want.astype(F32), sum_of_pieces=total, sum_of_all=total),
            rtol=3e-6,
            atol=1e-5,
        )


def patterns():
    for i in range(6):
        d = Draw(500 + i)
        p = int(d.r.integers(1, 129))
        counts = [int(n) for n in d.r.integers(1, 8, 1 + i % 4)]
        pattern = [[int(d.r.integers(-9, 10)), n] for n in counts]
        offset, multiplier = int(d.r.integers(-50, 50)), int(d.r.integers(-5, 6))
        affine = np.full((p, *counts), offset, np.int64)
        affine += (np.arange(p) * multiplier).reshape(-1, *[1] * len(counts))
        for axis, (step, n) in enumerate(pattern):
            affine += (np.arange(n) * step).reshape(-1, *[1] * (len(counts) - 1 - axis))
        affine = affine.reshape(p, -1)
        args = dict(shape=affine.shape, pattern=pattern, offset=offset, multiplier=multiplier)
        dtype = (np.int32, np.float32)[i % 2]
        yield case(f"iota-{i}", "positions", dict(dtype=name(dtype), **args), dict(out=affine.astype(dtype)))
        x = d.array(affine.shape, d.of(*FLOATS))
        op = ("equal", "less", "greater_equal")[i % 3]
        want = np.where(BINARY[op](affine, 0), x.astype(F32), F32(-9.5)).astype(x.dtype)
        args = dict(x=x, pattern=pattern, offset=offset, multiplier=multiplier, value=-9.5, op=op)
        yield case(f"affine-select-{op}-{i}", "select", args, dict(out=want))


def products():
    fp8 = (ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2)
    for i in range(8):
        d = Draw(600 + i)
        tiles, k, m, n = 1 + i % 3, int(d.r.integers(1, 129)), int(d.r.integers(1, 129)), int(d.r.integers(1, 513))
        double = i >= 5
        kinds = [(np.float32,) * 2, (bfloat16, np.float16), (bfloat16, fp8[0]), fp8, (fp8[1],) * 2][i % 5]
        if double:
            kinds = (d.of(*fp8), d.of(*fp8))
            n = (n + 15) // 16 * 16  # the distance of the rows
        middle = (2,) if double else ()
        s = d.array((tiles * k, *middle, m), kinds[0])
        x = d.array((tiles * k, *middle, n), kinds[1])
        a, b = (v.astype(np.float64).reshape(-1, v.shape[-1]) for v in (s, x))
        want = a.T @ b
        yield case(
            f"matmul-{name(kinds[0])}-{name(kinds[1])}{'-double-row' if double else ''}-{i}",
            "product",
            dict(stationary=s, moving=x, tiles=tiles, perf_mode="double_row" if double else "none"),
            dict(out=want.astype(F32)),
            rtol=1e-5,
            # fp32 sums in a different order.
            atol=1e-6 * float((np.abs(a).T @ np.abs(b)).max()),
        )
    for i, dtype in enumerate((bfloat16, np.float16, bfloat16)):
        d = Draw(620 + i)
        engine = "vector" if i == 2 else "tensor"
        x = d.array((32, 32) if engine == "vector" else (16 * (1 + i), 128), dtype)
        x[0, 0], x[1, 1] = np.nan, np.inf
        yield case(f"transpose-{name(dtype)}-{engine}", "transpose", dict(x=x, engine=engine), dict(out=x.T, other=x.T))


def memory():
    d = Draw(700)
    a, b, c = d.array((300, 70), np.float32), d.array((300, 70), bfloat16), d.array((300, 70), np.float32)
    yield case("dma-compute", "add_by_dma", dict(a=a, b=b, c=c), dict(out=a + b.astype(F32) + c), rtol=1e-6, atol=1e-6)
    table = d.array((40, 33), np.float32)
    which = d.r.integers(0, 40, (1, 5)).astype(np.int32)
    yield case(
        "registers",
        "registers",
        dict(table=table, which=which),
        dict(out=table[which[0]], seen=which, moved=np.array([[7]], np.int32)),
    )


def cases():
    for part in (tensors, scalars, copies, functions, patterns, products, memory):
        yield from part()
