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
t = nl.ndarray((128, 4, 8), nl.float32, nl.sbuf)
one = nl.ndarray((128, 1, 8), nl.float32, nl.sbuf)
last = nl.ndarray((128, 8, 1), nl.float32, nl.sbuf)
k4 = nl.ndarray((128, 4), nl.float32, nl.sbuf)
ti = nl.ndarray((128, 4, 8), nl.int32, nl.sbuf)
ki = nl.ndarray((128, 4), nl.int32, nl.sbuf)
k3 = nl.ndarray((128, 3), nl.float32, nl.sbuf)
fk = nl.ndarray((64, 4), nl.float32, nl.sbuf)

# rule: reduction
nisa.tensor_reduce(k4, nl.divide, t, 2)  # [op-unsupported] divide
nisa.tensor_reduce(k4, nl.add, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.subtract, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.multiply, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.maximum, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.minimum, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.logical_and, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.logical_or, t, 2)  # accepted
nisa.tensor_reduce(k4, nl.logical_xor, t, 2)  # accepted
nisa.tensor_reduce(ki, nl.bitwise_and, ti, 2)  # accepted
nisa.tensor_reduce(ki, nl.bitwise_or, ti, 2)  # accepted
nisa.tensor_reduce(ki, nl.bitwise_xor, ti, 2)  # accepted

# rule: same-partitions
nisa.tensor_reduce(fk, nl.add, t, 2)  # [partition-mismatch] 64 | 128

# rule: bitvec-ints
nisa.tensor_reduce(k4, nl.bitwise_or, t, 2)  # [bitvec-dtype] float32

# rule: negate
nisa.tensor_reduce(ki, nl.bitwise_or, ti, 2, negate=True)  # [op-unsupported] negated

# rule: axis
nisa.tensor_reduce(k4, nl.add, t, 1)  # [reduce-axis] [1] | last dimensions
nisa.tensor_reduce(k4, nl.add, t, ())  # [reduce-axis] no axis of `data` with shape
nisa.tensor_reduce(k4, nl.add, t, (0, 1, 2))  # [reduce-axis] axis 0 is the partitions
nisa.tensor_reduce(col, nl.add, one, 1)  # accepted
nisa.tensor_reduce(col, nl.add, one, 2)  # accepted
nisa.tensor_reduce(col, nl.add, last, 1)  # accepted

# rule: dst-size
nisa.tensor_reduce(k3, nl.add, t, 2)  # [shape-mismatch] 4 elements | 3
