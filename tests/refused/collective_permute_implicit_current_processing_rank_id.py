import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1]])

# rule: channel
ncc.collective_permute_implicit_current_processing_rank_id(0, g, 4)  # [operand-value] channel 4 is not 0 to 3
ncc.collective_permute_implicit_current_processing_rank_id(0, ncc.ReplicaGroup([[0, 0]]))  # [operand-value] rank 0 twice
ncc.collective_permute_implicit_current_processing_rank_id(0, g, 3)  # accepted
