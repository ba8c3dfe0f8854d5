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

# rule: same-size
nisa.tensor_scalar_cumulative(d, short, nl.add, nl.add, 1.0)  # [shape-mismatch] 64 | 63

# rule: arithmetic
nisa.tensor_scalar_cumulative(d, s, nl.bitwise_and, nl.add, 1.0)  # [op-unsupported] bitwise_and
nisa.tensor_scalar_cumulative(d, s, nl.abs, nl.add, 1.0)  # [op-unsupported] abs

# rule: op-target
nisa.tensor_scalar_cumulative(d, s, nl.abs_max, nl.add, 1.0)  # trn2 [op-unsupported] trn3

# rule: running
nisa.tensor_scalar_cumulative(d, s, nl.add, nl.divide, 1.0)  # [op-unsupported] divide | minimum

# rule: reduce-cmd
nisa.tensor_scalar_cumulative(d, s, nl.add, nl.add, 1.0, reduce_cmd=nisa.reduce_cmd.idle)  # [op-unsupported] idle
nisa.tensor_scalar_cumulative(d, s, nl.add, nl.add, 1.0, 0.0, nisa.reduce_cmd.load_reduce)  # accepted

# rule: per-partition
nisa.tensor_scalar_cumulative(d, s, nl.add, nl.add, two)  # [shape-mismatch] `imm0`

# rule: init
nisa.tensor_scalar_cumulative(d, s, nl.add, nl.add, 1.0, reduce_cmd=nisa.reduce_cmd.load_reduce)  # [missing-operand] `imm1`
