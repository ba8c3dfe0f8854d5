s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
q = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
col = nl.ndarray((128, 1), nl.float32, nl.sbuf)
two = nl.ndarray((128, 2), nl.float32, nl.sbuf)
colb = nl.ndarray((128, 1), nl.bfloat16, nl.sbuf)
di = nl.ndarray((128, 64), nl.int32, nl.sbuf)
db = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
coli = nl.ndarray((128, 1), nl.int32, nl.sbuf)

# rule: same-size
nisa.dropout(d, short, 0.5)  # [shape-mismatch] 64 | 63

# rule: same-dtype
nisa.dropout(db, s, 0.5)  # [operand-dtype] bfloat16 | float32

# rule: per-partition
nisa.dropout(d, s, two)  # [shape-mismatch] (128, 1)

# rule: prob-range
nisa.dropout(d, s, 1.5)  # [operand-value] 1.5 | 0 to 1
nisa.dropout(d, s, -0.1)  # [operand-value] -0.1 | 0 to 1
nisa.dropout(d, s, float("nan"))  # [operand-value] NaN | 0 to 1
nisa.dropout(d, s, 0.0)  # accepted
nisa.dropout(d, s, 1.0)  # accepted

# rule: prob-dtype
nisa.dropout(di, i, colb)  # [operand-dtype] bfloat16 | float32
nisa.dropout(d, s, coli)  # [operand-dtype] int32 | float type
nisa.dropout(d, s, colb)  # accepted
