s = nl.ndarray((128, 4), nl.bfloat16, nl.sbuf)
v = nl.ndarray((128, 8), nl.bfloat16, nl.sbuf)
x = nl.ndarray((128, 8), nl.uint32, nl.sbuf)
x7 = nl.ndarray((128, 7), nl.uint32, nl.sbuf)
few = nl.ndarray((64, 8), nl.bfloat16, nl.sbuf)
fx = nl.ndarray((64, 8), nl.uint32, nl.sbuf)
odd = nl.ndarray((24, 4), nl.bfloat16, nl.sbuf)
ov = nl.ndarray((24, 8), nl.bfloat16, nl.sbuf)
ox = nl.ndarray((24, 8), nl.uint32, nl.sbuf)
v0 = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
x0 = nl.ndarray((128, 64), nl.uint32, nl.sbuf)

# rule: same-partitions
nisa.topk(few, fx, s, 64)  # [partition-mismatch] 64 | 128

# rule: same-size
nisa.topk(v, x7, s, 64)  # [shape-mismatch] 7 | 8

# rule: cores
nisa.topk(ov, ox, odd, 64)  # [partition-size] 24 | 16

# rule: n
nisa.topk(v, x, s, 7)  # [operand-value] 7 | 8 to 65535
nisa.topk(v, x, s, 65536)  # [operand-value] 65536

# rule: k
nisa.topk(v0, x0, s, 60)  # [free-size] k = 64 | `n` = 60

# rule: dst-rank
nisa.topk(v.reshape((128, 2, 4)), x, s, 64)  # [access-pattern] `val_dst` has 3 dimensions

# rule: src-size
nisa.topk(v, x, s, 65)  # [free-size] 4 elements | must have 5
nisa.topk(v, x, s, 64)  # accepted
