s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
x = nl.ndarray((128, 4), nl.uint16, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d2 = nl.ndarray((128, 63), nl.float32, nl.sbuf)
db = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
few = nl.ndarray((64, 4), nl.uint16, nl.sbuf)
odd = nl.ndarray((24, 64), nl.float32, nl.sbuf)
xodd = nl.ndarray((24, 4), nl.uint16, nl.sbuf)
dodd = nl.ndarray((24, 64), nl.float32, nl.sbuf)
wide = nl.ndarray((128, 257), nl.uint16, nl.sbuf)
dw = nl.ndarray((128, 4112), nl.float32, nl.sbuf)

# rule: same-partitions
nisa.local_gather(d, s, few)  # [partition-mismatch] 64 | 128

# rule: cores
nisa.local_gather(dodd, odd, xodd)  # [partition-size] 24 partitions | 16

# rule: same-dtype
nisa.local_gather(db, s, x)  # [operand-dtype] bfloat16 | float32 | same dtype

# rule: run
nisa.local_gather(d, s, x, num_elem_per_idx=3)  # [operand-value] 3 | 1, 2, 4, 8, 16 or 32

# rule: valid
nisa.local_gather(d, s, x, num_valid_indices=65)  # [operand-value] 65 | 64
nisa.local_gather(d, s, x, num_valid_indices=0)  # [operand-value] 0

# rule: indices
nisa.local_gather(dw, s, wide)  # [operand-value] 4112 | 4096

# rule: dst-size
nisa.local_gather(d2, s, x)  # [shape-mismatch] 63 | 64
nisa.local_gather(d, s, x)  # accepted
