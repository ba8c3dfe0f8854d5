"""Explicit addresses that share bytes"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[4,128,64]
# seen-by: check run
@nki.jit
def ring_one_too_short(x):
    """Three tiles are needed at a time; the ring holds two."""
    out = nl.ndarray((2, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    ring = []
    for i in range(4):
        ring.append(nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, (i % 2) * 256)))
        nisa.dma_copy(dst=ring[i], src=x[i])
        if i >= 2:
            total = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 1024 + i * 256))
            nisa.tensor_tensor(dst=total, data1=ring[i - 2], data2=ring[i - 1], op=nl.add)  # plant: clobbered-read
            nisa.tensor_tensor(dst=total, data1=total, data2=ring[i], op=nl.add)
            nisa.dma_copy(dst=out[i - 2], src=total)
    return out


@nki.jit
def ring_one_too_short_fixed(x):
    out = nl.ndarray((2, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    ring = []
    for i in range(4):
        ring.append(nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, (i % 3) * 256)))
        nisa.dma_copy(dst=ring[i], src=x[i])
        if i >= 2:
            total = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 1024 + i * 256))
            nisa.tensor_tensor(dst=total, data1=ring[i - 2], data2=ring[i - 1], op=nl.add)
            nisa.tensor_tensor(dst=total, data1=total, data2=ring[i], op=nl.add)
            nisa.dma_copy(dst=out[i - 2], src=total)
    return out


# args: x=float32[128,64] y=float32[128,64]
# seen-by: check run
@nki.jit
def offset_in_elements(x, y):
    """The second tile is placed at 64, meant as elements; addresses are in bytes."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 64))
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.multiply)  # plant: clobbered-read
    nisa.dma_copy(dst=out, src=b)
    return out


@nki.jit
def offset_in_elements_fixed(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 64 * 4))
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.multiply)
    nisa.dma_copy(dst=out, src=b)
    return out


# args: a=float32[128,128] b=float32[128,512]
# seen-by: check run
@nki.jit
def one_bank_for_two_products(a, b):
    """Both products are in PSUM bank 0; the first is copied out after the second has been computed."""
    out = nl.ndarray((2, 128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    products = []
    for i in range(2):
        products.append(nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum, address=(0, 0)))
        nisa.nc_matmul(dst=products[i], stationary=left, moving=right[:, nl.ds(i * 256, 256)])
    for i in range(2):
        result = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=products[i])  # plant: clobbered-read
        nisa.dma_copy(dst=out[i], src=result)
    return out


@nki.jit
def one_bank_for_two_products_fixed(a, b):
    out = nl.ndarray((2, 128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    products = []
    for i in range(2):
        products.append(nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum, address=(0, i * 2048)))
        nisa.nc_matmul(dst=products[i], stationary=left, moving=right[:, nl.ds(i * 256, 256)])
    for i in range(2):
        result = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=products[i])
        nisa.dma_copy(dst=out[i], src=result)
    return out


# args: x=float32[64,64] y=bfloat16[64,64]
# seen-by: check run
@nki.jit
def tile_grew_with_its_dtype(x, y):
    """The layout was made for bfloat16; with float32 the first tile overlaps the second."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    data = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
    gate = nl.ndarray((64, 64), dtype=nl.bfloat16, buffer=nl.sbuf, address=(0, 128))
    nisa.dma_copy(dst=gate, src=y)
    nisa.dma_copy(dst=data, src=x)
    result = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 512))
    nisa.tensor_tensor(dst=result, data1=data, data2=gate, op=nl.multiply)  # plant: clobbered-read
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def tile_grew_with_its_dtype_fixed(x, y):
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    data = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
    gate = nl.ndarray((64, 64), dtype=nl.bfloat16, buffer=nl.sbuf, address=(0, 256))
    nisa.dma_copy(dst=gate, src=y)
    nisa.dma_copy(dst=data, src=x)
    result = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 512))
    nisa.tensor_tensor(dst=result, data1=data, data2=gate, op=nl.multiply)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,512]
# seen-by: check run
@nki.jit
def address_past_the_end(x):
    """The last buffer of the layout extends past the end of the partition."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf, address=(0, 228 * 1024))  # plant: bad-address
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def address_past_the_end_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf, address=(0, 220 * 1024))
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out
