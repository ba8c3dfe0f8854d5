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
colt = nl.ndarray((128, 1), nl.tfloat32, nl.sbuf)

# rule: same-size
nisa.activation_reduce(d, nl.exp, short, nl.add, col)  # [shape-mismatch] 63 | 64

# rule: per-partition
nisa.activation_reduce(d, nl.exp, s, nl.add, two)  # [shape-mismatch] (128, 1)

# rule: bias-target
nisa.activation_reduce(d, nl.exp, s, nl.add, col, bias=1.0)  # trn1 [operand-kind] trn1

# rule: bias-dtype
nisa.activation_reduce(d, nl.exp, s, nl.add, col, bias=colt)  # [operand-dtype] tfloat32

# rule: reduce-op
nisa.activation_reduce(d, nl.exp, s, nl.maximum, col)  # [op-unsupported] maximum | add
nisa.activation_reduce(d, nl.exp, s, nl.subtract, col)  # trn2 [op-unsupported] subtract

# rule: reciprocal-bias
nisa.activation_reduce(d, nl.reciprocal, s, nl.add, col, bias=col)  # trn1 [op-unsupported] takes no `bias` on trn1
nisa.activation_reduce(d, nl.reciprocal, s, nl.add, col, bias=col)  # trn2 accepted
