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

# rule: engine
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, engine=nisa.engine.vector)  # trn3 [engine-unsupported] it runs on scalar or gpsimd, not on vector
nisa.activate2(d, nl.exp, p, 1.0, None, nl.multiply, None, engine=nisa.engine.gpsimd)  # trn3 [psum-gpsimd] `data`
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, engine=nisa.engine.gpsimd)  # trn3 accepted

# rule: reduce-engine
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce, engine=nisa.engine.gpsimd)  # trn3 [engine-unsupported] only the scalar engine accumulates

# rule: same-size
nisa.activate2(d, nl.exp, short, 1.0, None, nl.multiply, None)  # trn3 [shape-mismatch] 63 | 64

# rule: pairs
nisa.activate2(d, nl.exp, s, 1.0, 1.0, nl.add, nl.add)  # trn3 [op-unsupported] (add, add)
nisa.activate2(d, nl.exp, s, 1.0, 1.0, nl.multiply, nl.add)  # trn3 accepted

# rule: op0
nisa.activate2(d, nl.exp, s, None, 1.0, None, nl.add)  # trn3 [missing-operand] `op1` is given, which requires `op0`

# rule: reverse
nisa.activate2(d, nl.exp, s, None, None, None, None, reverse0=True)  # trn3 [missing-operand] `reverse0` | `op0`
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reverse1=True)  # trn3 [missing-operand] `reverse1` | `op1`

# rule: immediates
nisa.activate2(d, nl.exp, s, None, None, nl.multiply, None)  # trn3 [missing-operand] `op0` needs `imm0`

# rule: per-partition
nisa.activate2(d, nl.exp, s, two, None, nl.multiply, None)  # trn3 [shape-mismatch] (128, 1)
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, relu_param=two)  # trn3 [shape-mismatch] relu_param

# rule: same-dtype
nisa.activate2(d, nl.exp, s, col, colb, nl.multiply, nl.add)  # trn3 [operand-dtype] bfloat16 | float32

# rule: reduce-op
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.multiply, reduce_cmd=nisa.reduce_cmd.reduce)  # trn3 [op-unsupported] multiply | abs_min

# rule: reduce-op-given
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_cmd=nisa.reduce_cmd.reduce)  # trn3 [missing-operand] `reduce_op`

# rule: reduce-cmd
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.load_reduce)  # trn3 [op-unsupported] load_reduce | reset_reduce
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.idle)  # trn3 accepted
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.maximum, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset)  # trn3 accepted
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.minimum, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reduce)  # trn3 accepted
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.abs_max, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # trn3 accepted
nisa.activate2(d, nl.exp, s, 1.0, None, nl.multiply, None, reduce_op=nl.abs_min, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # trn3 accepted
