s = nl.ndarray((128, 64), nl.int32, nl.sbuf)
l = nl.ndarray((1, 1), nl.int64, nl.sbuf)

# rule: one-element
nisa.scalar_load(s)  # [shape-mismatch] 8192 elements | one
nisa.scalar_load(s[0:1, 0:1])  # accepted
nisa.scalar_load(l)  # accepted
