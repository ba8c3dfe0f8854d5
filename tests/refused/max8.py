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
r5 = nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf)
r6 = nl.ndarray((128, 1, 1, 2, 4, 8), nl.float32, nl.sbuf)
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
nisa.max8(fd, s)  # [partition-mismatch] 64 | 128

# rule: src-size
nisa.max8(o, small)  # [free-size] 7 | 8 to 16384
nisa.max8(o, big)  # [free-size] 16385

# rule: rank
nisa.max8(o, r6)  # [access-pattern] 6 dimensions | 5
nisa.max8(o, r5)  # accepted

# rule: dst-rank
nisa.max8(v4, s)  # [access-pattern] 4 dimensions | 3
nisa.max8(o3, s)  # accepted

# rule: dst-size
nisa.max8(o7, s)  # [shape-mismatch] 7 | 8
nisa.max8(o, s)  # accepted
