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
coli = nl.ndarray((128, 1), nl.int32, nl.sbuf)

# rule: same-size
nisa.tensor_scalar(d, short, nl.add, 1.0)  # [shape-mismatch] 64 | 63

# rule: per-partition
nisa.tensor_scalar(d, s, nl.add, two)  # [shape-mismatch] `operand0` | (128, 1)
nisa.tensor_scalar(d, s, nl.add, 1.0, op1=nl.add, operand1=two)  # [shape-mismatch] `operand1`

# rule: operand
nisa.tensor_scalar(d, s, nl.add, None)  # [missing-operand] `op0=add` needs `operand0`
nisa.tensor_scalar(d, s, nl.add, 1.0, op1=nl.add)  # [missing-operand] `op1=add` needs `operand1`
nisa.tensor_scalar(d, s, nl.add, 1.0, operand1=1.0)  # [missing-operand] `operand1` is given but not `op1`

# rule: unary-operand
nisa.tensor_scalar(d, s, nl.abs, 2.0)  # [operand-value] 2.0 | None or 0
nisa.tensor_scalar(d, s, nl.abs, col)  # [operand-value] a tile
nisa.tensor_scalar(d, s, nl.abs, 0)  # accepted
nisa.tensor_scalar(d, s, nl.rsqrt, None)  # accepted

# rule: unary-reverse
nisa.tensor_scalar(d, s, nl.abs, None, reverse0=True)  # [op-unsupported] unary

# rule: op-target
nisa.tensor_scalar(d, s, nl.abs_min, 1.0)  # trn2 [op-unsupported] trn3

# rule: op-mix
nisa.tensor_scalar(i, i, nl.bitwise_and, 1, op1=nl.add, operand1=1)  # [op-mix] bitwise_and

# rule: bitvec-ints
nisa.tensor_scalar(d, s, nl.bitwise_and, 1)  # [bitvec-dtype] float32
nisa.tensor_scalar(i, i, nl.left_shift, 1.5)  # [bitvec-dtype] float
nisa.tensor_scalar(i, i, nl.left_shift, col)  # [bitvec-dtype] `operand0` is float32

# rule: bitvec-width
nisa.tensor_scalar(i, i, nl.bitwise_or, 2**33)  # [operand-value] 8589934592 | 32
nisa.tensor_scalar(i, i, nl.bitwise_and, -2**31 - 1)  # [operand-value] -2147483649
nisa.tensor_scalar(i, i, nl.bitwise_and, 2**32 - 1)  # accepted

# rule: bitvec-engine
nisa.tensor_scalar(i, i, nl.left_shift, 1, engine=nisa.engine.gpsimd)  # [engine-unsupported] left_shift | vector

# rule: operand-float32
nisa.tensor_scalar(d, s, nl.add, colb)  # [operand-dtype] `operand0` is bfloat16 | float32
nisa.tensor_scalar(i, i, nl.add, coli)  # accepted
nisa.tensor_scalar(i, i, nl.maximum, coli)  # [operand-dtype] int32

# rule: scalar-engine
nisa.tensor_scalar(d, s, nl.maximum, 1.0, engine=nisa.engine.scalar)  # [engine-unsupported] multiply and add
nisa.tensor_scalar(d, s, nl.multiply, 2.0, op1=nl.add, operand1=1.0, engine=nisa.engine.scalar)  # accepted

# rule: gpsimd-operators
nisa.tensor_scalar(d, s, nl.rsqrt, 0.0, engine=nisa.engine.gpsimd)  # accepted
nisa.tensor_scalar(d, s, nl.maximum, 1.0, op1=nl.add, operand1=1.0, engine=nisa.engine.gpsimd)  # [engine-unsupported] maximum | vector engine
nisa.tensor_scalar(d, s, nl.power, -0.5, engine=nisa.engine.gpsimd)  # [engine-unsupported] power
nisa.tensor_scalar(d, s, nl.add, 1.0, op1=nl.rsqrt, engine=nisa.engine.gpsimd)  # accepted
nisa.tensor_scalar(i, i, nl.add, 1, engine=nisa.engine.gpsimd)  # accepted
nisa.tensor_scalar(i, i, nl.add, 1.0, engine=nisa.engine.gpsimd)  # [engine-unsupported] add

# rule: gpsimd-psum
nisa.tensor_scalar(d, p, nl.rsqrt, 0.0, engine=nisa.engine.gpsimd)  # [psum-gpsimd] `data` is in PSUM
