s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
v = nl.ndarray((128, 8), nl.float32, nl.sbuf)
x = nl.ndarray((128, 8), nl.uint32, nl.sbuf)
x16 = nl.ndarray((128, 8), nl.uint16, nl.sbuf)
v7 = nl.ndarray((128, 7), nl.float32, nl.sbuf)
x7 = nl.ndarray((128, 7), nl.uint32, nl.sbuf)
few = nl.ndarray((64, 8), nl.uint32, nl.sbuf)
fv = nl.ndarray((64, 8), nl.float32, nl.sbuf)
fd = nl.ndarray((64, 8), nl.float32, nl.sbuf)
small = nl.ndarray((128, 7), nl.float32, nl.sbuf)
big = nl.ndarray((128, 16385), nl.float32, nl.sbuf)
r4 = nl.ndarray((128, 2, 4, 8), nl.float32, nl.sbuf)
v4 = nl.ndarray((128, 2, 2, 2), nl.float32, nl.sbuf)
x3 = nl.ndarray((128, 2, 4), nl.uint32, nl.sbuf)
o = nl.ndarray((128, 8), nl.float32, nl.sbuf)
o3 = nl.ndarray((128, 2, 4), nl.float32, nl.sbuf)
o7 = nl.ndarray((128, 7), nl.float32, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
bigd = nl.ndarray((128, 16385), nl.float32, nl.sbuf)
smalld = nl.ndarray((128, 7), nl.float32, nl.sbuf)
r4d = nl.ndarray((128, 2, 4, 8), nl.float32, nl.sbuf)

# rule: same-partitions
nisa.nc_find_index8(few, s, v)  # [partition-mismatch] 64
nisa.nc_find_index8(x, s, fv)  # [partition-mismatch] `vals`

# rule: data-size
nisa.nc_find_index8(x, small, v)  # [free-size] 7
nisa.nc_find_index8(x, big, v)  # [free-size] 16385

# rule: rank
nisa.nc_find_index8(x, r4, v)  # [access-pattern] `data` has 4
nisa.nc_find_index8(x, s, v4)  # [access-pattern] `vals` has 4

# rule: vals-size
nisa.nc_find_index8(x, s, v7)  # [shape-mismatch] 7 | 8

# rule: dst-rank
nisa.nc_find_index8(x3, s, v)  # [access-pattern] 3 dimensions

# rule: dst-size
nisa.nc_find_index8(x7, s, v)  # [shape-mismatch] 7 | 8
nisa.nc_find_index8(x16, s, v)  # accepted
