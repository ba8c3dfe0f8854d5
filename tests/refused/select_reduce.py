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
m = nl.ndarray((128, 64), nl.uint8, nl.sbuf)
m63 = nl.ndarray((128, 63), nl.uint8, nl.sbuf)
mp = nl.ndarray((128, 64), nl.uint8, nl.psum)

# rule: same-size
nisa.select_reduce(d, m63, s, 0.0)  # [shape-mismatch] `predicate` | 63

# rule: both-psum
nisa.select_reduce(d, mp, p, 0.0)  # [psum-operands] `on_true` and `predicate`

# rule: per-partition
nisa.select_reduce(d, m, s, two)  # [shape-mismatch] `on_false`
nisa.select_reduce(d, m, s, 0.0, reduce_res=two, reduce_cmd=nisa.reduce_cmd.reduce)  # [shape-mismatch] `reduce_res`

# rule: reduce-op
nisa.select_reduce(d, m, s, 0.0, reduce_op=nl.add)  # [op-unsupported] add | maximum

# rule: reduce-cmd
nisa.select_reduce(d, m, s, 0.0, reduce_cmd=nisa.reduce_cmd.reset)  # [op-unsupported] reset
nisa.select_reduce(d, m, s, 0.0, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reduce)  # accepted
nisa.select_reduce(d, m, s, 0.0, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # accepted

# rule: result-idle
nisa.select_reduce(d, m, s, 0.0, reduce_res=col)  # [missing-operand] idle
