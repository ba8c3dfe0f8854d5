d = nl.ndarray((128, 6), nl.uint32, nl.sbuf)
v = nl.ndarray((128, 24), nl.uint32, nl.sbuf)
p = nl.ndarray((128, 6), nl.uint32, nl.psum)
pv = nl.ndarray((128, 24), nl.uint32, nl.psum)

# rule: words
nisa.rand_get_state(v)  # [shape-mismatch] 6 words
nisa.rand_get_state(d, engine=nisa.engine.vector)  # trn3 [shape-mismatch] 24 words
nisa.rand_get_state(v, engine=nisa.engine.vector)  # trn3 accepted

# rule: psum-target
nisa.rand_get_state(p)  # trn2 [operand-memory] psum | trn2

# rule: gpsimd-psum
nisa.rand_get_state(p)  # trn3 [psum-gpsimd] `dst` is in PSUM
nisa.rand_get_state(pv, engine=nisa.engine.vector)  # trn3 accepted
