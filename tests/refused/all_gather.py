import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
wide = nl.ndarray((128, 128), nl.float32, nl.sbuf)
two = nl.ndarray((256, 64), nl.float32, nl.hbm)
three = nl.ndarray((128, 128), nl.float32, nl.hbm)

# rule: dim
ncc.all_gather([h], [three], g, 1)  # [operand-value] `collective_dim` is 1, for tensors in HBM it must be 0
ncc.all_gather([s], [wide], g, 2)  # [operand-value] `collective_dim` is 2, for tensors in sbuf it must be 0 to 1
ncc.all_gather([s], [wide], g, 1)  # accepted

# rule: shape
ncc.all_gather([h], [k], g, 0)  # [shape-mismatch] [128, 64] | 2 times as large in dimension 0
ncc.all_gather([h], [two], g, 0)  # accepted
