import nki.collectives as ncc
half = nl.ndarray((64, 64), nl.float32, nl.hbm)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)

# rule: ranks
ncc.collective_permute([h], [k], [(0, 1), (0, 2)])  # [operand-value] rank 0 twice as a source
ncc.collective_permute([h], [k], [(0, 1), (2, 1)])  # [operand-value] rank 1 twice as a target
ncc.collective_permute([h], [k], [(0, 1, 2)])  # [operand-value] [0, 1, 2], which is not a pair
ncc.collective_permute([h], [k], [(0, -1)])  # [operand-value] rank -1
ncc.collective_permute([s], [s], [(0, 1)])  # [operand-memory] in sbuf, but must be in hbm
ncc.collective_permute([h], [k], [(0, 1), (1, 0)])  # accepted

# rule: one-tensor
ncc.collective_permute([h, h], [k, k], [(0, 1)])  # [operand-value] `srcs` has 2 tensors, but must have one

# rule: shape
ncc.collective_permute([h], [half], [(0, 1)])  # [shape-mismatch] [64, 64] | of the same shape
