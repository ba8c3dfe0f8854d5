s = nl.ndarray((128, 8), nl.float32, nl.sbuf)
d = nl.ndarray((128, 9), nl.int32, nl.sbuf)
d8 = nl.ndarray((128, 8), nl.int32, nl.sbuf)
few = nl.ndarray((64, 9), nl.int32, nl.sbuf)

# rule: same-partitions
nisa.nonzero_with_count(few, s)  # [partition-mismatch] 64 | 128

# rule: one-more
nisa.nonzero_with_count(d8, s)  # [shape-mismatch] 8 elements | 9

# rule: int32
nisa.nonzero_with_count(d, s, index_offset=1 << 31)  # [operand-value] 2147483648 | int32
nisa.nonzero_with_count(d, s, padding_val=-(1 << 32))  # [operand-value] padding_val
nisa.nonzero_with_count(d, s)  # accepted
