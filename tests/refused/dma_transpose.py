x = nl.ndarray((64, 64), nl.float8_e4m3fn_x4, nl.sbuf)
y = nl.ndarray((64, 64), nl.float8_e5m2_x4, nl.sbuf)
d = nl.ndarray((64, 128), nl.float32, nl.sbuf)
b = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
db = nl.ndarray((64, 128), nl.bfloat16, nl.sbuf)
r16 = nl.ndarray((16, 64), nl.bfloat16, nl.sbuf)
d16 = nl.ndarray((64, 16), nl.bfloat16, nl.sbuf)
f16 = nl.ndarray((16, 64), nl.float32, nl.sbuf)
df16 = nl.ndarray((64, 16), nl.float32, nl.sbuf)
w16 = nl.ndarray((16, 130), nl.bfloat16, nl.sbuf)
r32 = nl.ndarray((32, 64), nl.bfloat16, nl.sbuf)
d32 = nl.ndarray((64, 32), nl.bfloat16, nl.sbuf)
c3 = nl.ndarray((3, 16, 64), nl.bfloat16, nl.sbuf)
e3 = nl.ndarray((64, 16, 3), nl.bfloat16, nl.sbuf)
x5 = nl.ndarray((2, 2, 2, 2, 16), nl.bfloat16, nl.sbuf)
ix = nl.ndarray((128, 1), nl.uint32, nl.sbuf)
ixi = nl.ndarray((128, 1), nl.int32, nl.sbuf)
ix17 = nl.ndarray((17, 1), nl.uint32, nl.sbuf)
ix2 = nl.ndarray((64, 2), nl.uint32, nl.sbuf)
ixp = nl.ndarray((128, 1), nl.uint32, nl.psum)
ix16 = nl.ndarray((16, 1), nl.uint32, nl.sbuf)
hb = nl.ndarray((128, 64), nl.bfloat16, nl.hbm)
ix24 = nl.ndarray((24, 1), nl.uint32, nl.sbuf)
ix3 = nl.ndarray((128, 2), nl.uint32, nl.sbuf)
d256 = nl.ndarray((64, 256), nl.bfloat16, nl.sbuf)
hx = hb.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix)

# rule: rank
nisa.dma_transpose(x5, x5)  # [shape-mismatch] 5 dimensions | 2, 3 or 4

# rule: axes
nisa.dma_transpose(db, b, axes=(0, 1))  # [operand-value] [0, 1] | [1, 0]

# rule: dst-shape
nisa.dma_transpose(b, b)  # [shape-mismatch] [128, 64] | [64, 128]

# rule: packed-copy
nisa.dma_transpose(x, y)  # trn3 [dtype-mismatch] float8_e4m3fn_x4 | float8_e5m2_x4

# rule: same-dtype
nisa.dma_transpose(d, b)  # [dtype-mismatch] float32 | bfloat16

# rule: priority-target
nisa.dma_transpose(db, b, priority=1)  # trn2 [unsupported-on-target] trn3

# rule: priority
nisa.dma_transpose(db, b, priority=-1)  # trn3 [operand-value] -1 | 0 to 3

# rule: hwdge-target
nisa.dma_transpose(d16, r16, dge_mode=nisa.dge_mode.hwdge)  # trn1 [unsupported-on-target] trn2 or later
nisa.dma_transpose(d16, r16, dge_mode=nisa.dge_mode.hwdge)  # trn2 accepted

# rule: hwdge-dtype
nisa.dma_transpose(df16, f16, dge_mode=nisa.dge_mode.hwdge)  # [operand-dtype] float32 | 2-byte

# rule: last
nisa.dma_transpose(r16, w16)  # [tile-size] 130 | 128

# rule: hwdge-rows
nisa.dma_transpose(d32, r32, dge_mode=nisa.dge_mode.hwdge)  # [tile-size] 32 | 16 rows

# rule: hwdge-block
nisa.dma_transpose(e3, c3, dge_mode=nisa.dge_mode.hwdge)  # [tile-size] [3, 16, 64] | multiple of 16

# rule: swdge
nisa.dma_transpose(db, b, dge_mode=nisa.dge_mode.swdge)  # [operand-value] swdge | address of `src`

# rule: skip
nisa.dma_transpose(db, b, oob_mode=nisa.oob_mode.skip)  # [operand-value] skip | run time

# rule: gather-target
nisa.dma_transpose(db, hx)  # trn1 [unsupported-on-target] trn2 or later
nisa.dma_transpose(db, hx)  # trn2 accepted

# rule: gather-dge
nisa.dma_transpose(db, hx, dge_mode=nisa.dge_mode.hwdge)  # [operand-value] hwdge | swdge

# rule: gather-memory
nisa.dma_transpose(db, b.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix))  # [partition-dimension] `b` is on chip

# rule: gather-dtype
nisa.dma_transpose(d, h.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix))  # [operand-value] float32 | 2-byte

# rule: gather-rows
nisa.dma_transpose(db[0:64, 0:24], hb.ap(pattern=[[64, 24], [1, 64]], vector_offset=ix24))  # [operand-value] 24 rows | multiple of 16

# rule: gather-4d
nisa.dma_transpose(nl.ndarray((16, 2, 2, 128), nl.bfloat16, nl.sbuf), hb.ap(pattern=[[64, 128], [32, 2], [16, 2], [1, 16]], vector_offset=ix))  # [operand-value] second or third

# rule: index
nisa.dma_transpose(db, hb.ap(pattern=[[64, 128], [1, 64]], vector_offset=ixi))  # [operand-value] int32 in sbuf | uint32

# rule: index-shape
nisa.dma_transpose(db, hb.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix2))  # [operand-value] 64 x 2

# rule: index-count
nisa.dma_transpose(db, hb.ap(pattern=[[64, 128], [1, 64]], vector_offset=ix16))  # [shape-mismatch] 16 indices | 128
nisa.dma_transpose(d256, hb.ap(pattern=[[64, 256], [1, 64]], vector_offset=ix3))  # accepted
