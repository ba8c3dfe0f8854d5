x = nl.ndarray((128, 64), nl.float8_e4m3fn_x4, nl.sbuf)
y = nl.ndarray((128, 64), nl.float8_e5m2_x4, nl.sbuf)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
short = nl.ndarray((128, 32), nl.float32, nl.sbuf)
half = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
ix = nl.ndarray((128, 1), nl.uint32, nl.sbuf)
ixb = nl.ndarray((128, 1), nl.int16, nl.sbuf)
ix64 = nl.ndarray((64, 1), nl.uint32, nl.sbuf)
ixp = nl.ndarray((128, 1), nl.uint32, nl.psum)
one = nl.ndarray((1, 1), nl.uint32, nl.sbuf)
ix2 = nl.ndarray((128, 2), nl.uint32, nl.sbuf)
hx = h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix)

# rule: packed-copy
nisa.dma_copy(x, y)  # trn3 [dtype-mismatch] float8_e4m3fn_x4 | float8_e5m2_x4
nisa.dma_copy(x, x)  # trn3 accepted

# rule: int64-copy
l = nl.ndarray((128, 64), nl.int64, nl.sbuf)
nisa.dma_copy(l, s)  # [dtype-mismatch] int64 | float32 | not converted
nisa.dma_copy(l, l)  # accepted

# rule: same-elements
nisa.dma_copy(short, h)  # [shape-mismatch] 8192 | 4096

# rule: index-memory
nisa.dma_copy(s, s.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix))  # [partition-dimension] `s` is on chip
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ixp))  # [operand-memory] the index of `src` is in psum

# rule: index-dtype
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ixb))  # [operand-dtype] int16 | uint32

# rule: index-count
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix64))  # [shape-mismatch] 64 indices | 128
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix2))  # [shape-mismatch] 256 elements | 128 rows

# rule: hwdge-target
nisa.dma_copy(s, h, dge_mode=nisa.dge_mode.hwdge)  # trn1 [unsupported-on-target] trn2 or later
nisa.dma_copy(s, h, dge_mode=nisa.dge_mode.hwdge)  # trn2 accepted

# rule: hwdge-dtype
nisa.dma_copy(nl.ndarray((128, 64), nl.int32, nl.sbuf), h, dge_mode=nisa.dge_mode.hwdge)  # [dtype-mismatch] `src` is float32 | `dst` is int32 | hwdge
nisa.dma_copy(half, h, dge_mode=nisa.dge_mode.hwdge)  # accepted
nisa.dma_copy(half, h, dge_mode=nisa.dge_mode.swdge)  # accepted
nisa.dma_copy(half, h)  # accepted

# rule: gather-swdge
nisa.dma_copy(s, hx, dge_mode=nisa.dge_mode.hwdge)  # [operand-value] hwdge | `src` | swdge
nisa.dma_copy(hx, s, dge_mode=nisa.dge_mode.none)  # [operand-value] none | `dst`
nisa.dma_copy(s, hx, dge_mode=nisa.dge_mode.swdge)  # accepted

# rule: dynamic-none
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], scalar_offset=one, indirect_dim=0), dge_mode=nisa.dge_mode.none)  # [operand-value] `dge_mode` is none | `src`
nisa.dma_copy(s, h.ap(pattern=[[64, 128], [1, 64]], scalar_offset=one, indirect_dim=0))  # accepted

# rule: priority-target
nisa.dma_copy(s, h, priority=1)  # trn2 [unsupported-on-target] `priority` is 1 | trn3

# rule: priority
nisa.dma_copy(s, h, priority=4)  # trn3 [operand-value] 4 | 0 to 3
nisa.dma_copy(s, h, priority=0)  # trn3 accepted

# rule: engine
nisa.dma_copy(s, h, engine=nisa.engine.sync)  # [operand-value] sync | hwdge
nisa.dma_copy(s, h, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.vector)  # [operand-value] vector | sync or scalar
nisa.dma_copy(s, h, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)  # accepted
