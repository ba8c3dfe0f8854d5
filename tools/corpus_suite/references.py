"""Inputs and NumPy references of public kernels, written from the documentation of these kernels.

A kernel is found by repository, file and name, by file and name, or by name alone.
"""

import dataclasses
import pathlib
from typing import Callable

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclasses.dataclass
class Case:
    """One run. `inputs` are positional: arrays, or Python literals as text. `refused` is a pattern
    of the expected error message."""

    inputs: list
    reference: Callable | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    named: dict = dataclasses.field(default_factory=dict)
    refused: str = ""
    # Number of physical cores.
    lnc: int = 1


def dtype(name: str) -> np.dtype:
    """A dtype by its name in nki.language."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def normal(*shape, of=np.float32, seed=0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32).astype(of)


def product(lhs_t, rhs):
    return lhs_t.astype(np.float32).T @ rhs.astype(np.float32)


def matmul(k, m, n, of=np.float32, rtol=1e-4, atol=1e-3) -> Case:
    return Case([normal(k, m, of=of), normal(k, n, of=of, seed=1)], product, rtol, atol)


def add(*shape, of=np.float32) -> Case:
    return Case([normal(*shape, of=of), normal(*shape, of=of, seed=1)], lambda a, b: a + b)


def rms(x, weight, eps):
    x = x.astype(np.float32)
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + float(eps)) * weight.astype(np.float32).reshape(1, -1)


def rmsnorm(rows, width, of=np.float32) -> Case:
    tolerance = 3e-2 if of == BF16 else 1e-3
    return Case([normal(rows, width, of=of), normal(width, of=of, seed=1), "1e-6"], rms, tolerance, tolerance)


def state_space(delta, u, a, b, c):
    """y[c, t] = sum over s of C[s, t] * h[c, s, t], with h[t] = exp(delta A) h[t-1] + delta B u."""
    out = np.zeros(delta.shape, np.float64)
    for batch in range(delta.shape[0]):
        state = np.zeros(a.shape, np.float64)
        for t in range(delta.shape[2]):
            step = delta[batch, :, t, None].astype(np.float64)
            state = np.exp(step * a) * state + step * b[batch, None, :, t] * u[batch, :, t, None]
            out[batch, :, t] = (state * c[batch, None, :, t]).sum(axis=1)
    return out


def mamba() -> Case:
    draw = np.random.default_rng(0)
    batch, channels, states, length = 1, 256, 16, 512
    inputs = [
        draw.random((batch, channels, length)),
        draw.random((batch, channels, length)),
        -draw.random((channels, states)),
        draw.random((batch, states, length)),
        draw.random((batch, states, length)),
    ]
    return Case([array.astype(np.float32) for array in inputs], state_space, 1e-3, 1e-3)


def to_argument(case: Case, shape, of=np.float32) -> Case:
    """The case of a kernel whose last parameter is its output."""
    count, reference = len(case.inputs), case.reference
    return dataclasses.replace(case, inputs=[*case.inputs, np.zeros(shape, of)], reference=lambda *given: reference(*given[:count]))


def pool(size, how) -> Case:
    def reference(x, window):
        channels, height, width = x.shape
        window = int(window)
        return how(x.reshape(channels, height // window, window, width // window, window).astype(np.float32), axis=(2, 4))

    return Case([normal(8, 6 * size, 4 * size), str(size)], reference)


def transpose2d(rows, first, second) -> Case:
    x = normal(rows, first * second)
    return Case([x, f"({first}, {second})"], lambda x, _: x.reshape(rows, first, second).transpose(0, 2, 1).reshape(rows, -1))


def split_columns() -> Case:
    return Case([normal(128, 512)], lambda x: (x[:, ::2], x[:, 1::2]))


# --- MX: the values of a block share a power-of-two scale -------------------------------------------------------------------------------


def mx_decode(packed, element, scale):
    """Packed elements and scales ([rows/8, columns], one for 8 rows and 4 elements) as float64 [rows, columns, 4]."""
    raw = np.ascontiguousarray(packed).view(np.uint8)
    if element == ml_dtypes.float4_e2m1fn:
        raw = np.stack([raw & 15, raw >> 4], axis=-1)
    values = raw.reshape(packed.shape[0], -1, 4).view(element).astype(np.float64)
    return values * np.repeat(2.0 ** (scale.astype(np.float64) - 127), 8, axis=0)[:, :, None]


def mx_matmul(element, name) -> Case:
    draw = np.random.default_rng(3)

    def tile(columns):
        values = draw.uniform(-3, 3, (128, columns * 4)).astype(element).view(np.uint8)
        if element == ml_dtypes.float4_e2m1fn:
            packed = values[:, 0::2] | (values[:, 1::2] << 4)
        else:
            packed = values.view(np.uint32)
        return packed, draw.integers(122, 130, (16, columns)).astype(np.uint8)

    stationary, stationary_scale = tile(128)
    moving, moving_scale = tile(512)

    def reference(*_):
        return np.einsum("kmq,knq->mn", mx_decode(stationary, element, stationary_scale), mx_decode(moving, element, moving_scale))

    return Case([stationary, stationary_scale, moving, moving_scale, name], reference, 2e-2, 2e-1)


def mx_on_device(copy: str) -> Case:
    """Powers of two times small integers, which quantisation to e5m2 under a shared scale
    represents exactly."""
    draw = np.random.default_rng(5)

    def exact(rows, columns):
        return (draw.choice([-1.5, -1, 1, 1.25, 1.75], (rows, columns)) * 2.0 ** draw.integers(-3, 2, (rows, columns))).astype(BF16)

    return Case([exact(512, 128), exact(512, 512), "float8_e5m2_x4", copy], lambda a, b, *_: product(a, b), 2e-2, 5e-1)


def mx_moving_on_device() -> Case:
    offline = mx_matmul(ml_dtypes.float8_e5m2, "float8_e5m2_x4")
    draw = np.random.default_rng(6)
    moving = (draw.choice([-1.5, -1, 1, 1.25], (128, 2048)) * 2.0 ** draw.integers(-3, 2, (128, 2048))).astype(BF16)
    stationary, scale = offline.inputs[:2]

    def reference(*_):
        return np.einsum("kmq,knq->mn", mx_decode(stationary, ml_dtypes.float8_e5m2, scale), moving.astype(np.float64).reshape(128, 512, 4))

    return Case([stationary, scale, moving, "float8_e5m2_x4", "float8_e5m2_x4"], reference, 2e-2, 5e-1)


def online_rmsnorm_matmul() -> Case:
    def reference(lhs, rhs):
        lhs = lhs.astype(np.float32)
        return lhs / np.sqrt(np.mean(lhs * lhs, axis=1, keepdims=True) + 1e-6) @ rhs.astype(np.float32)

    return Case([normal(2048, 2048, of=BF16), normal(2048, 2048, of=BF16, seed=1)], reference, 5e-2, 2.0)


def qwen3_moe(*hoisted: bool) -> Case:
    """One token through the experts of a layer: RMS norm, router, the 8 of 128 experts with the
    largest logits, each silu(gate) * up and down.

    The shapes are those of the kernel's target (Qwen3-30B-A3B, a quarter of it). The rounding to
    bfloat16 follows the documentation in the file.
    """
    hidden, experts, inner, chosen = 2048, 128, 192, 8

    def rounded(x):
        return x.astype(BF16).astype(np.float32)

    def reference(x, gamma, router, gate_up, down, *_):
        normed = rms(x, gamma, 1e-6)
        logits = (normed @ router.astype(np.float32))[0]
        top = np.argsort(-logits, kind="stable")[:chosen]
        weights = rounded(np.exp(logits[top] - logits.max()) / np.exp(logits - logits.max()).sum())
        weights = rounded(weights / weights.sum())
        out = np.zeros((1, hidden), np.float32)
        for expert, weight in zip(top, weights):
            both = rounded(normed) @ gate_up[expert].astype(np.float32)
            gate, up = rounded(both[:, :inner]), rounded(both[:, inner:])
            act = rounded(rounded(gate / (1 + np.exp(-gate))) * up)
            out += weight * (act @ down[expert].astype(np.float32))
        return out.astype(BF16)

    def small(*shape, seed):
        return (normal(*shape, seed=seed) * 0.05).astype(BF16)

    inputs = [
        normal(1, hidden, of=BF16, seed=40),
        normal(1, hidden, of=BF16, seed=41),
        normal(hidden, experts, seed=42) * np.float32(0.05),
        small(experts, hidden, 2 * inner, seed=43),
        small(experts, inner, hidden, seed=44),
        *hoisted,
    ]
    return Case(inputs, reference, 3e-2, 3e-2, lnc=2)


def vectors(length: int) -> Case:
    return Case([normal(length), normal(length, seed=1)], lambda a, b: a + b)


def transposed_attention(length: int, of=np.float32, tolerance=1e-2) -> Case:
    """Queries, keys and values of 128 features each, all [features, positions]."""

    def reference(q, k, v):
        scores = q.astype(np.float64).T @ k.astype(np.float64)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)) @ v.astype(np.float64).T

    draw = np.random.default_rng(0)
    return Case([draw.uniform(-1, 1, (128, length)).astype(of) for _ in range(3)], reference, tolerance, tolerance)


def doubled_image(batch, channels, height, width) -> Case:
    """Bilinear interpolation to twice the size; corners are not aligned, so borders repeat."""

    def along(x, axis):
        near = np.pad(x, [(1, 1) if d == axis else (0, 0) for d in range(4)], mode="edge")
        n = x.shape[axis]
        take = lambda first: np.take(near, range(first, first + n), axis=axis)
        both = np.stack([0.25 * take(0) + 0.75 * take(1), 0.75 * take(1) + 0.25 * take(2)], axis=axis + 1)
        shape = list(x.shape)
        shape[axis] = 2 * n
        return both.reshape(shape)

    return Case([normal(batch, channels, height, width)], lambda x: along(along(x, 2), 3), 1e-4, 1e-4)


EXP = Case([normal(128, 512)], np.exp)

# Keys: "repository:file:kernel", "file:kernel" or "kernel".
CASES: dict[str, Callable[[], list[Case]]] = {
    "asst4-trainium2:kernels:vector_add_naive": lambda: [vectors(128), vectors(64)],
    "asst4-trainium2:kernels:vector_add_tiled": lambda: [vectors(256), vectors(1280)],
    "asst4-trainium2:kernels:vector_add_stream": lambda: [vectors(25600), vectors(256000)],
    "asst4-trainium:kernels:vector_add_direct_allocation": lambda: [add(1024000, 1)],
    "asst4-trainium:kernels:vector_add_direct_allocation_bad": lambda: [add(1024000, 1)],
    "attn_fwd_v1": lambda: [transposed_attention(128)],
    "attn_fwd_v2": lambda: [transposed_attention(128)],
    **{f"attn_fwd_v{version}": lambda: [transposed_attention(4096)] for version in ("3", "4", "5", "6", "7", "8", "8a", "9", "10", "11")},
    "interpolate_bilinear_2x_fwd": lambda: [doubled_image(2, 8, 30, 20), doubled_image(1, 128, 20, 12)],
    "KLR:kernels:kernel1": lambda: [Case([normal(128, 512)], lambda x: x + 1)],
    "KLR:kernels:kernel4": lambda: [Case([normal(128, 512)], lambda x: x * 5 - 1)],
    "KLR:fused_mamba:mamba_v3": lambda: [to_argument(mamba(), (1, 256, 512))],
    "KLR:rmsnorm:nki_rmsnorm_kernel": lambda: [
        to_argument(Case([normal(rows, 512), normal(512, seed=1)], lambda x, g: rms(x, g, 0), 1e-3, 1e-3), (rows, 512)) for rows in (128, 200)
    ],
    "add_kernel": lambda: [add(128, 512)],
    "nki_tensor_add": lambda: [add(128, 512)],
    "tensor_addition_nki_kernels:nki_tensor_add": lambda: [add(256, 1024)],
    "nki_tensor_add_kernel": lambda: [add(4, 3, of=np.float16), add(128, 512)],
    "nki_inplace_add_kernel": lambda: [add(128, 512)],
    "nki_add_kernel": lambda: [add(128, 512)],
    "nki_tensor_add_kernel_beta2": lambda: [add(128, 512)],
    "tensor_transpose2D_kernel_": lambda: [transpose2d(5, 3, 4), transpose2d(128, 5, 37)],
    "tensor_split_kernel_": lambda: [split_columns()],
    "tensor_maxpool_kernel_": lambda: [pool(2, np.max), pool(3, np.max)],
    "tensor_avgpool_kernel": lambda: [pool(2, np.mean)],
    "layout-pass:tensor_exp_kernel_": lambda: [EXP],
    # The manual shows two of these as wrong code: a missing bracket, 256 partitions. The third uses
    # the undefined name `i_f`, which Python rejects, too.
    "layout-dynamic-loop:tensor_exp_kernel_": lambda: [dataclasses.replace(EXP, refused=".")],
    "layout-violation:tensor_exp_kernel_": lambda: [Case([normal(256, 512)], refused="partition")],
    "layout-loop:tensor_exp_kernel_": lambda: [Case([normal(256, 512)], refused="`i_f` is not defined")],
    "nki_matmul_basic_": lambda: [matmul(128, 64, 512)],
    "nki_matmul_tiled_": lambda: [matmul(1024, 1024, 1024)],
    "nki_matmul_hoist_load_": lambda: [matmul(1024, 1024, 1024)],
    "nki_matmul_block_free_dimension_": lambda: [matmul(1024, 1024, 1024)],
    "nki_matmul_fully_optimized_": lambda: [matmul(2048, 2048, 2048, rtol=1e-3, atol=1e-2)],
    "mamba_v1": lambda: [mamba()],
    "mamba_v2": lambda: [mamba()],
    "mamba_v3": lambda: [mamba()],
    "nki_rmsnorm_kernel": lambda: [rmsnorm(128, 512, of=BF16), rmsnorm(128, 512)],
    "rmsnorm_matmul_online": lambda: [online_rmsnorm_matmul()],
    "matmul_lhsT_rhs_nkigym": lambda: [matmul(2048, 2048, 2048, of=BF16, rtol=5e-2, atol=2.0)],
    "matmul_lhs_rhs_nkigym": lambda: [
        Case([normal(2048, 2048, of=BF16), normal(2048, 2048, of=BF16, seed=1)], lambda a, b: product(a.T, b), 5e-2, 2.0)
    ],
    "qwen3_moe_fused_tkg_sbuf_io_hoisted": lambda: [qwen3_moe(False, False), qwen3_moe(True, True)],
    "qwen3_moe_fused_tkg_sbuf_io": lambda: [qwen3_moe()],
    "kernel_offline_quantized_mx_matmul": lambda: [
        mx_matmul(ml_dtypes.float8_e5m2, "float8_e5m2_x4"),
        mx_matmul(ml_dtypes.float4_e2m1fn, "float4_e2m1fn_x4"),
    ],
    "kernel_on_device_quantize_matmul_mx": lambda: [mx_moving_on_device()],
    "kernel_copy_strided_quantize_matmul_mx": lambda: [mx_on_device("True"), mx_on_device("False")],
    "kernel_copy_strided_quantize_matmul_mx_packed_scale": lambda: [mx_on_device("True"), mx_on_device("False")],
    **{f"kernel_transforms:kernel_{n}": lambda: [matmul(2048, 2048, 2048, rtol=2e-2, atol=2.0)] for n in [*range(17), "partial"]},
}


def known(one: dict) -> bool:
    """Whether there are cases for an entry of the corpus."""
    return bool(cases(one["repo"], pathlib.Path(one["file"]).stem, one["kernel"]))


def cases(repository: str, file: str, kernel: str) -> list[Case]:
    """The cases of a kernel; empty if the kernel is unknown."""
    for key in (f"{repository}:{file}:{kernel}", f"{file}:{kernel}", kernel):
        if key in CASES:
            return CASES[key]()
    return []
