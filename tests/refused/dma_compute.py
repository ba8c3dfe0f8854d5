s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
o = nl.ndarray((128, 64), nl.float32, nl.sbuf)
short = nl.ndarray((128, 32), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
ix = nl.ndarray((128, 1), nl.uint32, nl.sbuf)
ixb = nl.ndarray((128, 1), nl.int16, nl.sbuf)
ix64 = nl.ndarray((64, 1), nl.uint32, nl.sbuf)
one = nl.ndarray((1, 1), nl.uint32, nl.sbuf)
ixp = nl.ndarray((128, 1), nl.uint32, nl.psum)
ix2 = nl.ndarray((128, 2), nl.uint32, nl.sbuf)
hx = k.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix)

# rule: sources
nisa.dma_compute(k, [], nl.add)  # [operand-value] 0 tensors | 1 to 16
nisa.dma_compute(k, [h, h, h, h, h, h, h, h, h, h, h, h, h, h, h, h, h], nl.add)  # [operand-value] 17 tensors

# rule: operator
nisa.dma_compute(k, [h, s], nl.multiply)  # [operand-value] multiply | add

# rule: scales
nisa.dma_compute(k, [h, s], nl.add, scales=[1.0, 2.0])  # [operand-value] 1.0
nisa.dma_compute(k, [h, s], nl.add, scales=[1.0])  # [operand-value] 2 sources
nisa.dma_compute(k, [h, s], nl.add, scales=[1.0, 1.0])  # accepted

# rule: same-elements
nisa.dma_compute(k, [h, short], nl.add)  # [shape-mismatch] 4096 elements | 8192

# rule: static-address
nisa.dma_compute(s[0:1, 0:64], [h.ap(pattern=[[64, 1], [1, 64]], scalar_offset=one, indirect_dim=0), o[0:1, 0:64]], nl.add)  # [operand-value] run time

# rule: two-sources
nisa.dma_compute(hx, [hx, s, o], nl.add)  # [operand-value] 3 tensors, but must have 2

# rule: in-place
nisa.dma_compute(hx, [o, s], nl.add)  # [operand-value] `dst` itself

# rule: same-rows
nisa.dma_compute(hx, [hx, s.reshape((128, 64))[0:64, 0:64].ap(pattern=[[64, 64], [0, 2], [1, 64]])], nl.add)  # [shape-mismatch] rows

# rule: scatter-source
nisa.dma_compute(hx, [hx, h], nl.add)  # [operand-memory] scattered | sbuf

# rule: index-memory
nisa.dma_compute(s, [s, s.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix)], nl.add)  # [partition-dimension] `s` is on chip
nisa.dma_compute(s, [s, k.ap(pattern=[[64, 128], [1, 64]], vector_offset=ixp)], nl.add)  # [operand-memory] the index of `srcs` is in psum

# rule: index-dtype
nisa.dma_compute(s, [s, k.ap(pattern=[[64, 128], [1, 64]], vector_offset=ixb)], nl.add)  # [operand-dtype] int16 | uint32

# rule: index-count
nisa.dma_compute(s, [s, k.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix64)], nl.add)  # [shape-mismatch] 64 indices | 128
nisa.dma_compute(s, [s, k.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix2)], nl.add)  # [shape-mismatch] 256 elements | 128 rows
