import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
half = nl.ndarray((64, 64), nl.float32, nl.hbm)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
part = nl.ndarray((128, 32), nl.float32, nl.sbuf)

# rule: dim
ncc.reduce_scatter([h], [half], g, 1, nl.add)  # [operand-value] `collective_dim` is 1, for tensors in HBM it must be 0
ncc.reduce_scatter([s], [part], g, 1, nl.add)  # [operand-value] `collective_dim` is 1, for tensors in sbuf it must be 0
ncc.reduce_scatter([h], [half], g, 0, nl.add)  # accepted

# rule: op
ncc.reduce_scatter([h], [half], g, 0, nl.subtract)  # [op-unsupported] `op` is subtract

# rule: shape
ncc.reduce_scatter([h], [k], g, 0, nl.add)  # [shape-mismatch] [128, 64] | 2 times smaller in dimension 0
