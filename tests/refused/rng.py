i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
p = nl.ndarray((128, 64), nl.int32, nl.psum)

# rule: gpsimd-psum
nisa.rng(p, engine=nisa.engine.gpsimd)  # [psum-gpsimd] PSUM
nisa.rng(p)  # accepted
