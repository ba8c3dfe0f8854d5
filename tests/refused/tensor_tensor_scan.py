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
nisa.tensor_tensor_scan(d, s, short, 0.0, nl.add, nl.add)  # [shape-mismatch] `data1` | 63

# rule: both-psum
nisa.tensor_tensor_scan(d, p, q, 0.0, nl.add, nl.add)  # [psum-operands] `data0` and `data1`

# rule: per-partition
nisa.tensor_tensor_scan(d, s, s, two, nl.add, nl.add)  # [shape-mismatch] `initial`

# rule: arithmetic
nisa.tensor_tensor_scan(d, s, s, 0.0, nl.bitwise_and, nl.add)  # [op-unsupported] bitwise_and
nisa.tensor_tensor_scan(d, s, s, 0.0, nl.add, nl.abs)  # [op-unsupported] abs

# rule: op-target
nisa.tensor_tensor_scan(d, s, s, 0.0, nl.abs_max, nl.add)  # trn2 [op-unsupported] trn3
nisa.tensor_tensor_scan(d, s, s, 0.0, nl.multiply, nl.add, reverse0=True)  # accepted
