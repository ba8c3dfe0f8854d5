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
x5 = nl.ndarray((128, 2, 2, 4, 4), nl.float32, nl.sbuf)

# rule: same-size
nisa.exponential(d, short)  # trn3 [shape-mismatch] 64 | 63

# rule: rank
nisa.exponential(d, x5)  # trn3 [access-pattern] 5 dimensions | 4

# rule: per-partition
nisa.exponential(d, s, max_value=two)  # trn3 [shape-mismatch] max_value
nisa.exponential(d, s, reduce_res=two, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # trn3 [shape-mismatch] reduce_res

# rule: reduce-cmd
nisa.exponential(d, s, reduce_cmd=nisa.reduce_cmd.reset)  # trn3 [op-unsupported] reset | load_reduce
nisa.exponential(d, s, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reduce)  # trn3 accepted
nisa.exponential(d, s, reduce_res=col, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # trn3 accepted
nisa.exponential(d, s, reduce_res=col, reduce_cmd=nisa.reduce_cmd.load_reduce)  # trn3 accepted

# rule: result-idle
nisa.exponential(d, s, reduce_res=col)  # trn3 [missing-operand] idle

# rule: init
nisa.exponential(d, s, reduce_init=1.0)  # trn3 [operand-value] `reduce_init` | load_reduce
nisa.exponential(d, s, reduce_init=col, reduce_cmd=nisa.reduce_cmd.load_reduce)  # trn3 accepted
