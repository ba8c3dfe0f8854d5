s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((1, 64), nl.float32, nl.sbuf)
short = nl.ndarray((1, 63), nl.float32, nl.sbuf)
two = nl.ndarray((2, 64), nl.float32, nl.sbuf)

# rule: same-elements
nisa.tensor_partition_reduce(short, nl.add, s)  # [shape-mismatch] 63 | 64

# rule: rank
nisa.tensor_partition_reduce(d, nl.add, nl.ndarray((128, 1, 1, 2, 4, 8), nl.float32, nl.sbuf))  # [access-pattern] `data` has 6 dimensions | 5
nisa.tensor_partition_reduce(nl.ndarray((1, 1, 1, 2, 4, 8), nl.float32, nl.sbuf), nl.add, s)  # [access-pattern] `dst` has 6 dimensions | 5
nisa.tensor_partition_reduce(d, nl.add, nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf))  # accepted

# rule: bitvec-ints
nisa.tensor_partition_reduce(d, nl.bitwise_or, s)  # [bitvec-dtype] float32
nisa.tensor_partition_reduce(d, nl.average, s)  # accepted
nisa.tensor_partition_reduce(two, nl.add, s)  # accepted
nisa.tensor_partition_reduce(d, nl.mean, s)  # accepted
nisa.tensor_partition_reduce(d, nl.maximum, s)  # trn3 accepted
