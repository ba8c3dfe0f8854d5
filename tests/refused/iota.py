d = nl.ndarray((128, 64), nl.int32, nl.sbuf)

# rule: pattern-dims
nisa.iota(d, [[1, 64], [1, 1], [1, 1], [1, 1], [1, 1]])  # [operand-value] 5 dimensions | 1 to 4

# rule: int32
nisa.iota(d, [[1, 64]], channel_multiplier=1 << 33)  # [operand-value] 8589934592 | channel_multiplier
nisa.iota(d, [[1 << 33, 64]])  # [operand-value] pattern

# rule: pattern-count
nisa.iota(d, [[1, 8], [1, 7]])  # [shape-mismatch] [8, 7] | 64
