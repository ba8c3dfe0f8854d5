"""Memories under the names that early releases of Beta 2 provided without import: `sbuf`, `psum`, `hbm`."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled_in_regions(x):
    left = sbuf[0:128, 0:1024]  # noqa: F821
    a = left.view(dtype=x.dtype, shape=(128, 256))
    # The other half of the same addresses, and a tile that the compiler places.
    b = sbuf[:, 1024:2048].view(dtype=x.dtype, shape=(128, 256))  # noqa: F821
    c = sbuf.view(dtype=x.dtype, shape=x.shape)  # noqa: F821
    nisa.dma_copy(dst=a, src=x[:, 0:256])
    nisa.dma_copy(dst=b, src=x[:, 256:512])
    nisa.tensor_tensor(dst=c[:, 0:256], data1=a, data2=a, op=nl.add)
    nisa.tensor_tensor(dst=c[:, 256:512], data1=b, data2=b, op=nl.add)
    out = hbm.view(dtype=x.dtype, shape=x.shape)  # noqa: F821
    nisa.dma_copy(dst=out, src=c)
    return out
