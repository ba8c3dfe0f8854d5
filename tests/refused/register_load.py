s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
r = nisa.register_alloc()

# rule: one-element
nisa.register_load(r, s)  # [shape-mismatch] 8192 elements | one
nisa.register_load(r, s[0:1, 0:1])  # accepted
