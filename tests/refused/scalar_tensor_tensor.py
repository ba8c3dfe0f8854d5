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
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, short)  # [shape-mismatch] `operand1` | 63

# rule: per-partition
nisa.scalar_tensor_tensor(d, s, nl.add, two, nl.add, s)  # [shape-mismatch] `operand0` | (128, 1)

# rule: arithmetic
nisa.scalar_tensor_tensor(i, i, nl.bitwise_and, 1, nl.add, i)  # [op-unsupported] bitwise_and | arithmetic
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.left_shift, s)  # [op-unsupported] left_shift

# rule: op-target
nisa.scalar_tensor_tensor(d, s, nl.abs_max, 1.0, nl.add, s)  # trn2 [op-unsupported] trn3
nisa.scalar_tensor_tensor(d, s, nl.abs_max, 1.0, nl.add, s)  # trn3 accepted

# rule: unary
nisa.scalar_tensor_tensor(d, s, nl.abs, 1.0, nl.add, s)  # [operand-value] `op0=abs` takes one operand
nisa.scalar_tensor_tensor(d, s, nl.abs, 0.0, nl.add, s)  # accepted

# rule: both-psum
nisa.scalar_tensor_tensor(d, p, nl.add, 1.0, nl.add, q)  # [psum-operands] `data` and `operand1`

# rule: reduce-op
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_op=nl.subtract, reduce_res=col)  # [op-unsupported] subtract | minimum
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_op=nl.max, reduce_res=col)  # accepted

# rule: reduce-cmd
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_op=nl.add, reduce_res=col)  # [op-unsupported] load_reduce | reset_reduce, reduce
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, False, False, nisa.reduce_cmd.reduce, nl.add, col)  # accepted

# rule: reduce-op-given
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_res=col)  # [missing-operand] `reduce_res` is given | `reduce_op`
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_cmd=nisa.reduce_cmd.reduce)  # [missing-operand] `reduce_cmd` is reduce | `reduce_op`
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # accepted

# rule: reduce-result
nisa.scalar_tensor_tensor(d, s, nl.add, 1.0, nl.add, s, reduce_op=nl.add, reduce_res=two)  # [shape-mismatch] `reduce_res` | (128, 1)
