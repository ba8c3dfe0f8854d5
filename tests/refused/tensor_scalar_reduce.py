s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
q = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((64, 64), nl.float32, nl.sbuf)
col = nl.ndarray((128, 1), nl.float32, nl.sbuf)
two = nl.ndarray((128, 2), nl.float32, nl.sbuf)
s4 = nl.ndarray((128, 2, 4, 8), nl.float32, nl.sbuf)
d4 = nl.ndarray((128, 2, 4, 8), nl.float32, nl.sbuf)
s5 = nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf)
d5 = nl.ndarray((128, 1, 2, 4, 8), nl.float32, nl.sbuf)
colb = nl.ndarray((128, 1), nl.bfloat16, nl.sbuf)

# rule: same-size
nisa.tensor_scalar_reduce(d, short, nl.add, 1.0, nl.add, col)  # [shape-mismatch] 64 | 63

# rule: rank
nisa.tensor_scalar_reduce(d5, s5, nl.add, 1.0, nl.add, col)  # [access-pattern] `data` has 5 dimensions | 4
nisa.tensor_scalar_reduce(d5, s, nl.add, 1.0, nl.add, col)  # [access-pattern] `dst` has 5 dimensions | 4
nisa.tensor_scalar_reduce(d4, s4, nl.add, 1.0, nl.add, col)  # accepted

# rule: op-target
nisa.tensor_scalar_reduce(d, s, nl.abs_max, 1.0, nl.add, col)  # trn2 [op-unsupported] trn3

# rule: arithmetic
nisa.tensor_scalar_reduce(d, s, nl.bitwise_and, 1, nl.add, col)  # [op-unsupported] bitwise_and

# rule: operand
nisa.tensor_scalar_reduce(d, s, nl.add, None, nl.add, col)  # [missing-operand] `op0=add` needs

# rule: unary-operand
nisa.tensor_scalar_reduce(d, s, nl.abs, 1.0, nl.add, col)  # [operand-value] None or 0

# rule: per-partition
nisa.tensor_scalar_reduce(d, s, nl.add, two, nl.add, col)  # [shape-mismatch] `operand0`
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, two)  # [shape-mismatch] `reduce_res`

# rule: reverse
nisa.tensor_scalar_reduce(d, s, nl.subtract, 1.0, nl.add, col, reverse0=True)  # [op-unsupported] reverse0

# rule: reduce-op
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.subtract, col)  # [op-unsupported] subtract | minimum

# rule: reduce-cmd
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, col, reduce_cmd=nisa.reduce_cmd.idle)  # [op-unsupported] idle

# rule: init
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, col, reduce_cmd=nisa.reduce_cmd.load_reduce)  # [missing-operand] `reduce_init`
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, col, reduce_init=1.0)  # [operand-value] load_reduce
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, col, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=col)  # accepted
nisa.tensor_scalar_reduce(d, s, nl.add, 1.0, nl.add, col, reduce_cmd=nisa.reduce_cmd.reduce, reduce_res_negate=True)  # accepted
