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
nisa.tensor_tensor(d, s, short, nl.add)  # [shape-mismatch] `data2` | 63
nisa.tensor_tensor(d, few, s, nl.add)  # [partition-mismatch] `data1` has 64

# rule: binary
nisa.tensor_tensor(d, s, s, nl.rsqrt)  # [op-unsupported] not a binary operator

# rule: op-target
nisa.tensor_tensor(d, s, s, nl.abs_max)  # trn2 [op-unsupported] trn3
nisa.tensor_tensor(d, s, s, nl.abs_max)  # trn3 accepted

# rule: bitvec-ints
nisa.tensor_tensor(d, s, s, nl.bitwise_xor)  # [bitvec-dtype] float32
nisa.tensor_tensor(d, i, i, nl.bitwise_xor)  # [bitvec-dtype] `dst` is float32

# rule: both-psum
nisa.tensor_tensor(d, p, q, nl.add)  # [psum-operands] `data1` and `data2`
nisa.tensor_tensor(d, p, s, nl.add)  # accepted

# rule: same-start
nisa.tensor_tensor(d[0:64], s[0:64], d[64:128], nl.add)  # [partition-start] `data1` starts on partition 0, `data2` on partition 64
nisa.tensor_tensor(few, s[0:64], s[64:128], nl.add)  # [partition-start] tensor_copy
nisa.tensor_tensor(d[64:128], s[0:64], d[0:64], nl.add)  # accepted
nisa.tensor_tensor(few, few, s[64:128], nl.add)  # accepted
nisa.tensor_tensor(few, s[0:64], p[64:128], nl.add)  # accepted

# rule: power-engine
nisa.tensor_tensor(d, s, s, nl.power, engine=nisa.engine.vector)  # [engine-unsupported] power | GpSimd

# rule: gpsimd-psum
nisa.tensor_tensor(d, s, p, nl.power)  # [psum-gpsimd] `data2` is in PSUM
nisa.tensor_tensor(p, s, s, nl.add, engine=nisa.engine.gpsimd)  # [psum-gpsimd] `dst`
nisa.tensor_tensor(d, s, s, nl.add)  # accepted
nisa.tensor_tensor(d, s, s, nl.subtract)  # accepted
nisa.tensor_tensor(d, s, s, nl.multiply)  # accepted
nisa.tensor_tensor(d, s, s, nl.divide)  # accepted
nisa.tensor_tensor(d, s, s, nl.maximum)  # accepted
nisa.tensor_tensor(d, s, s, nl.minimum)  # accepted
nisa.tensor_tensor(d, s, s, nl.power)  # accepted
nisa.tensor_tensor(d, s, s, nl.mod)  # accepted
nisa.tensor_tensor(d, s, s, nl.fmod)  # accepted
nisa.tensor_tensor(d, s, s, nl.equal)  # accepted
nisa.tensor_tensor(d, s, s, nl.not_equal)  # accepted
nisa.tensor_tensor(d, s, s, nl.greater)  # accepted
nisa.tensor_tensor(d, s, s, nl.greater_equal)  # accepted
nisa.tensor_tensor(d, s, s, nl.less)  # accepted
nisa.tensor_tensor(d, s, s, nl.less_equal)  # accepted
nisa.tensor_tensor(d, s, s, nl.logical_and)  # accepted
nisa.tensor_tensor(d, s, s, nl.logical_or)  # accepted
nisa.tensor_tensor(d, s, s, nl.logical_xor)  # accepted
nisa.tensor_tensor(i, i, i, nl.bitwise_and)  # accepted
nisa.tensor_tensor(i, i, i, nl.bitwise_or)  # accepted
nisa.tensor_tensor(i, i, i, nl.bitwise_xor)  # accepted
nisa.tensor_tensor(i, i, i, nl.left_shift)  # accepted
nisa.tensor_tensor(i, i, i, nl.right_shift)  # accepted
