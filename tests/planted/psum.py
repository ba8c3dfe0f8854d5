"""Accumulation in PSUM, and PSUM banks"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: a=float32[128,64] b=float32[128,128] bias=float32[64,128]
# seen-by: check run
@nki.jit
def product_onto_a_bias(a, b, bias):
    """The bias is written to PSUM first, for the matmul to add to."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    shift = nl.ndarray((64, 128), dtype=bias.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    nisa.dma_copy(dst=shift, src=bias)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.tensor_copy(dst=acc, src=shift)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=True)  # plant: foreign-accumulation
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def product_onto_a_bias_fixed(a, b, bias):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    shift = nl.ndarray((64, 128), dtype=bias.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    nisa.dma_copy(dst=shift, src=bias)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=result, data1=acc, data2=shift, op=nl.add)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: a=float32[256,64] b=float32[256,128]
# seen-by: check run
@nki.jit
def zeroed_accumulator(a, b):
    """As on a GPU: the accumulator is zeroed, and every matmul accumulates."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=acc, value=0.0)
    for k in range(2):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=True)  # plant: foreign-accumulation
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def zeroed_accumulator_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: a=float32[128,64] b=float32[128,128]
# seen-by: check run
@nki.jit
def first_product_accumulates(a, b):
    """`accumulate=True` on a bank that nothing has written."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=True)  # plant: uninitialized-read
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def first_product_accumulates_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=False)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: a=float32[128,128] b=float32[128,512]
# seen-by: check run
@nki.jit
def accumulators_for_nine_banks(a, b):
    """Nine accumulators, each a whole bank, are live at once."""
    out = nl.ndarray((9, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    banks = []
    for i in range(9):
        banks.append(nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum))  # plant: psum-overflow
        nisa.nc_matmul(dst=banks[i], stationary=left, moving=right)
    for i in range(9):
        result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=banks[i])
        nisa.dma_copy(dst=out[i], src=result)
    return out


@nki.jit
def accumulators_for_nine_banks_fixed(a, b):
    out = nl.ndarray((9, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for i in range(9):
        bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=bank, stationary=left, moving=right)
        result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=bank)
        nisa.dma_copy(dst=out[i], src=result)
    return out


# args: a=float32[128,128] b=float32[128,384]
# seen-by: check run
@nki.jit
def product_over_a_bank_boundary(a, b):
    """Two products of 384 columns side by side: the second starts in one bank and ends in the next."""
    out = nl.ndarray((128, 768), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 384), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc[:, 0:384], stationary=left, moving=right)
    nisa.nc_matmul(dst=acc[:, 384:768], stationary=left, moving=right)  # plant: psum-bank
    result = nl.ndarray((128, 768), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc[:, 0:768])
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def product_over_a_bank_boundary_fixed(a, b):
    out = nl.ndarray((128, 768), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 384), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc[:, 0:384], stationary=left, moving=right)
    nisa.nc_matmul(dst=acc[:, 512:896], stationary=left, moving=right)
    result = nl.ndarray((128, 768), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result[:, 0:384], src=acc[:, 0:384])
    nisa.tensor_copy(dst=result[:, 384:768], src=acc[:, 512:896])
    nisa.dma_copy(dst=out, src=result)
    return out


# args: a=float32[256,64] b=float32[256,256]
# seen-by: check run
@nki.jit
def accumulator_not_reset(a, b):
    """One PSUM tile serves both blocks of columns: the second block is added to the first."""
    out = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for j in range(2):
        for k in range(2):
            left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
            nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), nl.ds(j * 128, 128)])
            nisa.nc_matmul(dst=acc, stationary=left, moving=right)  # plant: accumulation-after-read
        result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out[:, nl.ds(j * 128, 128)], src=result)
    return out


@nki.jit
def accumulator_not_reset_fixed(a, b):
    out = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for j in range(2):
        for k in range(2):
            left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
            nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), nl.ds(j * 128, 128)])
            nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=k > 0)
        result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out[:, nl.ds(j * 128, 128)], src=result)
    return out

# args: a=float32[4,128,64] b=float32[128,128]
# seen-by: check run
@nki.jit
def one_tile_for_all_iterations(a, b):
    """Each iteration needs its own product, but the tile is allocated before the loop."""
    out = nl.ndarray((4, 64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)

    def body(i):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a.select(0, i))
        nisa.nc_matmul(dst=acc, stationary=left, moving=right)  # plant: accumulation-after-read
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out.select(0, i), src=result)

    nl.fori_loop(0, 4, body)
    return out


@nki.jit
def one_tile_for_all_iterations_fixed(a, b):
    out = nl.ndarray((4, 64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)

    def body(i):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a.select(0, i))
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=False)
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out.select(0, i), src=result)

    nl.fori_loop(0, 4, body)
    return out
