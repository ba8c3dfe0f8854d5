s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
x = nl.ndarray((128, 8), nl.uint32, nl.sbuf)
d = nl.ndarray((128, 8), nl.float32, nl.sbuf)
db = nl.ndarray((128, 8), nl.bfloat16, nl.sbuf)
d9 = nl.ndarray((128, 9), nl.float32, nl.sbuf)
few = nl.ndarray((64, 8), nl.uint32, nl.sbuf)

# rule: same-partitions
nisa.nc_n_gather(d, s, few)  # [partition-mismatch] 64 | 128

# rule: same-indices
nisa.nc_n_gather(d9, s, x)  # [shape-mismatch] 9 | 8

# rule: same-dtype
nisa.nc_n_gather(db, s, x)  # [operand-dtype] bfloat16 | float32
nisa.nc_n_gather(d, s, x)  # accepted
