"""The kernels of the AWS manual, run unchanged from a fetched copy. Nothing of it is part of this repository.

$NKI_TUTORIALS names the directory nki/examples of a clone of github.com/aws-neuron/aws-neuron-sdk: its files run, and the kernels in the text of
nki/migration/index.rst. $NKI_MANUAL names a folder with pages of the manual as text (.txt): the numbered listings in them run.
Without either there are no cases, and a line says so.

    NKI_TUTORIALS=.../nki/examples python3 tests/numpy_check.py tests/tutorials
"""

import atexit
import os
import pathlib
import re
import shutil
import tempfile
import textwrap

import mx_reference as mx
import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def matmul(root, kernel, k, m, n, dtype):
    a, b = normal((k, m), 1, dtype), normal((k, n), 2, dtype)
    expected = (a.astype(np.float32).T @ b.astype(np.float32)).astype(dtype)
    return dict(
        name=f"{kernel}-{np.dtype(dtype).name}",
        file=f"{root}/matrix_multiplication/matrix_multiplication_nki_kernels.py",
        kernel=kernel,
        args=dict(lhsT=a, rhs=b),
        expect=dict(result=expected),
        # Sums of k products of magnitude 1, in a different order.
        atol=float(np.sqrt(k)) * (2e-2 if dtype == bfloat16 else 1e-5),
    )


def mx_cases(file):
    """The kernels of the deep dive on MX: with quantized operands, and with operands that the kernel interleaves and quantizes."""
    r = np.random.default_rng(9)

    def case(kernel, name, args, stationary, moving):
        want = mx.matmul(stationary, moving)
        return dict(
            name=f"{kernel}-{name}",
            file=file,
            kernel=kernel,
            target="trn3",
            args=args,
            expect=dict(result_hbm=want.astype(np.float32).astype(bfloat16)),
            # One rounding to bfloat16, and a sum of 512 fp32 products.
            rtol=1e-2,
            atol=3e-6 * np.abs(want).max(),
        )

    def offline(p, n, dtype):
        packed = mx.pack((r.standard_normal((p, 4 * n)) * 1.5).astype(np.float32), dtype)
        return packed, r.integers(115, 130, (p // 8, n)).astype(np.uint8)

    for dtype in mx.ELEMENT:
        s, s_codes = offline(128, 128, dtype)
        m, m_codes = offline(128, 512, dtype)
        # The host passes bytes that the kernel views as packed elements.
        given = np.uint8 if dtype.startswith("float4") else np.uint32
        args = dict(
            stationary_mx_data=s.view(given),
            stationary_mx_scale=s_codes,
            moving_mx_data=m.view(given),
            moving_mx_scale=m_codes,
            mx_dtype=dtype,
        )
        numbers = mx.numbers(s, s_codes, dtype), mx.numbers(m, m_codes, dtype)
        yield case("kernel_offline_quantized_mx_matmul", dtype, args, *numbers)
        x = normal((128, 2048), 10, bfloat16)
        fp8 = "float8_e5m2_x4"
        args = dict(
            stationary_mx_data=s.view(given),
            stationary_mx_scale=s_codes,
            moving_data_bf16=x,
            stationary_mx_dtype=dtype,
            moving_mx_dtype=fp8,
        )
        quantized = mx.numbers(*mx.quantize(x, fp8), fp8)
        yield case("kernel_on_device_quantize_matmul_mx", dtype, args, numbers[0], quantized)

    def interleaved(x):
        """Places rows that are 128 apart next to each other."""
        return x.reshape(4, 128, -1).transpose(1, 2, 0).reshape(128, -1)

    a, b = normal((512, 128), 11, bfloat16), normal((512, 512), 12, bfloat16)
    for kernel in ("kernel_copy_strided_quantize_matmul_mx", "kernel_copy_strided_quantize_matmul_mx_packed_scale"):
        for dtype, copies in (("float8_e5m2_x4", True), ("float8_e4m3fn_x4", False)):
            args = dict(stationary_hbm=a, moving_hbm=b, mx_dtype=dtype, use_tensor_copy=copies)
            numbers = (mx.numbers(*mx.quantize(interleaved(x), dtype), dtype) for x in (a, b))
            yield case(kernel, dtype, args, *numbers)


def scratch(name, source):
    """Writes a kernel of a page to a separate file, which is deleted when Python exits."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{name}.py"
    path.write_text(source)
    return path


def functions(page, name):
    """The functions of this name in the code blocks of a page, each as a kernel file."""
    for match in re.finditer(rf"^( *)def {name}\(.*\n((?:\1 +.*\n|\s*\n)+)", page, re.M):
        source = textwrap.dedent(match.group(0))
        head = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\n"
        yield str(scratch(name, head + source))


def guide_cases(page):
    """The migration guide's replacement for block dimensions, and its access by index vectors."""
    text = page.read_text()
    inp = normal((8, 128, 512), 12)
    for name in ("sb_blocks_migrated", "sb_blocks_migrated_incorrect"):
        for i, file in enumerate(functions(text, name)):
            yield dict(name=f"{name}-{i + 1}", file=file, args=dict(inp=inp), expect=dict(res=inp), rtol=0, atol=0)
    a = normal((128, 512), 13)
    for file in functions(text, "indirect_vector_dynamic_dma"):
        yield dict(name="indirect-vector", file=file, args=dict(A=a), expect=dict(result_hbm=a[::2]), rtol=0, atol=0)


def listings(page):
    """The numbered listings of a page: lines that start with 1, 2, 3, ..."""
    found, count = [], 0
    for line in page.splitlines():
        match = re.match(r" *(\d+)(.*)", line)
        if match and int(match[1]) == count + 1:
            found.append(match[2])
            count += 1
        elif count:
            yield "\n".join(found) + "\n"
            found, count = [], 0
    if count:
        yield "\n".join(found) + "\n"


def page_cases(folder):
    """The tensor addition that pages of the manual show as a numbered listing."""
    a, b = normal((256, 1024), 14), normal((256, 1024), 15)
    for page in sorted(pathlib.Path(folder).glob("*.txt")):
        for i, source in enumerate(listings(page.read_text())):
            if "def nki_tensor_add(" in source and "@nki.jit" in source:
                file = str(scratch("nki_tensor_add", source))
                yield dict(name=f"{page.stem}-{i}", file=file, args=dict(a_input=a, b_input=b), expect=dict(c_output=a + b))


def cases():
    root, pages = os.environ.get("NKI_TUTORIALS"), os.environ.get("NKI_MANUAL")
    if not root and not pages:
        print("skipped: neither NKI_TUTORIALS nor NKI_MANUAL names a copy of the manual")
    if pages:
        yield from page_cases(pages)
    if root:
        yield from clone_cases(root)


def clone_cases(root):
    guide = pathlib.Path(root).parent / "migration/index.rst"
    if guide.exists():
        yield from guide_cases(guide)
    for dtype in (np.float32, bfloat16):
        yield matmul(root, "nki_matmul_basic_", 128, 64, 512, dtype)
        yield matmul(root, "nki_matmul_tiled_", 256, 256, 1024, dtype)
        yield matmul(root, "nki_matmul_hoist_load_", 256, 256, 1024, dtype)
        yield matmul(root, "nki_matmul_block_free_dimension_", 256, 256, 1024, dtype)
        yield matmul(root, "nki_matmul_fully_optimized_", 2048, 2048, 1024, dtype)

    deep_dive = pathlib.Path(root).parent / "deep-dives/src/mxfp-matmul/mx_kernels.py"
    if deep_dive.exists():
        yield from mx_cases(deep_dive)

    a, b = normal((256, 1024), 3), normal((256, 1024), 4)
    yield dict(
        name="tensor-addition",
        file=f"{root}/tensor_addition/tensor_addition_nki_kernels.py",
        args=dict(a_input=a, b_input=b),
        expect=dict(c_output=a + b),
    )
    x = normal((128, 12), 5)
    yield dict(
        name="transpose2d",
        file=f"{root}/transpose2d/transpose2d_nki_kernels.py",
        args=dict(in_tensor=x, shape2D=(3, 4)),
        expect=dict(out_tensor=x.reshape(128, 3, 4).transpose(0, 2, 1).reshape(128, 12)),
    )
    x = normal((64, 12, 24), 6)
    yield dict(
        name="average-pool2d",
        file=f"{root}/average_pool2d/average_pool2d_nki_kernels.py",
        args=dict(in_tensor=x, pool_size=2),
        expect=dict(out_tensor=x.reshape(64, 6, 2, 12, 2).mean(axis=(2, 4))),
    )
    channels, length, states = 256, 512, 16
    delta, u = np.abs(normal((1, channels, length), 7)) * 0.1, normal((1, channels, length), 8)
    a, b, c = -np.abs(normal((channels, states), 9)), normal((1, states, length), 10), normal((1, states, length), 11)
    state = np.zeros((channels, states))
    out = np.zeros((1, channels, length))
    for t in range(length):
        state = np.exp(delta[0, :, t, None] * a) * state + delta[0, :, t, None] * u[0, :, t, None] * b[0, None, :, t]
        out[0, :, t] = (state * c[0, None, :, t]).sum(axis=1)
    for version in (1, 2, 3):
        yield dict(
            name=f"mamba-v{version}",
            file=f"{root}/fused_mamba/mamba_nki_kernels.py",
            kernel=f"mamba_v{version}",
            args=dict(delta=delta, u=u, A=a, B=b, C=c),
            expect=dict(output=out.astype(np.float32)),
            rtol=1e-3,
            atol=1e-3,
        )
