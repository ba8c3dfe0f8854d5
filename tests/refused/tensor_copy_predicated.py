s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
q = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
b = nl.ndarray((128, 64), nl.int8, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
col = nl.ndarray((128, 1), nl.float32, nl.sbuf)
two = nl.ndarray((128, 2), nl.float32, nl.sbuf)
colb = nl.ndarray((128, 1), nl.bfloat16, nl.sbuf)
m = nl.ndarray((128, 64), nl.uint8, nl.sbuf)
m63 = nl.ndarray((128, 63), nl.uint8, nl.sbuf)
s5 = nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf)
d5 = nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf)
m5 = nl.ndarray((128, 1, 2, 4, 8), nl.uint8, nl.sbuf)
mp = nl.ndarray((128, 64), nl.uint8, nl.psum)

# rule: same-size
nisa.tensor_copy_predicated(d, s, m63)  # [shape-mismatch] `predicate` | 63
nisa.tensor_copy_predicated(d, short, m)  # [shape-mismatch] `src`

# rule: rank
nisa.tensor_copy_predicated(d5, s5, m5)  # [access-pattern] `dst` has 5 dimensions | 4
nisa.tensor_copy_predicated(d, s, m5)  # [access-pattern] `predicate` has 5 dimensions
nisa.tensor_copy_predicated(d, s5, m)  # [access-pattern] `src` has 5 dimensions
nisa.tensor_copy_predicated(d5.reshape((128, 2, 4, 8)), s, m)  # accepted

# rule: both-psum
nisa.tensor_copy_predicated(d, p, mp)  # [psum-operands] `src` and `predicate`

# rule: same-dtype
nisa.tensor_copy_predicated(d, i, m)  # [operand-dtype] int32 | float32 | same dtype
nisa.tensor_copy_predicated(d, s, m, reverse_pred=True)  # accepted

# rule: number-range
nisa.tensor_copy_predicated(b, 300, m)  # [memset-value] `dst` is int8 | `src` is 300 | -128 to 127
nisa.tensor_copy_predicated(i, 2.5, m)  # [memset-value] 2.5
nisa.tensor_copy_predicated(i, 0xFFFFFFFF, m)  # accepted
nisa.tensor_copy_predicated(i, 2.0, m)  # accepted
