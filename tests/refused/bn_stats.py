s = nl.ndarray((128, 512), nl.float32, nl.sbuf)
d = nl.ndarray((128, 6), nl.float32, nl.sbuf)
big = nl.ndarray((128, 513), nl.float32, nl.sbuf)
few = nl.ndarray((64, 6), nl.float32, nl.sbuf)
d3 = nl.ndarray((128, 3), nl.float32, nl.sbuf)

# rule: same-partitions
nisa.bn_stats(few, s)  # [partition-mismatch] 64 | 128

# rule: data-size
nisa.bn_stats(d, big)  # [free-size] 513 | 512

# rule: dst-size
nisa.bn_stats(d3, s)  # [shape-mismatch] 3 | 6
nisa.bn_stats(d, s)  # accepted
