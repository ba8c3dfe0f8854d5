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

# rule: same-size
nisa.nc_match_replace8(short, s, v, 0.0)  # [shape-mismatch] 63 | 64

# rule: same-partitions
nisa.nc_match_replace8(d, s, fv, 0.0)  # [partition-mismatch] `vals`
nisa.nc_match_replace8(d, s, v, 0.0, few)  # [partition-mismatch] `dst_idx`

# rule: data-size
nisa.nc_match_replace8(smalld, small, v, 0.0)  # [free-size] 7
nisa.nc_match_replace8(bigd, big, v, 0.0)  # [free-size] 16385

# rule: rank
nisa.nc_match_replace8(r4d, r4, v, 0.0)  # [access-pattern] 4 dimensions

# rule: vals-size
nisa.nc_match_replace8(d, s, v7, 0.0)  # [shape-mismatch] 7

# rule: index-size
nisa.nc_match_replace8(d, s, v, 0.0, x7)  # [shape-mismatch] 7 | 8
nisa.nc_match_replace8(d, s, v, 0.0, x)  # accepted
