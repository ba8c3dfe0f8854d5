//! Findings about memory accesses of an executed kernel: lost results, operands without effect.

super::slugs! {
    "dead-load" (Suspicious), "a transfer loads data that nothing reads", "
The DMA transfers bytes to the chip that no instruction reads. Either the transfer wastes time and
bandwidth or, more often, the instruction that should read the tile reads another one.

    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)                                   # wrong: nothing reads b
    nisa.tensor_tensor(dst=out, data1=a, data2=a, op=nl.add)      # data2=b was meant

The message reports how often the line runs, and how many of these runs load data that is not read.
This includes a loop that prefetches one tile ahead and loads one tile too many in its last
iteration. A tile counts as read if at least one of its bytes is read.";

    "dead-store" (Suspicious), "nothing reads what an instruction writes", "
No instruction reads any byte of the results of this instruction, and no result is an output of the
kernel. Either the instruction is unnecessary, or the instruction that should read the result reads
something else.

    nisa.activation(dst=e, op=nl.exp, data=t)                     # wrong: nothing reads e
    nisa.dma_copy(dst=out, src=t)                                 # src=e was meant

An instruction with several results (`dst` and `reduce_res`) is not reported if one of them is read.
Exchanges, collectives and the `dst` of an instruction that leaves a value in the accumulators of its
engine are not reported, but the value is, if nothing reads it out before the kernel ends.";

    "index-layout" (Suspicious), "a gather or scatter does not have one index in each partition", "
The index that `vector_offset=` takes is an SBUF tile of shape (P, 1): the DMA takes the index of each
row from a partition of its own. The simulator takes the elements of another tile in order; on the
device the indices of the other partitions are not those.

    index = nl.ndarray((1, 64), dtype=nl.int32, buffer=nl.sbuf)       # wrong: 64 indices in one partition
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)       # right
    nisa.dma_copy(dst=t, src=x.ap([[512, 64], [1, 512]], 0, vector_offset=index, indirect_dim=0))";

    "row-crossing" (Suspicious), "a row of a gather or scatter ends within the next row", "
With `vector_offset=`, an index moves by one row of the tensor that `.ap` is called on; the stride of the
pattern's first pair is ignored. The pattern accesses more than this row, and not whole rows: the rest of
the elements is from the next row.

    x                                                             # shape (64, 512)
    x.ap([[640, 32], [1, 640]], 0, vector_offset=index)           # wrong: index 3 is element 1536, not 1920
    x.reshape((32768,)).ap([[1, 32], [1, 640]], 0, vector_offset=start)      # right: windows at any element";

    "integer-function" (Suspicious), "the values of a function are rounded to integers", "
An activation function is applied to an integer tile and its result is an integer tile, although
nearly all its values are fractions: `tanh` of an integer becomes -1, 0 or 1. The usual cause is a
result that inherits the dtype of the input.

    e = nl.exp(counts)                                                # wrong for an int32 tile `counts`: e is int32
    e = nl.exp(counts, dtype=nl.float32)                              # right

The finding covers exp (without a scale), sigmoid, tanh, erf, sin, arctan, rsqrt, reciprocal, and the
derivatives of erf, gelu and silu. Functions that approach the identity (gelu, silu, softplus, mish),
sqrt and log are left out: rounding their values can be intended. Quotients of integers are covered, too:
GpSimd cuts their fractions off here, the other engines round them, and the manual says nothing of either. A
line is reported only if all its executions do this.";

    "inert-operand" (Suspicious), "an operand or a statement has no effect", "
The instruction ignores an operand in this combination, or an expression statement has a value that
is not used. The kernel does not do what its source suggests.

    nisa.activation(dst=e, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=s)      # wrong: reduce_cmd is idle, s is not the sum
    nisa.activation(dst=e, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=s,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)                       # right

    t[0:64]                                                       # wrong: a view that nothing uses
    nisa.dma_copy(dst=u, src=t[0:64])                             # right

The finding covers: `reduce_op` with `reduce_cmd=idle` on the scalar engine; `reverse0` and
`reverse1` without an operator or with `bypass`; scalars other than 0 without an operator or with
`bypass`; `relu_param` of a function without parameter; `reduce_res_negate` without `reduce_res`;
`imm1` of a `tensor_scalar_cumulative` that resets the accumulators each time that its line runs;
`oob_mode=skip` without a dynamic index; and statements that consist of a view, a comparison,
arithmetic, a name or a decorator without a function.";

    "overwritten-before-read" (Suspicious), "a result is overwritten before it is read", "
Every byte that an instruction wrote is overwritten before any of them is read. Typical causes are a
double buffer that is refilled before its consumer has run, and an index that does not change
between iterations.

    for i in range(4):
        nisa.dma_copy(dst=buf, src=x[i])                          # wrong: only the last tile is ever read
    nisa.tensor_copy(dst=t, src=buf)

    for i in range(4):
        nisa.dma_copy(dst=buf, src=x[i])
        nisa.tensor_copy(dst=t[:, i], src=buf)                    # right

An instruction that resets the accumulators of its engine is reported if nothing has read the reduction
in them: it lacked a `reduce_res`, or the reset should have been `reduce`.

A memset that another instruction overwrites completely is also reported, unless it fills with 0,
which many kernels do as a precaution. A fill in a loop that overwrites what every iteration
but the last has computed resets a sum which should have been set once, before the loop. A matmul that accumulates reads its destination. Nothing is
reported if some of the bytes are read or kept, nor if values decide that: if the overwriting instruction is in a
loop or branch that another run may not execute, transfers with `oob_mode=skip`, is a scatter or has an offset from
a register or tensor, if a read has such an offset, or if another iteration of a dynamic loop around the first
instruction, but not around the second, would read the bytes.";
}
