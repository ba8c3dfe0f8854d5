st = nl.ndarray((128, 64), nl.float8_e4m3fn_x4, nl.sbuf)
mv = nl.ndarray((128, 512), nl.float8_e4m3fn_x4, nl.sbuf)
out = nl.ndarray((64, 512), nl.float32, nl.psum)
ss = nl.ndarray((128, 64), nl.uint8, nl.sbuf)
ms = nl.ndarray((128, 512), nl.uint8, nl.sbuf)
s40 = nl.ndarray((40, 64), nl.float8_e4m3fn_x4, nl.sbuf)
m40 = nl.ndarray((40, 512), nl.float8_e4m3fn_x4, nl.sbuf)
m64 = nl.ndarray((64, 512), nl.float8_e4m3fn_x4, nl.sbuf)
odd = nl.ndarray((128, 63), nl.float8_e4m3fn_x4, nl.sbuf)
outo = nl.ndarray((63, 512), nl.float32, nl.psum)
long = nl.ndarray((128, 4097), nl.float8_e4m3fn_x4, nl.sbuf)
ss63 = nl.ndarray((128, 63), nl.uint8, nl.sbuf)
ss4 = nl.ndarray((4, 64), nl.uint8, nl.sbuf)
small = nl.ndarray((64, 256), nl.float32, nl.psum)

# rule: tile-pair
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(0, 0))  # trn3 [operand-value] `tile_size` has 0 values
nisa.nc_matmul_mx(out, st, mv, ss, ms)  # trn3 accepted

# rule: tile-rows
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(0, 0), tile_size=(129, 128))  # trn3 [operand-value] row size is 129

# rule: tile-columns
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(0, 0), tile_size=(128, 64))  # trn3 [operand-value] column size 64 | 128
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(0, 64), tile_size=(128, 128))  # trn3 [operand-value] start column 64

# rule: tile-position
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(32, 0), tile_size=(64, 128))  # trn3 [operand-value] start row 32 | 64

# rule: quadrants
nisa.nc_matmul_mx(out, s40, m40, ss, ms)  # trn3 [partition-size] 40 partitions | 32, 64, 96 or 128

# rule: contraction
nisa.nc_matmul_mx(out, st, m64, ss, ms)  # trn3 [partition-mismatch] 64 | 128

# rule: rows
nisa.nc_matmul_mx(out, st, mv, ss, ms, tile_position=(0, 0), tile_size=(64, 128))  # trn3 [tile-size] 128 partitions | 64

# rule: columns
nisa.nc_matmul_mx(outo, odd, mv, ss, ms)  # trn3 [tile-size] 63 | even and at most 128

# rule: moving-size
nisa.nc_matmul_mx(out, st, long, ss, ms)  # trn3 [tile-size] 4097 | 4096

# rule: dst-size
nisa.nc_matmul_mx(small, st, mv, ss, ms)  # trn3 [shape-mismatch] 64 partitions x 256 | 64 x 512

# rule: scale-size
nisa.nc_matmul_mx(out, st, mv, ss63, ms)  # trn3 [shape-mismatch] 63 | 64

# rule: scale-partitions
nisa.nc_matmul_mx(out, st, mv, ss4, ms)  # trn3 [partition-size] 4 partitions | 100
nisa.nc_matmul_mx(out, st, mv, ss[0:16, 0:64], ms[4:20, 0:512])  # trn3 accepted
nisa.nc_matmul_mx(out, st, mv, ss[0:17, 0:64], ms)  # trn3 [partition-size] 17 partitions | 100

# rule: scale-start
nisa.nc_matmul_mx(out, st, mv, ss[2:110, 0:64], ms)  # trn3 [partition-start] partition 2 | 0, 4, 8 or 12

# rule: scale-quadrant
nisa.nc_matmul_mx(out, st[0:32, 0:64], mv[0:32, 0:512], ss[32:64, 0:64], ms[0:32, 0:512])  # trn3 [partition-start] partition 32 | quadrant

# rule: scale-stride
nisa.nc_matmul_mx(out, st, mv, ss[0:128:2, 0:64], ms)  # trn3 [partition-stride] stride of 2
