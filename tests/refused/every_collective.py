import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
b = nl.ndarray((128, 64), nl.bfloat16, nl.hbm)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
s3 = nl.ndarray((128, 8, 8), nl.float32, nl.sbuf)
d3 = nl.ndarray((128, 8, 8), nl.float32, nl.sbuf)

# rule: groups
ncc.all_reduce([h], [k], ncc.ReplicaGroup([[0, 1], [1, 2]]), nl.add)  # [operand-value] rank 1 twice
ncc.all_reduce([h], [k], ncc.ReplicaGroup([[0, 1], [2]]), nl.add)  # [operand-value] groups of 2 and of 1 ranks
ncc.all_reduce([h], [k], ncc.ReplicaGroup([[0, -1]]), nl.add)  # [operand-value] rank -1
ncc.all_reduce([h], [k], ncc.ReplicaGroup([[0, 70000]]), nl.add)  # [operand-value] rank 70000, which is not 0 to 65535
ncc.all_reduce([h], [k], ncc.ReplicaGroup([]), nl.add)  # [operand-value] no ranks
ncc.all_reduce([h], [k], g, nl.add)  # accepted

# rule: pairs
ncc.all_reduce([h, k], [k], g, nl.add)  # [operand-value] `srcs` has 2 tensors, but `dsts` has 1
ncc.all_reduce([], [], g, nl.add)  # [operand-value] `srcs` has 0 tensors

# rule: one-memory
ncc.all_reduce([s], [k], g, nl.add)  # [operand-memory] some tensors are in sbuf, some in HBM
ncc.all_reduce([s], [d], g, nl.add)  # accepted

# rule: coalesced
ncc.all_reduce([s, s], [d, d], g, nl.add)  # [operand-value] `srcs` has 2 tensors in sbuf
ncc.all_reduce([h, h], [k, k], g, nl.add)  # accepted

# rule: sbuf-dims
ncc.all_reduce([s3], [d3], g, nl.add)  # [shape-mismatch] [128, 8, 8] | two dimensions | reshape

# rule: same-dtype
ncc.all_reduce([b], [k], g, nl.add)  # [dtype-mismatch] a source is bfloat16, its destination float32

# rule: priority
ncc.all_reduce([h], [k], g, nl.add, priority=1)  # trn2 [unsupported-on-target] `priority` | trn3
ncc.all_reduce([h], [k], g, nl.add, priority=4)  # trn3 [operand-value] `priority` is 4 | 0 to 3
ncc.all_reduce([h], [k], g, nl.add, priority=3)  # trn3 accepted
