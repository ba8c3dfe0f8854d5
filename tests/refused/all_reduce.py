import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
two = nl.ndarray((256, 64), nl.float32, nl.hbm)

# rule: op
ncc.all_reduce([h], [k], g, nl.multiply)  # [op-unsupported] `op` is multiply | add, minimum or maximum
ncc.all_reduce([h], [k], g, nl.minimum)  # accepted

# rule: shape
ncc.all_reduce([h], [two], g, nl.add)  # [shape-mismatch] [256, 64] | of the same shape
