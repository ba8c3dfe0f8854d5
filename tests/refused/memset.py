x = nl.ndarray((128, 64), nl.float8_e4m3fn_x4, nl.sbuf)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
c = nl.ndarray((128, 64), nl.uint8, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)

# rule: value-kind
nisa.memset(i, 1.5)  # [memset-value] int32 | 1.5

# rule: packed-zero
nisa.memset(x, 1)  # trn3 [memset-value] float8_e4m3fn_x4 | 0
nisa.memset(x, 0)  # trn3 accepted

# rule: value-range
nisa.memset(c, 256)  # [memset-value] 256 | uint8 | 255
nisa.memset(c, -1)  # accepted

# rule: gpsimd-psum
nisa.memset(p, 0.0, engine=nisa.engine.gpsimd)  # [psum-gpsimd] PSUM
nisa.memset(p, 0.0, engine=nisa.engine.vector)  # accepted
