s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
q = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
col = nl.ndarray((128, 1), nl.float32, nl.sbuf)
two = nl.ndarray((128, 2), nl.float32, nl.sbuf)
colb = nl.ndarray((128, 1), nl.bfloat16, nl.sbuf)
x = nl.ndarray((128, 64), nl.float8_e4m3fn_x4, nl.sbuf)
y = nl.ndarray((128, 64), nl.float8_e5m2_x4, nl.sbuf)

# rule: packed-copy
nisa.tensor_copy(x, y)  # trn3 [dtype-mismatch] float8_e4m3fn_x4 | float8_e5m2_x4
nisa.tensor_copy(x, x)  # trn3 accepted

# rule: same-size
nisa.tensor_copy(d, short)  # [shape-mismatch] 64 | 63
nisa.tensor_copy(d, few)  # [partition-mismatch] 128 | 64

# rule: gpsimd-psum
nisa.tensor_copy(d, p, engine=nisa.engine.gpsimd)  # [psum-gpsimd] `src` is in PSUM
nisa.tensor_copy(p, d, engine=nisa.engine.gpsimd)  # [psum-gpsimd] `dst` is in PSUM
nisa.tensor_copy(p, d, engine=nisa.engine.scalar)  # accepted
