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

# rule: engine
nisa.activation(d, nl.exp, s, engine=nisa.engine.vector)  # trn3 [engine-unsupported] it runs on scalar or gpsimd, not on vector
nisa.activation(d, nl.exp, s, engine=nisa.engine.gpsimd)  # trn2 [unsupported-on-target] gpsimd engine needs trn3
nisa.activation(p, nl.exp, s, engine=nisa.engine.gpsimd)  # trn3 [psum-gpsimd] `dst`
nisa.activation(d, nl.exp, s, engine=nisa.engine.gpsimd)  # trn3 accepted

# rule: reduce-engine
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce, engine=nisa.engine.gpsimd)  # trn3 [engine-unsupported] only the scalar engine accumulates

# rule: same-size
nisa.activation(d, nl.exp, short)  # [shape-mismatch] 63 | 64

# rule: per-partition
nisa.activation(d, nl.exp, s, bias=two)  # [shape-mismatch] `bias` | (128, 1)
nisa.activation(d, nl.exp, s, scale=two)  # [shape-mismatch] `scale`
nisa.activation(d, nl.exp, s, reduce_res=two)  # [shape-mismatch] `reduce_res`

# rule: bias-target
nisa.activation(d, nl.exp, s, bias=1.0)  # trn1 [operand-kind] trn1 | (P, 1)
nisa.activation(d, nl.copy, s, bias=-1.0, scale=2.0)  # trn1 accepted
nisa.activation(d, nl.exp, s, bias=1.0)  # trn2 accepted

# rule: bias-dtype
nisa.activation(d, nl.exp, s, bias=colt)  # [operand-dtype] tfloat32
nisa.activation(d, nl.exp, s, bias=colb)  # accepted

# rule: reduce-op
nisa.activation(d, nl.exp, s, reduce_op=nl.maximum)  # [op-unsupported] maximum | add

# rule: reduce-cmd
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.load_reduce)  # [op-unsupported] load_reduce
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.idle)  # accepted
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset)  # accepted
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reduce)  # accepted
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # accepted
nisa.activation(d, nl.copy, s)  # accepted
nisa.activation(d, nl.square, s)  # accepted
nisa.activation(d, nl.sigmoid, s)  # accepted
nisa.activation(d, nl.relu, s)  # accepted
nisa.activation(d, nl.prelu, s)  # accepted
nisa.activation(d, nl.gelu, s)  # accepted
nisa.activation(d, nl.gelu_dx, s)  # accepted
nisa.activation(d, nl.gelu_apprx_tanh, s)  # accepted
nisa.activation(d, nl.gelu_apprx_sigmoid, s)  # accepted
nisa.activation(d, nl.gelu_apprx_sigmoid_dx, s)  # accepted
nisa.activation(d, nl.silu, s)  # accepted
nisa.activation(d, nl.silu_dx, s)  # accepted
nisa.activation(d, nl.tanh, s)  # accepted
nisa.activation(d, nl.softplus, s)  # accepted
nisa.activation(d, nl.mish, s)  # accepted
nisa.activation(d, nl.erf, s)  # accepted
nisa.activation(d, nl.erf_dx, s)  # accepted
nisa.activation(d, nl.exp, s)  # accepted
nisa.activation(d, nl.log, s)  # accepted
nisa.activation(d, nl.sin, s)  # accepted
nisa.activation(d, nl.arctan, s)  # accepted
nisa.activation(d, nl.sqrt, s)  # accepted
nisa.activation(d, nl.rsqrt, s)  # accepted
nisa.activation(d, nl.reciprocal, s)  # accepted
nisa.activation(d, nl.sign, s)  # accepted
nisa.activation(d, nl.abs, s)  # accepted

# rule: reciprocal-bias
nisa.activation(d, nl.reciprocal, s, bias=col)  # trn1 [op-unsupported] takes no `bias` on trn1
nisa.activation(d, nl.reciprocal, s)  # trn1 accepted
nisa.activation(d, nl.reciprocal, s, bias=col)  # trn2 accepted

# rule: reduce-op-given
nisa.activation(d, nl.exp, s, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # [missing-operand] `reduce_cmd` is reset_reduce, which needs `reduce_op`
nisa.activation(d, nl.exp, s, reduce_cmd=nisa.reduce_cmd.reduce)  # [missing-operand] needs `reduce_op`
nisa.activation(d, nl.exp, s, reduce_cmd=nisa.reduce_cmd.reset)  # accepted
nisa.activation(d, nl.exp, s, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reduce)  # accepted
