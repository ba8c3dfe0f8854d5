//! Diagnostics of the API bindings: tensors, views, registers, calls of instructions.

super::slugs! {
    "access-pattern", "an access pattern (`.ap`) is malformed", "
A pattern is a list of `[stride, count]` pairs in elements. On chip the first pair walks the partitions: its stride is
the number of elements that the storage has in each partition.

    t = nl.ndarray((128, 1024), nl.float16, nl.sbuf)
    t.ap([[1, 128], [2, 512]])       # wrong: the first stride is not 1024
    t.ap([[1024, 128], [2, 512]])    # right: every other element of all partitions";

    "arguments", "a call has too many, too few or unknown arguments", "
The message shows the signature of the function. Instructions of `nki.isa` take `dst` first.";

    "bad-address", "an explicit address does not fit the memory", "
`address=(partition, byte)` places an SBUF or PSUM tensor: the first partition, and the first *byte* in each partition.
The whole tensor must fit behind it. HBM tensors have no address.

    nl.ndarray((128, 512), nl.float32, nl.sbuf, address=(0, 4096))";

    "bad-dimension", "a view method got a dimension or size that the tensor does not have", "
Dimensions count from 0, negative ones from the end. `broadcast` and `squeeze_dim` work on dimensions of size 1.";

    "bad-index", "an index expression is not one of the forms of the language", "
Tensors are indexed with ints, slices with a positive step, `nl.ds(start, size)`, `...`, registers and `(1, 1)` tensors.
Lists, ranges, `None` and floats are not indices.

    t[[0, 2, 4]]          # wrong
    t[0:6:2]              # right
    t[None, :]            # wrong
    t.expand_dim(1)       # right";

    "bad-shape", "a tensor cannot have this shape", "
All extents are positive. SBUF and PSUM tensors have at least two dimensions, the first being the partitions.

    nl.ndarray((512,), nl.float32, nl.sbuf)      # wrong
    nl.ndarray((1, 512), nl.float32, nl.sbuf)    # right: one partition";

    "dtype-view", "a tensor cannot be viewed as another dtype", "
`t.view(dtype)` reads the same bytes as elements of another size. The last dimension must lie contiguously, and its
bytes must make whole elements.";

    "depends-on", "an instruction is to wait for one that it cannot wait for", "
`second.depends_on(first)` makes `second` wait on a semaphore that `first` signals, each time it runs. So `first` comes
before it in the program, in the same dynamic loop or around it:

    first = nisa.dma_copy(dst=a, src=x)
    second = nisa.tensor_copy(dst=b, src=c)
    second.depends_on(first)";

    "dynamic-loop", "a loop on the device is not written as it must be", "
The step of `nl.dynamic_range` and `nl.fori_loop` is a positive int. The body of `nl.fori_loop` returns nothing, the body
of `nl.while_loop` the next condition, a register. These loops do not stand inside `nl.no_reorder()`.";

    "empty-slice", "a slice selects nothing", "
An access pattern has at least one element. Skip the instruction when there is nothing to do:

    if start < end:
        nisa.dma_copy(dst=tile[:, 0:end - start], src=x[:, start:end])";

    "frozen-register", "an instruction writes the variable of a dynamic loop", "
The loop counts in that register. Copy it first:

    for i in nl.dynamic_range(n):
        r = nisa.register_alloc()
        nisa.register_move(r, i)";

    "indirect-view", "a view cannot be indexed at run time, or not again", "
A view can have one dynamic index. `vector_select` picks rows of an HBM tensor; those rows cannot be sliced further.";

    "kernel-output" (Suspicious), "a kernel returns something that is no output", "
Kernels return whole tensors in shared HBM, or tuples of them.

    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out";

    "missing-dst", "an instruction is called without a destination", "
Since Beta 2 instructions write to `dst`, which is their first argument, and return no tensor.

    y = nisa.reciprocal(x)                               # Beta 1
    y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)     # Beta 2
    nisa.reciprocal(dst=y, data=x)";

    "missing-operand", "an instruction is called without a required operand", "
The message shows the signature. `dst` is the first parameter of instructions.";

    "not-callable", "a value that is no function is called", "
Functions, methods, kernels and operators such as `nl.add` can be called; tensors, dtypes' names and enum members cannot.";

    "not-contiguous", "the dimensions of a view do not lie in one run", "
`reshape` and `flatten_dims` make views, they do not copy: the dimensions they merge must follow one another in memory.
Reshape before slicing or permuting, or copy to a new tensor first.";

    "not-indexable", "a value that has no items is indexed", "
Tensors, tuples, lists and dicts can be indexed; numbers, registers and functions cannot.";

    "not-iterable", "a value that has no items is iterated over", "
Loop over indices and index the tensor in the body:

    for i in range(t.shape[1]):
        nisa.tensor_copy(dst=u[:, i], src=t[:, i])";

    "operand-kind", "an argument is of the wrong kind", "
The message says what the parameter takes and what was given.";

    "operand-memory", "a tensor is in a memory that the instruction cannot reach", "
Compute engines read and write SBUF and PSUM; DMA moves data between HBM and SBUF and does not reach PSUM. Load HBM tensors
with `nisa.dma_copy` or `nl.load` first; copy PSUM results to SBUF with `nisa.tensor_copy` before storing them.";

    "out-of-bounds", "an index, slice or access pattern reaches past the end of a tensor", "
NKI does not clamp slices as Python does. Bound them, so that the last tile is smaller:

    for i in range(0, n, 512):
        end = min(n, i + 512)
        nisa.dma_copy(dst=tile[:, 0:end - i], src=x[:, i:end])";

    "output-not-written" (Bug), "a returned tensor is never written", "
Its contents would be whatever the memory held. Copy the result to it with `nisa.dma_copy` or `nl.store`.";

    "output-partly-written" (Suspicious), "some elements of an output are never written", "
The elements that nothing writes hold whatever the memory held before; the simulator gives NaN (floats) or a fixed pattern (integers). The
message says how many there are, and the index of the first. The usual cause is a loop over tiles that leaves out the rest:

    for i in range(n // 128):                                    # wrong if n is not a multiple of 128
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128)], src=tile)

A caller that never reads those elements may leave them out.";

    "partition-dimension", "a view would move data across partitions", "
Dimension 0 of an on-chip tensor is its partitions, physically separate memories. Views are free only within a partition;
to move data between partitions use `nisa.nc_transpose`, `nisa.dma_copy` or a matmul.";

    "partition-size", "a tensor or view has more partitions than the memory", "
SBUF and PSUM have 128 partitions (`nl.tile_size.pmax`). Loop over tiles of at most 128 rows:

    for i in range(0, rows, 128):
        tile = nl.ndarray((min(128, rows - i), cols), x.dtype, nl.sbuf)";

    "view-stride" (Suspicious), "an access pattern steps by the partition size of a view, not of the tensor", "
The first pair of an on-chip access pattern counts partitions, and the hardware has no stride between them. The manual wants the tensor's
elements per partition there. The elements per partition of a slice, on which `.ap` is called, are accepted as long as the pattern stays
in the slice: the partitions follow each other in either reading.

    t = nl.ndarray((128, 1024), nl.float32, nl.sbuf)
    right = t[:, 512:1024]
    right.ap([[512, 128], [1, 256]])     # found: a partition of `t` has 1024 elements
    right.ap([[1024, 128], [1, 256]])    # right: the same elements";

    "psum-alignment", "a PSUM tensor does not start on a bank", "
PSUM has 8 banks of 2 KiB in each partition; a tensor starts at the beginning of one.

    nl.ndarray((128, 512), nl.float32, nl.psum, address=(0, 3 * 2048))";

    "psum-capacity", "a tensor is larger than PSUM", "
PSUM has 16 KiB in each partition, 4096 fp32 elements. Tile the free dimension; one matmul writes at most one bank of 512
fp32 elements.";

    "register-arithmetic", "Python computes with a register", "
A register exists only on the device; its value is not known when the kernel is specialised. Store it in a `(1, 1)` tensor,
compute with instructions, load it again:

    nisa.register_store(t, reg)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=-1)
    nisa.register_load(reg, t)";

    "ignored-dtype" (Suspicious), "`dtype=` of an instruction differs from its destination", "
The result of an instruction has the dtype of `dst`. Early releases had `dtype=` beside it; current ones do not, and it changes nothing here.
Kernels written for those releases give the dtype of the output that the tile is stored to later. Leave it out:

    nisa.tensor_copy(dst=tile, src=acc, dtype=nl.bfloat16)    # wrong, if tile is float32
    nisa.tensor_copy(dst=tile, src=acc)                       # right";

    "removed-beta1", "a feature of Beta 1 that is gone", "
Kernels of `import nki` are Beta 2. The message says what to write instead. In short: slices or `.ap` for `nl.arange` and
`nl.mgrid`, smaller slices for `mask=`, lists of tensors or free dimensions for block dimensions and `nl.par_dim`, `dst=`
for results of instructions.";

    "removed-mask", "`mask=` was removed after Beta 1", "
Bound the index, so that the last tile is smaller:

    end = min(n, start + 128)
    nisa.tensor_copy(dst=y[start:end, :], src=x[start:end, :])";

    "sbuf-capacity", "a tensor is larger than SBUF", "
The message says how many bytes each partition has. Tile the free dimension.";

    "shape-mismatch", "operands have shapes that do not fit together", "
Operands of an instruction have the same number of partitions and of elements per partition, unless its documentation says
otherwise.";

    "shared-divergence", "the cores of a logical core make different shared tensors", "
With two cores the kernel is specialised once per core, and a `shared_hbm` tensor made by both is one tensor. Make shared
tensors unconditionally, before branching on `nl.program_id`.";

    "tensor-assignment", "something else than a tensor is assigned to a tensor", "
`t[0:64, :] = u` copies the tensor `u`. All else is written by instructions:

    t[0:64, :] = 0.0                          # wrong
    nisa.memset(dst=t[0:64, :], value=0.0)    # right";

    "tensor-condition" (Suspicious), "a tensor is used as a condition", "
Its values are not known when the kernel is specialised: like any object it is true. Test `t is not None` for an optional
argument; for control flow on the device load a `(1, 1)` tensor into a register and write `if register:` or
`while register:`.";

    "tensor-operator", "a Python operator is used on a tensor", "
    c = a + b                                                 # wrong
    c = nl.add(a, b)                                          # right
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)    # right";

    "unknown-attribute", "a value has no attribute of this name", "
The message lists the attributes there are, or the one that was probably meant.";

    "unreadable-constant", "the file of a constant cannot be read", "
`nl.shared_constant(\"file.npy\")` takes the array in a file that NumPy has saved, of a dtype that the machine has. The path counts
from the directory in which the simulator runs.";

    "unsupported-api", "a function of the manual that is not supported yet", "
The function exists, but this version cannot run it. Use the instructions of `nki.isa` that it stands for.";

    "unsupported-dtype", "a dtype that is not supported", "
The message lists the supported dtypes. An array of float64 or int64 has to become one of the machine's first: `x.astype(np.float32)`.";

    "unsupported-instruction", "a documented instruction that is not supported yet", "
The instruction exists on the hardware, but this version has no model of it.";

    "unsupported-operator", "an operator is used on values that have none", "
Dtypes, enum members and operators can be compared for equality, nothing else.";

    "unsupported-with", "`with` on something that is no context", "
The only context of the language is `nl.no_reorder()`:

    with nl.no_reorder():
        nisa.tensor_copy(dst=u, src=t)";
}
