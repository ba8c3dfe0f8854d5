s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((64, 128), nl.float32, nl.psum)
t = nl.ndarray((64, 128), nl.float32, nl.sbuf)
wide = nl.ndarray((128, 130), nl.bfloat16, nl.sbuf)
ow = nl.ndarray((128, 128), nl.bfloat16, nl.psum)
a = nl.ndarray((32, 32), nl.float32, nl.sbuf)
b = nl.ndarray((32, 32), nl.float32, nl.sbuf)
q = nl.ndarray((32, 32), nl.bfloat16, nl.psum)
ps = nl.ndarray((128, 64), nl.float32, nl.psum)
pl = nl.ndarray((64, 1024), nl.float32, nl.psum)
s3 = nl.ndarray((32, 48), nl.float32, nl.sbuf)
s8 = nl.ndarray((128, 64), nl.float8_e4m3, nl.sbuf)
o8 = nl.ndarray((64, 256), nl.float8_e4m3, nl.psum)
d3 = nl.ndarray((48, 32), nl.float32, nl.sbuf)

# rule: dst-size
nisa.nc_transpose(ps, s)  # [shape-mismatch] 128 x 64 | 64 x 128

# rule: same-dtype
nisa.nc_transpose(q, a)  # [dtype-mismatch] bfloat16 | float32

# rule: fp8
nisa.nc_transpose(o8[:, 0:128], s8)  # [dtype-mismatch] `dst` is float8_e4m3 with elements side by side | 16 bits
nisa.nc_transpose(o8[:, ::2], s8)  # accepted
nisa.nc_transpose(o8[:, 0:128], s8)  # trn1 accepted
nisa.nc_transpose(o8[0:32, 0:32], s8[0:32, 0:32], engine=nisa.engine.vector)  # accepted

# rule: tensor-size
nisa.nc_transpose(ow, wide)  # [tile-size] 128 x 130 | 128 x 128
nisa.nc_transpose(ow, wide[0:128, 0:128])  # accepted

# rule: tensor-memory
nisa.nc_transpose(t, s)  # [operand-memory] `dst` is in sbuf | psum
nisa.nc_transpose(p, ps)  # [operand-memory] `data` is in psum | sbuf
nisa.nc_transpose(b, a, engine=nisa.engine.tensor)  # [operand-memory] `dst` is in sbuf

# rule: one-bank
nisa.nc_transpose(pl[:, 448:576], s)  # [psum-bank] bytes 1792 to 2303
nisa.nc_transpose(pl[:, 448:576], s)  # trn3 accepted

# rule: vector-size
nisa.nc_transpose(d3, s3, engine=nisa.engine.vector)  # [tile-size] 32 x 48 | 32 x 32
