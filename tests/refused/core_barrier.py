hb = nl.ndarray((128, 64), nl.float32, nl.hbm)

# rule: shared
nisa.core_barrier(hb, (0, 1))  # [operand-memory] private_hbm | shared_hbm

# rule: cores
nisa.core_barrier(h, (0, 2))  # [operand-value] [0, 2] | 0 and 1
