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
nisa.range_select(d, short, nl.less, nl.less, col, col)  # [shape-mismatch] 64 | 63

# rule: comparisons
nisa.range_select(d, s, nl.add, nl.less, col, col)  # [op-unsupported] `comp_op0` is add
nisa.range_select(d, s, nl.less, nl.not_equal, col, col)  # [op-unsupported] `comp_op1` is not_equal

# rule: per-partition
nisa.range_select(d, s, nl.less, nl.less, two, col)  # [shape-mismatch] `bound0`
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_res=two)  # [shape-mismatch] `reduce_res`

# rule: range
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, range_start=(1 << 24) - 10)  # [operand-value] 16777216

# rule: false-value
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, on_false_value=0.0)  # [operand-value] 0.0 | -3.4028235e38
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, on_false_value=-3.4028235e+38)  # accepted

# rule: reduce-op
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_op=nl.add)  # [op-unsupported] add | maximum

# rule: reduce-cmd
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_cmd=nisa.reduce_cmd.load_reduce)  # [op-unsupported] load_reduce
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset)  # accepted
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reduce)  # accepted
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # accepted

# rule: result-idle
nisa.range_select(d, s, nl.greater_equal, nl.less, col, col, reduce_res=col, reduce_cmd=nisa.reduce_cmd.idle)  # [missing-operand] idle
