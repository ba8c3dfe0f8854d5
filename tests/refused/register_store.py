s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
r = nisa.register_alloc(1)

# rule: one-element
nisa.register_store(s, r)  # [shape-mismatch] 8192 elements | one
