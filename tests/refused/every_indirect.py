x = nl.ndarray((32, 8), nl.float32, nl.sbuf)
y = nl.ndarray((32, 8), nl.float32, nl.sbuf)
i = nl.ndarray((32, 2), nl.uint16, nl.sbuf)
one = nl.ndarray((32, 1), nl.float32, nl.sbuf)
four = nl.ndarray((32, 4), nl.float32, nl.sbuf)
p = nl.ndarray((32, 8), nl.float32, nl.psum)
n32 = nl.ndarray((32, 8), nl.int32, nl.sbuf)
sq = nl.ndarray((32, 32), nl.bfloat16, nl.sbuf)
b = nl.ndarray((32, 8), nl.bfloat16, nl.sbuf)
f32 = nl.ndarray((32, 32), nl.float32, nl.sbuf)
acc = nl.ndarray((32, 32), nl.float32, nl.psum)
at32 = nl.ndarray((32, 8), nl.float32, nl.sbuf, address=(32, 0))
i0 = nl.ndarray((32, 2), nl.uint16, nl.sbuf, address=(0, 4096))
i32 = nl.ndarray((32, 2), nl.uint16, nl.sbuf, address=(32, 4096))
i16 = nl.ndarray((48, 2), nl.uint16, nl.sbuf, address=(0, 8192))
q32 = nl.ndarray((32, 32), nl.float8_e4m3fn_x4, nl.sbuf)
scales = nl.ndarray((32, 32), nl.uint8, nl.sbuf)

# rule: operands
nisa.tensor_tensor(one, one, x.indirect(i, 1), nl.add)  # trn3 [indirect-view] `data2` of tensor_tensor does not take | dst, data1
nisa.nc_transpose(acc[0:8, 0:32], x.indirect(i, 1))  # trn3 [indirect-view] nc_transpose does not take
nisa.tensor_copy_predicated(one, x.indirect(i, 1), one.view(nl.uint32))  # trn3 [indirect-view] `src` of tensor_copy_predicated | dst, predicate
nisa.tensor_tensor(one, x.indirect(i, 1), one, nl.add)  # trn3 accepted

# rule: generation
nisa.tensor_copy(one, x.indirect(i, 1))  # trn2 [unsupported-on-target] needs trn3
nisa.tensor_copy(one, x.indirect(i, 1))  # trn1 [unsupported-on-target] needs trn3
nisa.tensor_copy(one, x.indirect(i, 1))  # trn3 accepted

# rule: index-memory
nisa.tensor_copy(one, x.indirect(nl.ndarray((32, 2), nl.uint16, nl.psum), 1))  # trn3 [operand-memory] psum | sbuf

# rule: index-dtype
nisa.tensor_copy(one, x.indirect(nl.ndarray((32, 2), nl.float32, nl.sbuf), 1))  # trn3 [operand-dtype] float32 | 16 or 32 bits
nisa.tensor_copy(one, x.indirect(nl.ndarray((32, 2), nl.uint8, nl.sbuf), 1))  # trn3 [operand-dtype] uint8 | 16 or 32 bits
nisa.tensor_copy(one, x.indirect(nl.ndarray((32, 2), nl.int32, nl.sbuf), 1))  # trn3 accepted

# rule: index-partitions
nisa.tensor_copy(one, x.indirect(nl.ndarray((16, 2), nl.uint16, nl.sbuf), 1))  # trn3 [shape-mismatch] the index has 16 partitions, the tensor 32

# rule: offsets
nisa.tensor_copy(nl.ndarray((32, 33), nl.float32, nl.sbuf), x.indirect(i, 33))  # trn3 [shape-mismatch] picks 33 columns | 16 x 2 offsets
nisa.nc_matmul(nl.ndarray((32, 65), nl.float32, nl.psum), sq, b.indirect(i, 65))  # trn3 [shape-mismatch] 32 x 2 offsets
nisa.nc_matmul(nl.ndarray((32, 64), nl.float32, nl.psum), sq, b.indirect(i, 64))  # trn3 accepted

# rule: index-start
nisa.tensor_copy(nl.ndarray((32, 1), nl.float32, nl.sbuf), x.indirect(i16[16:48, :], 1))  # trn3 [partition-start] starts at partition 16

# rule: gather-start
nisa.tensor_copy(one, at32.indirect(i0, 1))  # trn3 [partition-start] `src` starts at partition 32, its index at 0
nisa.tensor_copy(one, at32.indirect(i32, 1))  # trn3 accepted

# rule: scatter-start
nisa.tensor_copy(x.indirect(i0, 8), at32)  # trn3 [partition-start] the index of `dst` starts at partition 0, `src` at 32
nisa.tensor_copy(x.indirect(i32, 8), at32)  # trn3 accepted

# rule: scatter-psum
nisa.activation(p.indirect(i, 4), nl.exp, four)  # trn3 [indirect-view] does not scatter to PSUM
nisa.tensor_copy(p.indirect(i, 4), four, engine=nisa.engine.scalar)  # trn3 [indirect-view] does not scatter to PSUM
nisa.tensor_copy(p.indirect(i, 4), four, engine=nisa.engine.vector)  # trn3 accepted

# rule: gpsimd
nisa.tensor_copy(one, x.indirect(i, 1), engine=nisa.engine.gpsimd)  # trn3 [engine-unsupported] not on gpsimd

# rule: address-arithmetic
nisa.tensor_scalar(nl.ndarray((32, 4), nl.int32, nl.sbuf), n32.indirect(i, 4), nl.multiply, n32[:, 0:1])  # trn3 [indirect-view] address arithmetic

# rule: transpose
nisa.nc_matmul(nl.ndarray((32, 32), nl.bfloat16, nl.psum), sq, b.indirect(i, 32), is_transpose=True)  # trn3 [indirect-view] transpose mode

# rule: matmul-dtype
nisa.nc_matmul(acc, f32, x.indirect(i, 32))  # trn3 [operand-dtype] an indirect `moving` is float32

# rule: matmul-tile
nisa.nc_matmul(acc, sq, b.indirect(i, 32), tile_position=(32, 0), tile_size=(32, 128))  # trn3 [operand-value] with an indirect `moving`, but must be (0, 0)

# rule: mx-pairs
nisa.nc_matmul_mx(acc, q32, q32.indirect(i, 32), scales, scales)  # trn3 [indirect-view] `moving` and `moving_scale` must be indirect by the same index
