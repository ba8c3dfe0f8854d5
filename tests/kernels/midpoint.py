"""The midpoint of two matrices in tiles, with the shapes asserted; the decorator names a target."""

import nki as nki
import nki.isa as nisa
import nki.language as nl

P, F = 96, 320


@nki.jit(platform_target="trn1")
def midpoint(p, q, weight=0.5):
    """out = weight * p + (1 - weight) * q; rows a multiple of 96, columns of 320."""
    rows, columns = p.shape
    assert q.shape == p.shape and q.dtype == p.dtype, f"q is {q.dtype}{q.shape}, p is {p.dtype}{p.shape}"
    assert rows % P == 0, f"{rows} rows do not make tiles of {P}"
    assert columns % F == 0, f"{columns} columns do not make tiles of {F}"
    out = nl.ndarray(p.shape, dtype=p.dtype, buffer=nl.shared_hbm)
    for j in nl.affine_range(columns // F):
        for i in nl.affine_range(rows // P):
            near = nl.ndarray(shape=(P, F), dtype=p.dtype, buffer=nl.sbuf)
            far = nl.ndarray(shape=(P, F), dtype=q.dtype, buffer=nl.sbuf)
            nisa.dma_copy(src=p[i * P:(i + 1) * P, F * j:F * (j + 1)], dst=near)
            nisa.dma_copy(src=q[i * P:(i + 1) * P, F * j:F * (j + 1)], dst=far)
            nisa.tensor_tensor(dst=near, data1=near, op=nl.subtract, data2=far)
            nisa.scalar_tensor_tensor(dst=far, data=near, op0=nl.multiply, operand0=weight, op1=nl.add, operand1=far)
            nisa.dma_copy(src=far, dst=out[i * P:(i + 1) * P, F * j:F * (j + 1)])
    return out
