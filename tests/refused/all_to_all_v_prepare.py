import nki.collectives as ncc
g = ncc.ReplicaGroup([[0, 1, 2, 3]])
m = nl.ndarray((3, 4), nl.uint32, nl.hbm)
m4 = nl.ndarray((4, 4), nl.uint32, nl.hbm)
ms = nl.ndarray((1, 3, 4), nl.uint32, nl.sbuf)
turned = nl.ndarray((3, 1, 4), nl.uint32, nl.sbuf)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)

# rule: one-tensor
ncc.all_to_all_v_prepare([h, h], [k, k], g, m)  # [operand-value] `srcs` has 2 tensors, but must have one
ncc.all_to_all_v_prepare([s], [k], g, m)  # [operand-memory] in sbuf, but must be in hbm
ncc.all_to_all_v_trigger(ncc.all_to_all_v_prepare([h], [k], g, m))  # accepted
ncc.all_to_all_v_trigger(ncc.all_to_all_v_prepare([h], [k], g, ms))  # accepted

# rule: flat
ncc.all_to_all_v_prepare([h[:, 0:32]], [k], g, m)  # [shape-mismatch] [128, 32] is not contiguous

# rule: metadata-shape
ncc.all_to_all_v_prepare([h], [k], g, nl.ndarray((5, 4), nl.uint32, nl.hbm))  # [shape-mismatch] [5, 4] | (3, 4)
ncc.all_to_all_v_prepare([h], [k], g, turned)  # [shape-mismatch] [3, 1, 4] | (1, 3, 4) in sbuf
ncc.all_to_all_v_prepare([h], [k], g, nl.ndarray((3, 4), nl.int32, nl.hbm))  # [operand-dtype] `metadata_tensor` is int32 | uint32
ncc.all_to_all_v_prepare([h], [k], g, m, has_rdispls=True)  # [shape-mismatch] [3, 4] | (4, 4)
ncc.all_to_all_v_trigger(ncc.all_to_all_v_prepare([h], [k], g, m4, has_rdispls=True))  # accepted

# rule: displacements
ncc.all_to_all_v_prepare([h], [k], g, m4, has_rdispls=True)  # trn1 [unsupported-on-target] `has_rdispls` needs trn2
