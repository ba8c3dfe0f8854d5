s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
q = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
col = nl.ndarray((128, 1), nl.float32, nl.sbuf)
two = nl.ndarray((128, 2), nl.float32, nl.sbuf)
colb = nl.ndarray((128, 1), nl.bfloat16, nl.sbuf)

# rule: same-size
nisa.affine_select(d, [[1, 64]], 0, short, 0.0)  # [shape-mismatch] 63 | 64
nisa.affine_select(d, [[1, 64]], 0, few, 0.0)  # [partition-mismatch] 64 partitions | 128

# rule: comparison
nisa.affine_select(d, [[1, 64]], 0, s, 0.0, cmp_op=nl.add)  # [operand-value] add | greater_equal

# rule: pattern-dims
nisa.affine_select(d, [[1, 64], [1, 1], [1, 1], [1, 1], [1, 1]], 0, s, 0.0)  # [operand-value] 5 dimensions | 1 to 4
nisa.affine_select(d, [], 0, s, 0.0)  # [operand-value] 0 dimensions

# rule: int32
nisa.affine_select(d, [[1, 64]], 0, s, 0.0, cmp_op=nl.greater, offset=1 << 40)  # [operand-value] 1099511627776 | offset | 32 bits

# rule: pattern-count
nisa.affine_select(d, [[1, 63]], 0, s, 0.0)  # [shape-mismatch] 63 | 64
nisa.affine_select(d, [[8, 8], [1, 8]], 0, s, 0.0)  # accepted
