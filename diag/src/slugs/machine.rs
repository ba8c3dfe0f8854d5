//! Diagnostics of the machine's rules: operands of instructions, memories, addresses, uninitialised reads.

super::slugs! {
    "bitvec-dtype", "a bitwise operator is used on operands that are not integers", "
Shifts, `bitwise_*` and `invert` work on the bits as they are: every operand and `dst` must be an integer type, numbers included.

    nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1.0)   # wrong
    nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)     # right, for an integer tile t";

    "clobbered-read" (Bug), "a value is read that was written over through another tensor", "
Two tensors with explicit addresses share bytes. Bytes were written through the first, then through the second, and are then read through
the first: its value is gone. The message names both tensors and both lines.

    a = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
    b = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=x)                                  # writes over half of a
    nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.add)     # wrong: reads a

Sharing bytes is right as long as the first is not read any more when the second is written, or is written again before it is read. Two
tensors may also be two names of the same bytes: what is written through one may be read through the other.";

    "dtype-mismatch", "operands have dtypes that do not go together", "
`nc_matmul` multiplies float32 only with float32 (or tfloat32), and 8-bit floats only with 8-bit floats. `nc_transpose` on the tensor
engine writes the dtype that it reads.

    turned = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=bf16_tile)                  # wrong
    turned = nl.ndarray((128, 128), dtype=bf16_tile.dtype, buffer=nl.psum)";

    "engine-unsupported", "an instruction does not run on the engine asked for", "
`engine=` may name only an engine that has the instruction (with these operators, on this target). Leave it out to let the
compiler choose.";

    "free-size", "an operand has more elements per partition than the instruction takes", "
The message says how many there are and the limit. Split the free dimension into several instructions.";

    "index-out-of-bounds", "an index read at run time points outside of the tensor", "
A register, or an index tile of a gather or scatter, holds a row that the tensor does not have. The message has the value and the
number of rows. `oob_mode=nisa.oob_mode.skip` leaves out such rows instead.";

    "internal", "the simulator contradicts itself", "
This is a bug of the simulator, not of your kernel. Please report it with the kernel.";

    "memset-value", "the value of a memset does not fit the tile's dtype", "
A float tile is filled with a float, an integer tile with an integer that the dtype can hold.

    nisa.memset(dst=int_tile, value=1.0)     # wrong
    nisa.memset(dst=int_tile, value=1)       # right";

    "needs-data", "control flow or an address depends on values in memory", "
Such a kernel cannot be traced without numbers. The command runs it in full.";

    "op-mix", "one instruction combines a bitwise and an arithmetic operator", "
`op0` and `op1` are both bitwise (on integers) or both arithmetic (in fp32). Use two instructions.";

    "op-unsupported", "an instruction does not have this operator", "
Each instruction takes a set of operators: binary ones in `tensor_tensor`, reductions in `tensor_reduce`, activation functions in
`activation`. The message names what is allowed. `nki-sim explain INSTRUCTION` shows the operands.

    nisa.tensor_tensor(dst=t, data1=a, data2=b, op=nl.exp)     # wrong: exp has one operand
    nisa.activation(dst=t, op=nl.exp, data=a)                  # right";

    "operand-dtype", "an operand has a dtype that the instruction does not take", "
The message names the operand, its dtype and what is allowed. Copy into a tile of another dtype first (`nisa.tensor_copy` converts).";

    "operand-value", "an operand has a value that the instruction does not take", "
The message names the operand, the value and what is allowed.";

    "overlapping-tensors" (Suspicious), "two tensors that are alive at the same time lie on the same bytes", "
Tensors with explicit addresses may share bytes only if one is no longer needed when the other is written. The message names both
and where each is used. Move one of them, or write to the second after the last read of the first.";

    "overlapping-write" (Suspicious), "one instruction writes two elements to one address", "
A destination view with a stride of 0 (a broadcast) or with overlapping strides, or a scatter that names a row twice, gives several elements
one place. Which of them stays is not defined. The message has two of the elements, or the row and two entries of the index.

    nisa.tensor_copy(dst=t.broadcast(1, 64), src=u)               # wrong: 64 elements for one
    nisa.tensor_copy(dst=t, src=u[:, 0:1])                        # right, if the first is meant

A scatter whose index may repeat has to add up the rows that go to one place first. Static views are found by `check`; repeated rows only by
`run`, which knows the index.";

    "partition-mismatch", "operands lie on different numbers of partitions", "
An engine works on all partitions side by side: its operands have the same partition count (a matmul: the same number of rows to
contract).

    nisa.tensor_tensor(dst=t[0:64], data1=a, data2=b[0:64], op=nl.add)     # wrong if a has 128 partitions";

    "partition-start", "an operand does not start on a partition that the engine can address", "
Compute engines start on partition 0, 32, 64 or 96, depending on how many partitions they cover (more than 64: only 0; more than 32:
0 or 64). Slices of tiles that start elsewhere have to be moved by DMA.

    nisa.tensor_copy(dst=t[1:33], src=a)      # wrong
    nisa.dma_copy(dst=t[1:33], src=a)         # right: DMA reaches every partition";

    "partition-stride", "an operand skips partitions", "
Compute engines work on consecutive partitions; only DMA can skip.";

    "psum-gpsimd", "GpSimd is asked to work on PSUM", "
The GpSimd engine reaches SBUF only. Copy the tile to SBUF with the vector or scalar engine, or use one of these.";

    "psum-operands", "both inputs of an instruction are in PSUM", "
The vector engine reads at most one of two inputs from PSUM. Copy one to SBUF first.";

    "psum-bank", "a matmul writes over the end of a PSUM bank", "
On trn1 and trn2 one `nc_matmul` or `nc_transpose` writes to one of the 8 banks of 2 KiB (NKI architecture guide). A PSUM tensor starts on a bank,
so a slice of 512 fp32 elements starts at a multiple of 512:

    acc = nl.ndarray((128, 1024), nl.float32, nl.psum)
    nisa.nc_matmul(dst=acc[:, 256:768], stationary=a, moving=b)            # wrong: ends in the second bank
    nisa.nc_matmul(dst=acc[:, 512:1024], stationary=a, moving=b)           # right";

    "psum-overflow", "the PSUM tensors that are alive at one time need more than 8 banks", "
Every PSUM tensor takes whole banks of 2 KiB per partition. The message shows the line where most are alive and which they are. Copy results to
SBUF earlier, or make fewer accumulators at a time.";

    "reduce-axis", "a reduction is not over the last free dimensions", "
The vector engine reduces the innermost dimensions: `axis` lists the last ones without gaps, never dimension 0 (the partitions). To
reduce over partitions, transpose first or multiply with a tile of ones.

    nisa.tensor_reduce(dst=t, op=nl.add, data=x, axis=0)      # wrong
    nisa.tensor_reduce(dst=t, op=nl.add, data=x, axis=1)      # right for x of two dimensions";

    "sbuf-overflow", "the SBUF tensors that are alive at one time need more than a partition has", "
The message shows the line where most bytes are alive and which tensors they are. Use smaller tiles, load later, or allocate inside the loop
instead of before it.";

    "tile-size", "a tile is larger than the tensor engine takes", "
`nc_matmul` contracts at most 128 rows, its stationary operand has at most 128 columns, its moving operand at most 512 (a PSUM bank of fp32). Split the
product into tiles; those that share a destination accumulate.

    nisa.nc_matmul(dst=acc, stationary=a, moving=b)                        # wrong if b has 1024 columns
    for j in range(2):
        nisa.nc_matmul(dst=accs[j], stationary=a, moving=b[:, nl.ds(j * 512, 512)])";

    "foreign-accumulation" (Bug), "a matmul adds to what no matmul has written", "
On trn1 and trn2 a matmul that accumulates into PSUM which `memset`, `tensor_copy` or another instruction has filled is not supported,
and what it gives is undefined (nc_matmul reference). The simulator adds, as trn3 does, and says so.

Wrong:

    nisa.memset(dst=acc, value=1.0)
    nisa.nc_matmul(dst=acc, stationary=a, moving=b, accumulate=True)

Right:

    nisa.nc_matmul(dst=acc, stationary=a, moving=b, accumulate=False)
    nisa.tensor_scalar(dst=result, data=acc, op0=nl.add, operand0=1.0)";

    "uninitialized-read" (Suspicious), "an instruction reads bytes that nothing has written", "
`nl.ndarray` reserves memory and does not fill it. On the device such a read gives whatever was there
before; the simulator gives NaN (floats) or a fixed pattern (integers) and reports the first instruction
that reads it. If what it reads reaches an output, that is `uninitialized-output`, and a bug for certain.

Wrong:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)

Right:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(acc, value=0.0)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)";

    "unsupported-on-target", "the target's generation does not have this feature", "
The message names the feature and the generations that have it. `--target trn1|trn2|trn3` chooses another.";
}
