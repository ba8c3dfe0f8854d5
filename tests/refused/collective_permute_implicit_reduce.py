import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])
half = nl.ndarray((64, 64), nl.float32, nl.hbm)

# rule: op
ncc.collective_permute_implicit_reduce([[h]], [[h]], [[k]], g, nl.divide)  # [op-unsupported] `op` is divide

# rule: channels
ncc.collective_permute_implicit_reduce([[h]], [[h]], [[k]], g, nl.add, channel_ids=[1])  # [operand-value] `channel_ids` is [1] | consecutive from 0
ncc.collective_permute_implicit_reduce([[h], [h], [h], [h], [h]], [[h], [h], [h], [h], [h]], [[k], [k], [k], [k], [k]], g, nl.add, channel_ids=[0, 1, 2, 3, 4])  # [operand-value] at most 4
ncc.collective_permute_implicit_reduce([[h]], [[h]], [[k]], g, nl.add)  # accepted

# rule: by-channel
ncc.collective_permute_implicit_reduce([[h]], [[h]], [[k]], g, nl.add, channel_ids=[0, 1])  # [operand-value] `channel_ids` has 2 channels, but `dsts_by_channel` has 1
ncc.collective_permute_implicit_reduce([[h], [h]], [[h], [h]], [[k]], g, nl.add)  # [operand-value] the sources have 2 channels, but `dsts_by_channel` has 1
ncc.collective_permute_implicit_reduce([[h, h]], [[h, h]], [[k]], g, nl.add)  # [operand-kind] `srcs

# rule: shape
ncc.collective_permute_implicit_reduce([[h]], [[h]], [[half]], g, nl.add)  # [shape-mismatch] [64, 64] | of the same shape
