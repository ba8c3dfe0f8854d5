s = nl.ndarray((1, 64), nl.float32, nl.sbuf)
d = nl.ndarray((1, 2, 64), nl.float32, nl.sbuf)
two = nl.ndarray((2, 64), nl.float32, nl.sbuf)
d2 = nl.ndarray((2, 2, 64), nl.float32, nl.sbuf)
short = nl.ndarray((1, 64), nl.float32, nl.sbuf)

# rule: one-partition
nisa.sequence_bounds(d, two)  # [partition-size] `segment_ids` has 2 partitions
nisa.sequence_bounds(d2, s)  # [partition-size] `dst` has 2 partitions

# rule: dst-size
nisa.sequence_bounds(short, s)  # [shape-mismatch] [1, 64] | [1, 2, 64]
nisa.sequence_bounds(d, s)  # accepted
