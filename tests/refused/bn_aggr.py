s = nl.ndarray((128, 6), nl.float32, nl.sbuf)
d = nl.ndarray((128, 2), nl.float32, nl.sbuf)
s7 = nl.ndarray((128, 7), nl.float32, nl.sbuf)
few = nl.ndarray((64, 2), nl.float32, nl.sbuf)
d3 = nl.ndarray((128, 3), nl.float32, nl.sbuf)

# rule: same-partitions
nisa.bn_aggr(few, s)  # [partition-mismatch] 64 | 128

# rule: triples
nisa.bn_aggr(d, s7)  # [shape-mismatch] 7 | multiple of 3

# rule: rank
nisa.bn_aggr(d, nl.ndarray((128, 1, 1, 1, 2, 3), nl.float32, nl.sbuf))  # [access-pattern] `data` has 6 dimensions | 5
nisa.bn_aggr(d, nl.ndarray((128, 1, 1, 2, 3), nl.float32, nl.sbuf))  # accepted

# rule: dst-rank
nisa.bn_aggr(nl.ndarray((128, 1, 1, 2), nl.float32, nl.sbuf), s)  # [access-pattern] `dst` has 4 dimensions | 3
nisa.bn_aggr(nl.ndarray((128, 1, 2), nl.float32, nl.sbuf), s)  # accepted

# rule: dst-size
nisa.bn_aggr(d3, s)  # [shape-mismatch] 3 | 2
nisa.bn_aggr(d, s)  # accepted
