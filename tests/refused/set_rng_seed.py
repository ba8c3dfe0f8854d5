s = nl.ndarray((1, 2), nl.uint32, nl.sbuf)
o = nl.ndarray((1, 1), nl.uint32, nl.sbuf)

# rule: one-element
nisa.set_rng_seed(s)  # [shape-mismatch] [1, 2] | [1, 1]
nisa.set_rng_seed(o)  # accepted
