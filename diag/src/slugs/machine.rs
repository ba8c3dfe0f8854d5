//! Diagnostics of the machine's rules: operands of instructions, memories, addresses, uninitialised reads.

super::slugs! {
    "bitvec-dtype", "a bitwise operator is used on operands that are not integers", "
Shifts, `bitwise_*` and `invert` operate on bit patterns: every operand and `dst` must have an
integer type, including numbers.

    nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1.0)   # wrong
    nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)     # right, for an integer tile t";

    "clobbered-read" (Bug), "a value is read that was overwritten through another tensor", "
Two tensors with explicit addresses share bytes. The bytes were written through the first tensor,
then through the second, and are then read through the first: the value of the first is lost. The
message names both tensors and both lines.

    a = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
    b = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=x)                                  # overwrites half of a
    nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.add)     # wrong: reads a

Sharing bytes is correct if the first tensor is not read after the second is written, or is written
again before it is read. Two tensors may also be two names of the same bytes: data written through
one may be read through the other.";

    "dtype-mismatch", "operands have incompatible dtypes", "
`nc_matmul` multiplies float32 only with float32 (or tfloat32), and 8-bit floats only with 8-bit
floats. `nc_transpose` on the tensor engine writes the dtype that it reads.

    turned = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=bf16_tile)                  # wrong
    turned = nl.ndarray((128, 128), dtype=bf16_tile.dtype, buffer=nl.psum)";

    "engine-unsupported", "the requested engine does not support the instruction", "
`engine=` must name an engine that has the instruction (with these operators, on this target). Omit
it to let the compiler choose.";

    "free-size", "an operand has more elements per partition than the instruction supports", "
The message gives the number of elements and the limit. Split the free dimension into several
instructions.";

    "index-out-of-bounds", "an index read at run time is outside the tensor", "
A register, or an index tile of a gather or scatter, contains a row that the tensor does not have.
The message gives the value and the number of rows. `oob_mode=nisa.oob_mode.skip` skips such rows
instead.";

    "internal", "the simulator has an internal error", "
This is a bug of the simulator, not of the kernel. Please report it together with the kernel.";

    "memset-value", "the value of a memset does not fit the tile's dtype", "
Fill a float tile with a float, and an integer tile with an integer that the dtype can represent. A
whole float counts as an integer, as in NKI 0.2.

    nisa.memset(dst=int_tile, value=1.5)     # wrong
    nisa.memset(dst=int_tile, value=1)       # right";

    "needs-data", "control flow or an address depends on values in memory", "
Such a kernel cannot be traced without values. The command executes it completely.";

    "op-mix", "one instruction combines a bitwise and an arithmetic operator", "
`op0` and `op1` must both be bitwise (on integers) or both be arithmetic (in fp32). Use two
instructions.";

    "op-unsupported", "an instruction does not support this operator", "
Each instruction supports a set of operators: binary ones in `tensor_tensor`, reductions in
`tensor_reduce`, activation functions in `activation`. The message lists the supported ones.
`nki-sim explain INSTRUCTION` shows the operands.

    nisa.tensor_tensor(dst=t, data1=a, data2=b, op=nl.exp)     # wrong: exp has one operand
    nisa.activation(dst=t, op=nl.exp, data=a)                  # right";

    "operand-dtype", "an operand has a dtype that the instruction does not support", "
The message names the operand, its dtype and the supported dtypes. Copy the data into a tile of
another dtype first (`nisa.tensor_copy` converts).";

    "operand-value", "an operand has a value that the instruction does not support", "
The message names the operand, the value and the supported values.";

    "affine-dependence" (Suspicious), "an iteration of an affine_range depends on an earlier one", "
`nl.affine_range` of `neuronxcc.nki` says that no iteration depends on another one. The older compiler may run
the iterations in any order and side by side. The simulator runs them in order, so its numbers are those of
`nl.sequential_range`. An instruction that reads the elements that it writes (a sum, product or maximum over the
iterations) is allowed.

Wrong:

    for i in nl.affine_range(n):
        new[...] = nl.maximum(top, nl.max(x[i], axis=1))
        total[...] = total * nl.exp(top - new)               # reads what the iteration before has written
        top[...] = nl.copy(new)

Right:

    for i in nl.sequential_range(n):";

    "overlapping-operands" (Suspicious), "an instruction reads elements that it has written itself", "
The source and the destination are views of one tensor that overlap, and an element is read at
another position than it is written. The engines stream: a transfer moves parts in no given order,
and a compute engine reads an element after it has written an earlier one. Whether the old or the
new value is read is undefined; the simulator reads the old one. The same view as source and
destination is fine, and so is a compute engine that reads ahead of what it writes (a shift to lower
addresses).

    nisa.tensor_copy(dst=t[:, 1:64], src=t[:, 0:63])              # wrong: shifts onto what it reads
    nisa.tensor_copy(dst=u[:, 1:64], src=t[:, 0:63])              # right";

    "overlapping-tensors" (Suspicious), "two tensors that are live at the same time share bytes", "
Tensors with explicit addresses may share bytes only if one is no longer needed when the other is
written. The message names both tensors and the lines that use them. Move one of them, or write to
the second after the last read of the first.";

    "overlapping-store" (Suspicious), "a store overwrites a part of what another one has stored in an output", "
The elements of a store are partly new and partly those of an earlier store, which get other values.
Usually the step of a loop is smaller than its tile, or a slice begins too early. The message names the
first element that changes, with both values.

    for i in range(4):
        nisa.dma_copy(dst=out[i * 64:i * 64 + 128], src=tiles[i])      # wrong: each store overwrites half of the one before
        nisa.dma_copy(dst=out[i * 128:(i + 1) * 128], src=tiles[i])    # right

Nothing is reported if all elements were stored before or the replaced ones have one value (a default that is replaced), if the values agree
within 1% (rows that two tiles share), or if the kernel reads the output. Only `run` knows the values.
With two cores, see `shared-memory-race`.";

    "accumulation-after-read" (Suspicious), "a matmul continues a sum that has been read", "
Matmuls without `accumulate` add to what earlier matmuls have written to the same tile. If the sum has
been copied out in between, a new sum was usually meant: the tile is made outside of the loop over
results.

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)        # wrong: the second result contains the first
    for m in range(2):
        nisa.nc_matmul(dst=acc, stationary=a[m], moving=b)
        nisa.tensor_copy(dst=result[m], src=acc)

    for m in range(2):
        acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)    # right
        nisa.nc_matmul(dst=acc, stationary=a[m], moving=b)
        nisa.tensor_copy(dst=result[m], src=acc)

`accumulate=False` also begins a sum; `accumulate=True` states that it continues, as does `+=` in kernels
for `neuronxcc.nki`. Iterations of dynamic loops are not compared, but a tile that is made outside of a dynamic
loop and used in it alone is reported: the simulator begins a new sum in each iteration, and no document
says that the device does.";

    "mixed-skip" (Suspicious), "a transposing DMA skips some rows of a group, which aborts it", "
`dma_transpose` with an index moves 16 rows at a time. If `oob_mode.skip` skips some of these rows, but
not all, hardware aborts the transfer, and the device has to be reset (aws-neuron-sdk, issue 1390, SDK
2.32, trn2 and trn3). Groups without skipped rows, and groups of which all rows are skipped, run.

    rows = x.ap(pattern=[[128, 32], [1, 128]], vector_offset=index, indirect_dim=0)
    nisa.dma_transpose(dst=turned, src=rows, oob_mode=nisa.oob_mode.skip)     # wrong if 24 of 32 are valid

Pad the index with a valid row up to a multiple of 16 and ignore the columns of the result. Only `run`,
which knows the index, finds such groups.";

    "overlapping-write" (Suspicious), "one instruction writes two elements to one address", "
Several elements have the same address: the destination is a view with a stride of 0 (a broadcast)
or with overlapping strides, or a scatter names a row twice. The final value is undefined. The
message names two of the elements, or the row and two entries of the index.

    nisa.tensor_copy(dst=t.broadcast(1, 64), src=u)               # wrong: 64 elements for one
    nisa.tensor_copy(dst=t, src=u[:, 0:1])                        # right, if the first is meant

Two results of one instruction may also share addresses:

    nisa.activation_reduce(dst=u, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=u[:, 0:1])     # wrong
    nisa.activation_reduce(dst=u, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=total)         # right

A scatter whose index may contain repeated rows must first combine the rows with the same target.
`check` finds static views; repeated rows are found only by `run`, which knows the index.";

    "partition-mismatch", "operands have different numbers of partitions", "
An engine processes all partitions in parallel: its operands have the same number of partitions (for
a matmul, the same number of contraction rows).

    nisa.tensor_tensor(dst=t[0:64], data1=a, data2=b[0:64], op=nl.add)     # wrong if a has 128 partitions";

    "partition-start", "an operand starts on a partition that the engine cannot address", "
Compute engines start on partition 0, 32, 64 or 96, depending on the number of partitions (more than
64: only 0; more than 32: 0 or 64). Use DMA to move slices of tiles that start elsewhere.

    nisa.tensor_copy(dst=t[1:33], src=a)      # wrong
    nisa.dma_copy(dst=t[1:33], src=a)         # right: DMA reaches every partition";

    "partition-stride", "an operand skips partitions", "
Compute engines access consecutive partitions; only DMA can skip partitions.";

    "psum-gpsimd", "GpSimd cannot access PSUM", "
The GpSimd engine accesses SBUF only. Copy the tile to SBUF with the vector or scalar engine, or run
the instruction on one of them.";

    "psum-operands", "both inputs of an instruction are in PSUM", "
The vector engine reads at most one of two inputs from PSUM. Copy one to SBUF first.";

    "psum-bank", "a matmul writes across the end of a PSUM bank", "
On trn1 and trn2 one `nc_matmul` or `nc_transpose` writes to one of the 8 banks of 2 KiB (NKI
architecture guide). A PSUM tensor starts at a bank boundary, so a slice of 512 fp32 elements must
start at a multiple of 512:

    acc = nl.ndarray((128, 1024), nl.float32, nl.psum)
    nisa.nc_matmul(dst=acc[:, 256:768], stationary=a, moving=b)            # wrong: ends in the second bank
    nisa.nc_matmul(dst=acc[:, 512:1024], stationary=a, moving=b)           # right";

    "psum-overflow", "the PSUM tensors that are live at one time need more than 8 banks", "
A PSUM tensor occupies whole banks of 2 KiB per partition. Where that does not fit, tensors smaller
than a bank share banks; none crosses the end of a bank. The message names the line with the most
live banks and the tensors that are live there. Copy results to SBUF earlier, or use fewer
accumulators at a time.";

    "reduce-axis", "a reduction is not over the last free dimensions", "
The vector engine reduces the innermost dimensions: `axis` lists the last ones without gaps, and
never dimension 0 (the partitions). Dimensions of size 1 need not be listed. To reduce over
partitions, transpose first or multiply with a tile of ones.

    nisa.tensor_reduce(dst=t, op=nl.add, data=x, axis=0)      # wrong
    nisa.tensor_reduce(dst=t, op=nl.add, data=x, axis=1)      # right for x of two dimensions";

    "sbuf-spill" (Suspicious), "tiles that do not fit into SBUF are loaded again many times", "
The older compiler stores tiles that do not fit into SBUF, or loads them again before their next use. The
simulator does so with whole tiles. If the bytes that are loaded again are more than twenty times the
arguments of the kernel, each use of a large tile loads it anew. The older compiler may load only the part
that an instruction needs. The latency is an upper bound then.

    x = nl.load(X[b])                                   # wrong: a whole image of 100 KiB per partition
    rows = nl.load(X[b, :, i * h:(i + 1) * h + 2])      # right: the rows of one iteration";

    "sbuf-overflow", "the SBUF tensors that are live at one time exceed the size of a partition", "
The message names the line with the most live bytes and the tensors that are live there. Use smaller
tiles, load later, or allocate inside the loop instead of before it.";

    "tile-size", "a tile is larger than the tensor engine supports", "
`nc_matmul` contracts at most 128 rows. Its stationary operand has at most 128 columns, its moving
operand at most 512 (a PSUM bank of fp32). Split the product into tiles; tiles with the same
destination accumulate.

    nisa.nc_matmul(dst=acc, stationary=a, moving=b)                        # wrong if b has 1024 columns
    for j in range(2):
        nisa.nc_matmul(dst=accs[j], stationary=a, moving=b[:, nl.ds(j * 512, 512)])";

    "foreign-accumulation" (Bug), "a matmul accumulates into data that no matmul has written", "
On trn1 and trn2 a matmul must not accumulate into PSUM that `memset`, `tensor_copy` or another
instruction has filled: this is unsupported, and the result is undefined (nc_matmul reference). The
simulator adds, as trn3 does, and reports it.

Wrong:

    nisa.memset(dst=acc, value=1.0)
    nisa.nc_matmul(dst=acc, stationary=a, moving=b, accumulate=True)

Right:

    nisa.nc_matmul(dst=acc, stationary=a, moving=b, accumulate=False)
    nisa.tensor_scalar(dst=result, data=acc, op0=nl.add, operand0=1.0)";

    "uninitialized-read" (Suspicious), "an instruction reads uninitialized memory", "
`nl.ndarray` reserves memory without filling it. On the device such a read returns the previous
contents of the memory. The simulator returns NaN (floats) or a fixed pattern (integers), or zeros if
`NKI_SIM_UNWRITTEN=zero` is set, and reports the first instruction that reads it. If the data reaches
an output, the finding is `uninitialized-output`, which is certainly a bug; it needs the NaN.

In a kernel for `neuronxcc.nki` a run reports only reads whose data may reach an argument or a result. There, a masked
load leaves elements of a tile unwritten, functions work on all of them, and a masked store drops the results.

An instruction with `reduce_cmd.reduce` continues from the accumulators of its engine. Before anything has set
them they are 0 here, and on the device they hold what an earlier kernel left. A run with numerics reports it.

The body of a dynamic loop allocates a new tile in each iteration, even if its bytes are the same on the device.
Allocate it before the loop if an iteration needs values of an earlier one.

Wrong:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)

Right:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(acc, value=0.0)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)";

    "unsupported-on-target", "the target's generation does not have this feature", "
The message names the feature and the generations that support it. `--target trn1|trn2|trn3` selects
the generation.";
}
