d = nl.ndarray((128, 6), nl.uint32, nl.sbuf)
v = nl.ndarray((128, 24), nl.uint32, nl.sbuf)

# rule: words
nisa.rand_set_state(v)  # [shape-mismatch] 6 words
nisa.rand_set_state(d, engine=nisa.engine.vector)  # trn3 [shape-mismatch] 24 words
nisa.rand_set_state(d)  # accepted
