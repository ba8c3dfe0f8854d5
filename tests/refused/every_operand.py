x = nl.ndarray((128, 64), nl.float8_e4m3fn_x4, nl.sbuf)
s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
p = nl.ndarray((128, 64), nl.float32, nl.psum)
i = nl.ndarray((128, 64), nl.int32, nl.sbuf)
big = nl.ndarray((128, 70000), nl.uint8, nl.sbuf)
bd = nl.ndarray((128, 70000), nl.uint8, nl.sbuf)
hb = nl.ndarray((128, 64), nl.float32, nl.hbm)
pp = nl.ndarray((128, 8192), nl.bfloat16, nl.psum)
half = nl.ndarray((64, 64), nl.float32, nl.sbuf)

# rule: required
nisa.tensor_copy(s)  # [missing-dst] is missing `src`

# rule: kind
nisa.tensor_copy(s, 1.0)  # [operand-kind] `src` takes a tensor | float 1
nisa.activation(s, nl.add, s)  # [operand-kind] `op` takes activation function
nisa.memset(s, d)  # [operand-kind] `value` takes a number
nisa.tensor_reduce(s, nl.add, s, 'x')  # [operand-kind] `axis`

# rule: memory
nisa.tensor_copy(s, hb)  # [operand-memory] `src` is in hbm | sbuf or psum
nisa.iota(p, [[1, 64]])  # [operand-memory] `dst` is in psum | sbuf
nisa.dma_copy(s, p)  # [operand-memory] `src` is in psum
nisa.nc_matmul(s, s, s)  # [operand-memory] `dst` is in sbuf | psum

# rule: dtype
nisa.set_rng_seed(nl.ndarray((1, 1), nl.bfloat16, nl.sbuf))  # [operand-dtype] `src_seeds` is bfloat16 | int32
nisa.tensor_copy_predicated(s, d, i)  # [operand-dtype] `predicate` is int32 | uint8, uint16, uint32
nisa.rng(s)  # [operand-dtype] `dst` is float32 | uint16
nisa.activation(s, nl.exp, s, scale=nl.ndarray((128, 1), nl.bfloat16, nl.sbuf))  # [operand-dtype] `scale` is bfloat16; it must be float32

# rule: packed
nisa.tensor_tensor(x, x, x, nl.add)  # trn3 [operand-dtype] float8_e4m3fn_x4 | four numbers
nisa.activation(s, nl.exp, x)  # trn3 [operand-dtype] `data` is float8_e4m3fn_x4

# rule: int64
l = nl.ndarray((128, 64), nl.int64, nl.sbuf)
nisa.tensor_copy(l, l)  # [operand-dtype] `dst` is int64, which tensor_copy does not take
nisa.memset(l, 0)  # [operand-dtype] `dst` is int64
nisa.register_load(nisa.register_alloc(), l[0:1, 0:1])  # [operand-dtype] `src` is int64, which register_load

# rule: generation
nisa.core_barrier(h, (0, 1))  # trn1 [unsupported-on-target] core_barrier needs trn2 or later
nisa.sendrecv(s, d, 1, 1, 0)  # trn1 [unsupported-on-target] sendrecv needs trn2 or later
nisa.sendrecv(x, x, 1, 1, 0)  # trn3 accepted
nisa.quantize_mx(x, nl.ndarray((128, 256), nl.bfloat16, nl.sbuf), nl.ndarray((128, 64), nl.uint8, nl.sbuf))  # trn2 [unsupported-on-target] quantize_mx needs trn3
nisa.nc_matmul_mx(p[0:64, 0:64], x, x, s, s)  # trn2 [unsupported-on-target] nc_matmul_mx needs trn3
nisa.exponential(s, d)  # trn2 [unsupported-on-target] exponential needs trn3 (target is trn2) | nisa.activation
nisa.activate2(s, nl.exp, d, 1.0, None, nl.multiply, None)  # trn2 [unsupported-on-target] activate2 needs trn3
nisa.rand2(s, 0.0, 1.0)  # trn1 [unsupported-on-target] rand2 needs trn3 (target is trn1)
nisa.range_select(s, d, nl.less, nl.less, nl.ndarray((128, 1), nl.float32, nl.sbuf), nl.ndarray((128, 1), nl.float32, nl.sbuf))  # trn1 [unsupported-on-target] range_select needs trn2 or later
nisa.nonzero_with_count(nl.ndarray((128, 65), nl.int32, nl.sbuf), s)  # trn1 [unsupported-on-target] trn2 or later
nisa.rand_set_state(nl.ndarray((128, 6), nl.uint32, nl.sbuf))  # trn1 [unsupported-on-target] rand_set_state needs trn2
nisa.rand_get_state(nl.ndarray((128, 6), nl.uint32, nl.sbuf))  # trn1 [unsupported-on-target] rand_get_state needs trn2
nisa.exponential(s, d)  # trn3 accepted

# rule: engine
nisa.core_barrier(h, (0, 1), engine=nisa.engine.dma)  # [engine-unsupported] not on dma
nisa.tensor_copy(s, d, engine=nisa.engine.tensor)  # [engine-unsupported] vector or scalar or gpsimd, not on tensor
nisa.tensor_copy(s, d, engine=nisa.engine.scalar)  # trn1 [unsupported-on-target] tensor_copy on the scalar engine needs trn2
nisa.tensor_tensor(s, s, d, nl.add, engine=nisa.engine.scalar)  # [engine-unsupported] not on scalar
nisa.memset(s, 0.0, engine=nisa.engine.scalar)  # [engine-unsupported] vector or gpsimd
nisa.rng(i, engine=nisa.engine.gpsimd)  # trn1 [unsupported-on-target] rng on the gpsimd engine needs trn2
nisa.rng(i, engine=nisa.engine.scalar)  # [engine-unsupported] not on scalar
nisa.rand_get_state(nl.ndarray((128, 24), nl.uint32, nl.sbuf), engine=nisa.engine.vector)  # trn2 [unsupported-on-target] on the vector engine needs trn3
nisa.rand_set_state(nl.ndarray((128, 24), nl.uint32, nl.sbuf), engine=nisa.engine.vector)  # trn2 [unsupported-on-target] on the vector engine needs trn3
nisa.tensor_scalar(s, d, nl.add, 1.0, engine=nisa.engine.tensor)  # [engine-unsupported] not on tensor
nisa.nc_transpose(nl.ndarray((32, 32), nl.float32, nl.sbuf), s[0:32, 0:32], engine=nisa.engine.scalar)  # [engine-unsupported] tensor or vector, not on scalar
nisa.tensor_copy(s, d, engine=nisa.engine.gpsimd)  # accepted

# rule: partitions
nisa.memset(nl.ndarray((256, 4), nl.float32, nl.sbuf), 0.0)  # [partition-size] 256 | 128

# rule: partition-start
nisa.memset(s[16:32, 0:64], 0.0)  # [partition-start] starts at partition 16 | 0, 32, 64, 96
nisa.memset(s[32:96, 0:64], 0.0)  # [partition-start] 64 partitions | starts at partition 32 | 0, 64
nisa.memset(s[64:128, 0:64], 0.0)  # accepted

# rule: partition-stride
nisa.memset(s[0:64:2, 0:64], 0.0)  # [partition-stride] stride of 2

# rule: elements
nisa.tensor_copy(bd, big)  # [free-size] 70000 | 65536 in sbuf
nisa.memset(pp, 0.0)  # [free-size] 8192 | 4096 in psum

# rule: dimensions
nisa.memset(big.ap(pattern=[[70000, 128], [1000, 2], [100, 2], [20, 2], [4, 2], [1, 2]]), 0)  # [access-pattern] 5 free dimensions | at most 4

# rule: bounds
nisa.memset(s[0:128, 0:65], 0.0)  # [out-of-bounds] 65 | 64
nisa.memset(half.ap(pattern=[[64, 128], [1, 64]]), 0.0)  # [out-of-bounds] 127 | 64
