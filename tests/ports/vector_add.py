"""Sum of two vectors, in tiles of 128 partitions or of fewer."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector_add(a, b, partitions=128, width=1):
    """out = a + b for vectors whose length is a multiple of partitions * width, the elements of one tile."""
    (length,) = a.shape
    tile = partitions * width
    assert length % tile == 0, f"{length} elements are not tiles of {tile}"
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    a, b, result = [v.reshape((length // tile, partitions, width)) for v in (a, b, out)]
    for i in nl.affine_range(length // tile):
        left = nl.ndarray((partitions, width), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((partitions, width), dtype=b.dtype, buffer=nl.sbuf)
        total = nl.ndarray((partitions, width), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[i])
        nisa.dma_copy(dst=right, src=b[i])
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=result[i], src=total)
    return out
