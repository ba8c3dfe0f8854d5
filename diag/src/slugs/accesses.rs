//! Diagnostics of what an executed kernel does to its memories: results that are lost, operands without effect.

super::slugs! {
    "dead-load" (Suspicious), "a transfer brings data that nothing reads", "
Nothing reads any byte that the DMA brings to the chip: the transfer takes time and bandwidth for nothing, or, more often, the instruction
that should read the tile reads another one.

    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)                                   # wrong: nothing reads b
    nisa.tensor_tensor(dst=out, data1=a, data2=a, op=nl.add)      # data2=b was meant

The message says how often the line runs and in how many of these cases its data is not read; a loop that loads one tile ahead and loads one
too many in its last iteration is found too. A tile of which one byte is read counts as read.";

    "dead-store" (Suspicious), "nothing reads what an instruction writes", "
Nothing reads any byte of any result of the instruction, and no result is an output of the kernel. Either the instruction is not needed, or the
one that should read the result reads something else.

    nisa.activation(dst=e, op=nl.exp, data=t)                     # wrong: nothing reads e
    nisa.dma_copy(dst=out, src=t)                                 # src=e was meant

An instruction with several results (`dst` and `reduce_res`) is not reported if one of them is read, nor one that leaves something in its
engine's accumulators, nor exchanges and collectives.";

    "inert-operand" (Suspicious), "an operand or a statement has no effect", "
An operand that the instruction ignores in this combination, or an expression statement whose value nobody uses. The kernel does not do
what it says.

    nisa.activation(dst=e, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=s)      # wrong: reduce_cmd is idle, s is not the sum
    nisa.activation(dst=e, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=s,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)                       # right

    t[0:64]                                                       # wrong: a view that nothing uses
    nisa.dma_copy(dst=u, src=t[0:64])                             # right

Found are: `reduce_op` with `reduce_cmd=idle` on the scalar engine; `reverse0` and `reverse1` without an operator or with `bypass`; scalars other
than 0 without an operator or with `bypass`; `relu_param` of a function without parameter; `reduce_res_negate` without `reduce_res`;
`oob_mode=skip` without a dynamic index; and statements that are a view, a comparison, arithmetic, a name or a decorator without a function.";

    "overwritten-before-read" (Suspicious), "a result is written over before anything reads it", "
Every byte that an instruction wrote is written over before anything has read one of them. A double buffer that is filled again before
its consumer has run looks like this, and an index that does not change from one iteration to the next.

    for i in range(4):
        nisa.dma_copy(dst=buf, src=x[i])                          # wrong: only the last tile is ever read
    nisa.tensor_copy(dst=t, src=buf)

    for i in range(4):
        nisa.dma_copy(dst=buf, src=x[i])
        nisa.tensor_copy(dst=t[:, i], src=buf)                    # right

A memset that something else writes over completely is reported as well, unless it fills with 0, which many kernels do as a precaution. A matmul that accumulates reads what it adds to. If a
part of the bytes is read, or kept, nothing is reported.";
}
