st = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
mv = nl.ndarray((128, 512), nl.bfloat16, nl.sbuf)
out = nl.ndarray((64, 512), nl.float32, nl.psum)
f = nl.ndarray((128, 64), nl.float32, nl.sbuf)
a = nl.ndarray((128, 64), nl.float8_e4m3, nl.sbuf)
n = nl.ndarray((128, 64), nl.float8_e4m3fn, nl.sbuf)
mn = nl.ndarray((128, 512), nl.float8_e4m3fn, nl.sbuf)
ma = nl.ndarray((128, 512), nl.float8_e4m3, nl.sbuf)
i8 = nl.ndarray((128, 64), nl.int8, nl.sbuf)
s2 = nl.ndarray((128, 2, 64), nl.float8_e4m3, nl.sbuf)
m2 = nl.ndarray((128, 2, 512), nl.float8_e4m3, nl.sbuf)
b2 = nl.ndarray((128, 2, 64), nl.bfloat16, nl.sbuf)
mb2 = nl.ndarray((128, 2, 512), nl.bfloat16, nl.sbuf)
m28 = nl.ndarray((128, 2, 8), nl.float8_e4m3, nl.sbuf)
out8 = nl.ndarray((64, 8), nl.float32, nl.psum)
s3 = nl.ndarray((128, 3, 64), nl.float8_e4m3, nl.sbuf)
m3 = nl.ndarray((128, 3, 512), nl.float8_e4m3, nl.sbuf)
wide = nl.ndarray((128, 130), nl.bfloat16, nl.sbuf)
outw = nl.ndarray((128, 512), nl.float32, nl.psum)
long = nl.ndarray((128, 1024), nl.bfloat16, nl.sbuf)
outl = nl.ndarray((64, 1024), nl.float32, nl.psum)
few = nl.ndarray((64, 512), nl.bfloat16, nl.sbuf)
sm = nl.ndarray((64, 64), nl.bfloat16, nl.sbuf)
outb = nl.ndarray((64, 512), nl.bfloat16, nl.psum)
outs = nl.ndarray((64, 256), nl.float32, nl.psum)
hv = nl.ndarray((64, 128), nl.bfloat16, nl.sbuf)
hm = nl.ndarray((64, 512), nl.bfloat16, nl.sbuf)
o128 = nl.ndarray((128, 512), nl.float32, nl.psum)
identity = nl.ndarray((128, 128), nl.float8_e4m3, nl.sbuf)
o8 = nl.ndarray((64, 256), nl.float8_e4m3, nl.psum)
outt = nl.ndarray((64, 128), nl.bfloat16, nl.psum)
m5 = nl.ndarray((128, 8192), nl.bfloat16, nl.sbuf)

# rule: double-row-target
nisa.nc_matmul(out, s2, m2, perf_mode=nisa.matmul_perf_mode.double_row)  # trn1 [unsupported-on-target] double_row needs trn2
nisa.nc_matmul(out, s2, m2, perf_mode=nisa.matmul_perf_mode.double_row)  # trn2 accepted

# rule: double-row-transpose
nisa.nc_matmul(out, s2, m2, perf_mode=nisa.matmul_perf_mode.double_row, is_transpose=True)  # [operand-value] double_row | is_transpose

# rule: double-row-columns
nisa.nc_matmul(out, s2, m2, perf_mode=nisa.matmul_perf_mode.double_row, tile_position=(0, 0), tile_size=(128, 64))  # [operand-value] the column size is 64, but must be 128

# rule: double-row-dtypes
nisa.nc_matmul(out, b2, mb2, perf_mode=nisa.matmul_perf_mode.double_row)  # [operand-dtype] `stationary` is bfloat16 | 8-bit

# rule: double-row-shape
nisa.nc_matmul(out, s3, m3, perf_mode=nisa.matmul_perf_mode.double_row)  # [shape-mismatch] [128, 3, 64] | [K, 2, ...]

# rule: double-row-stride
nisa.nc_matmul(out8, s2, m28, perf_mode=nisa.matmul_perf_mode.double_row)  # [operand-value] 8 elements apart | multiple of 16
nisa.nc_matmul(out8, s2, m2[:, :, 0:8], perf_mode=nisa.matmul_perf_mode.double_row)  # accepted

# rule: tile-pair
nisa.nc_matmul(out, st, mv, tile_position=(0, 0))  # [operand-value] `tile_size` has 0 values
nisa.nc_matmul(out, st, mv, tile_size=(128, 128))  # [operand-value] `tile_position` has 0 values

# rule: tile-size
nisa.nc_matmul(out, st, mv, tile_position=(0, 0), tile_size=(129, 128))  # [operand-value] row size is 129 | 1 to 128
nisa.nc_matmul(out, sm, hm, tile_position=(0, 0), tile_size=(96, 128))  # accepted

# rule: tile-position
nisa.nc_matmul(out, sm, hm, tile_position=(32, 0), tile_size=(32, 128))  # trn1 [operand-value] start row 32 | 64
nisa.nc_matmul(out, sm, hm, tile_position=(32, 0), tile_size=(64, 128))  # [operand-value] start row 32 | 64
nisa.nc_matmul(out, sm, hm, tile_position=(128, 0), tile_size=(64, 128))  # [operand-value] start row 128

# rule: inputs
nisa.nc_matmul(out, i8, mv)  # [operand-dtype] `stationary` is int8 | float8_e5m2

# rule: ocp-target
nisa.nc_matmul(out, n, mn)  # trn2 [unsupported-on-target] float8_e4m3fn | trn3
nisa.nc_matmul(out, n, mn)  # trn3 accepted

# rule: fp32-mix
nisa.nc_matmul(out, f, mv)  # [dtype-mismatch] float32 | bfloat16

# rule: e4m3-mix
nisa.nc_matmul(out, a, mn)  # trn3 [dtype-mismatch] float8_e4m3 | float8_e4m3fn

# rule: dst-dtype
nisa.nc_matmul(outb, st, mv)  # trn2 [operand-dtype] `dst` is bfloat16 | float32
nisa.nc_matmul(outb, st, mv)  # trn3 accepted

# rule: fp8-transpose
nisa.nc_matmul(o8[:, 0:128], a, identity, is_transpose=True)  # [dtype-mismatch] `dst` is float8_e4m3 with elements side by side | 16 bits
nisa.nc_matmul(o8[:, ::2], a, identity, is_transpose=True)  # accepted
nisa.nc_matmul(outt, a, identity, is_transpose=True)  # accepted

# rule: contraction
nisa.nc_matmul(out, st, few)  # [partition-mismatch] 64 partitions | 128

# rule: rows
nisa.nc_matmul(out, st, mv, tile_position=(0, 0), tile_size=(64, 128))  # [tile-size] 128 partitions, but the row tile has 64

# rule: columns
nisa.nc_matmul(outw, wide, mv)  # [tile-size] 130 elements | 128

# rule: moving-size
nisa.nc_matmul(outl, st, long)  # trn2 [tile-size] 1024 | trn2 is 512
nisa.nc_matmul(out, st, m5)  # trn3 [tile-size] 8192 | 4096

# rule: one-bank
nisa.nc_matmul(outl[:, 256:768], st, mv)  # trn2 [psum-bank] bytes 1024 to 3071 | multiple of 2048
nisa.nc_matmul(outl[:, 512:1024], st, mv)  # trn2 accepted
nisa.nc_matmul(outl[:, 256:768], st, mv)  # trn3 accepted

# rule: dst-size
nisa.nc_matmul(outs, st, mv)  # [shape-mismatch] 64 partitions x 256 | 64 x 512
