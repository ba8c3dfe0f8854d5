import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
half = nl.ndarray((64, 64), nl.float32, nl.hbm)

# rule: dim
ncc.all_to_all([h], [k], g, 1)  # [operand-value] `collective_dim` is 1 | must be 0
ncc.all_to_all([s], [s], g, 0)  # [operand-memory] in sbuf, but must be in hbm
ncc.all_to_all([h], [k], g, 0)  # accepted

# rule: splits
ncc.all_to_all([h], [k], ncc.ReplicaGroup([[0, 1, 2]]), 0)  # [shape-mismatch] [128, 64] | 3 equal parts

# rule: shape
ncc.all_to_all([h], [half], g, 0)  # [shape-mismatch] [64, 64] | as many elements
ncc.all_to_all([h.reshape((2, 64, 64))], [k], g, 0)  # accepted
