s = nl.ndarray((128, 64), nl.int32, nl.sbuf)
v = nisa.scalar_load(s[0:1, 0:1])

# rule: one-element
nisa.scalar_store(s, v)  # [shape-mismatch] 8192 elements | one
nisa.scalar_store(s[0:1, 1:2], v)  # accepted
