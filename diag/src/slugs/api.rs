//! Diagnostics of the API bindings: tensors, views, registers, calls of instructions.

super::slugs! {
    "access-pattern", "an access pattern (`.ap`) is malformed", "
A pattern is a list of `[stride, count]` pairs in elements. On chip the first pair steps over the
partitions: its stride is the number of elements that the storage has in each partition.

    t = nl.ndarray((128, 1024), nl.float16, nl.sbuf)
    t.ap([[1, 128], [2, 512]])       # wrong: the first stride is not 1024
    t.ap([[1024, 128], [2, 512]])    # right: every other element of all partitions";

    "arguments", "a call has too many, too few or unknown arguments", "
The message shows the signature of the function. `dst` is the first parameter of the instructions of
`nki.isa`.";

    "bad-address", "an explicit address does not fit the memory", "
`address=(partition, byte)` places an SBUF or PSUM tensor at a first partition and a first *byte*
within each partition. The whole tensor must fit into the memory from that address on. HBM tensors
have no address.

    nl.ndarray((128, 512), nl.float32, nl.sbuf, address=(0, 4096))";

    "bad-dimension", "a view method gets a dimension or size that the tensor does not have", "
Dimensions count from 0, negative ones from the end. `broadcast` and `squeeze_dim` need dimensions
of size 1.";

    "bad-index", "an index expression has a form that the language does not support", "
Tensors are indexed with ints, slices with a positive step, `nl.ds(start, size)`, `...`, registers
and `(1, 1)` tensors. Lists, ranges, `None` and floats are not indices.

    t[[0, 2, 4]]          # wrong
    t[0:6:2]              # right
    t[None, :]            # wrong
    t.expand_dim(1)       # right";

    "bad-shape", "a tensor cannot have this shape", "
All extents are positive. SBUF and PSUM tensors have at least two dimensions; the first is the
partition dimension.

    nl.ndarray((512,), nl.float32, nl.sbuf)      # wrong
    nl.ndarray((1, 512), nl.float32, nl.sbuf)    # right: one partition";

    "dtype-view", "a tensor cannot be viewed as another dtype", "
`t.view(dtype)` reinterprets the same bytes as elements of another size. The last dimension must be
contiguous, and its bytes must form whole elements.";

    "depends-on", "an instruction cannot wait for the given instruction", "
`second.depends_on(first)` makes `second` wait on a semaphore that `first` signals, each time it
runs. `first` must therefore precede it in the program, in the same dynamic loop or in an enclosing
one:

    first = nisa.dma_copy(dst=a, src=x)
    second = nisa.tensor_copy(dst=b, src=c)
    second.depends_on(first)";

    "dynamic-loop", "a device loop has an invalid form", "
The step of `nl.dynamic_range` and `nl.fori_loop` is a positive int. The body of `nl.fori_loop`
returns nothing; the body of `nl.while_loop` returns the next condition, a register. These loops
must not be inside `nl.no_reorder()`.";

    "empty-loop" (Suspicious), "a device loop never runs", "
The constant bounds of `nl.fori_loop` or `nl.dynamic_range` are in the wrong order. These loops count up
from the first bound:

    nl.fori_loop(4, 0, body)                            # wrong: never runs
    nl.fori_loop(0, 4, body)                            # right";

    "empty-slice", "a slice selects nothing", "
An access pattern has at least one element. Skip the instruction if the slice is empty:

    if start < end:
        nisa.dma_copy(dst=tile[:, 0:end - start], src=x[:, start:end])";

    "frozen-register", "an instruction writes the variable of a dynamic loop", "
The register is the loop counter. Copy it first:

    for i in nl.dynamic_range(n):
        r = nisa.register_alloc()
        nisa.register_move(r, i)";

    "indirect-view", "a view cannot be indexed at run time, or already is", "
A view can have one dynamic index. `vector_select` selects rows of an HBM tensor; those rows cannot
be sliced further.";

    "kernel-output" (Suspicious), "a kernel returns something that is not an output", "
Kernels return whole tensors in shared HBM, or tuples of them. A tensor in private HBM (`nl.hbm`) is
a warning: the compiler accepted it up to NKI 0.2. Both cores of a logical core write the same
output.

    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out";

    "missing-dst", "an instruction is called without a destination", "
Since Beta 2, instructions write to `dst`, their first argument, and return no tensor.

    y = nisa.reciprocal(x)                               # Beta 1
    y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)     # Beta 2
    nisa.reciprocal(dst=y, data=x)";

    "missing-operand", "an instruction is called without a required operand", "
The message shows the signature. `dst` is the first parameter of instructions.";

    "not-callable", "a value that is not a function is called", "
Functions, methods, kernels and operators such as `nl.add` can be called; tensors, dtype names and
enum members cannot.";

    "not-contiguous", "the dimensions of a view are not contiguous", "
`reshape` and `flatten_dims` create views and do not copy: the dimensions that they merge must be
contiguous in memory. Reshape before slicing or permuting, or copy to a new tensor first.";

    "not-indexable", "a value without items is indexed", "
Tensors, tuples, lists and dicts can be indexed; numbers, registers and functions cannot.";

    "not-iterable", "a loop iterates over a value without items", "
Loop over indices, and index the tensor in the body:

    for i in range(t.shape[1]):
        nisa.tensor_copy(dst=u[:, i], src=t[:, i])";

    "operand-kind", "an argument is of the wrong kind", "
The message names the expected and the actual kind.";

    "operand-memory", "a tensor is in a memory that the instruction cannot reach", "
Compute engines access SBUF and PSUM. DMA moves data between HBM and SBUF and does not access PSUM.
Load HBM tensors with `nisa.dma_copy` or `nl.load` first; copy PSUM results to SBUF with
`nisa.tensor_copy` before storing them.";

    "out-of-bounds", "an index, slice or access pattern exceeds a tensor", "
NKI does not clamp slices as Python does. Bound them, so that the last tile is smaller:

    for i in range(0, n, 512):
        end = min(n, i + 512)
        nisa.dma_copy(dst=tile[:, 0:end - i], src=x[:, i:end])";

    "output-not-written" (Bug), "a returned tensor is never written", "
The output would contain arbitrary memory contents. Copy the result to it with `nisa.dma_copy` or
`nl.store`.";

    "output-partly-written" (Suspicious), "some elements of an output are never written", "
Elements that are never written keep the previous contents of the memory; the simulator returns NaN
(floats) or a fixed pattern (integers). The message gives their number and the index of the first.
The usual cause is a loop over tiles that omits the remainder:

    for i in range(n // 128):                                    # wrong if n is not a multiple of 128
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128)], src=tile)

It is correct to leave elements unwritten if the caller never reads them.";

    "partition-dimension", "a view would move data across partitions", "
Dimension 0 of an on-chip tensor is its partitions, which are physically separate memories. Views
are free only within a partition. To move data between partitions, use `nisa.nc_transpose`,
`nisa.dma_copy` or a matmul.";

    "partition-size", "a tensor or view has more partitions than the memory", "
SBUF and PSUM have 128 partitions (`nl.tile_size.pmax`). Loop over tiles of at most 128 rows:

    for i in range(0, rows, 128):
        tile = nl.ndarray((min(128, rows - i), cols), x.dtype, nl.sbuf)";

    "view-stride" (Suspicious), "an access pattern uses the partition size of a view instead of the tensor's", "
The first pair of an on-chip access pattern steps over partitions, and the hardware has no stride
between them. The manual requires the elements per partition of the tensor there. If `.ap` is called
on a slice, the elements per partition of the slice are accepted as long as the pattern stays in the
slice, because the partitions are consecutive in both readings.

    t = nl.ndarray((128, 1024), nl.float32, nl.sbuf)
    right = t[:, 512:1024]
    right.ap([[512, 128], [1, 256]])     # found: a partition of `t` has 1024 elements
    right.ap([[1024, 128], [1, 256]])    # right: the same elements";

    "psum-alignment", "a PSUM tensor does not start at a bank boundary", "
PSUM has 8 banks of 2 KiB in each partition. A tensor starts at the beginning of a bank.

    nl.ndarray((128, 512), nl.float32, nl.psum, address=(0, 3 * 2048))";

    "psum-capacity", "a tensor is larger than PSUM", "
PSUM has 16 KiB in each partition, 4096 fp32 elements. Tile the free dimension; one matmul writes at
most one bank of 512 fp32 elements.";

    "register-arithmetic", "Python computes with a register", "
A register exists only on the device; its value is unknown at specialisation. Store it in a `(1, 1)`
tensor, compute with instructions, and load it again:

    nisa.register_store(t, reg)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=-1)
    nisa.register_load(reg, t)";

    "ignored-dtype" (Suspicious), "`dtype=` of an instruction differs from its destination", "
The result of an instruction has the dtype of `dst`. In early releases instructions had `dtype=` as
well; current ones do not, and the simulator ignores it. Kernels written for those releases give the
dtype of the output to which the tile is stored later. Omit it:

    nisa.tensor_copy(dst=tile, src=acc, dtype=nl.bfloat16)    # wrong, if tile is float32
    nisa.tensor_copy(dst=tile, src=acc)                       # right";

    "removed-beta1", "a feature of Beta 1 was removed", "
Kernels of a file with `import nki` are Beta 2, those of a file that imports `neuronxcc.nki` and not
`nki` are Beta 1, which has these features. The message names the replacement:

- slices or `.ap` for `nl.arange` and `nl.mgrid`
- smaller slices for `mask=`
- lists of tensors or free dimensions for block dimensions and `nl.par_dim`
- `dst=` for results of instructions

`run --beta1` runs a file that imports `nki` but is written for Beta 1, and `migrate --beta1` rewrites it.";

    "removed-mask", "`mask=` was removed after Beta 1", "
Bound the index, so that the last tile is smaller:

    end = min(n, start + 128)
    nisa.tensor_copy(dst=y[start:end, :], src=x[start:end, :])";

    "sbuf-capacity", "a tensor is larger than SBUF", "
The message gives the capacity of a partition in bytes. Tile the free dimension.";

    "shape-mismatch", "operands have incompatible shapes", "
The operands of an instruction have the same number of partitions and of elements per partition,
unless its documentation says otherwise.";

    "shared-divergence", "the cores of a logical core create different shared tensors", "
With two cores the kernel is specialised once per core, and a `shared_hbm` tensor that both create
is one tensor: that of the same `name=`, or the next one of those without a name. Create tensors without
a name unconditionally, before branching on `nl.program_id`.";

    "tensor-assignment", "a value that is not a tensor is assigned to a tensor", "
`t[0:64, :] = u` copies the tensor `u`. Instructions write all other values:

    t[0:64, :] = 0.0                          # wrong
    nisa.memset(dst=t[0:64, :], value=0.0)    # right";

    "tensor-condition" (Suspicious), "a tensor is used as a condition", "
The values of a tensor are unknown at specialisation, so it is true like any object, and equal to no number. Test
`t is not None` for an optional argument. For control flow on the device, load a `(1, 1)` tensor
into a register and write `if register:` or `while register:`.";

    "tensor-operator", "a Python operator is used on a tensor", "
    c = a + b                                                 # wrong
    c = nl.add(a, b)                                          # right
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)    # right";

    "unknown-attribute", "a value has no attribute of this name", "
The message lists the available attributes, or suggests the most similar one.";

    "unreadable-constant", "the file of a constant cannot be read", "
`nl.shared_constant(\"file.npy\")` takes the array from a file saved by NumPy. The machine must
support its dtype. The path is relative to the directory in which the simulator runs.";

    "unsupported-api", "a documented function is not supported yet", "
The function exists, but this version cannot run it. Use the equivalent instructions of `nki.isa`.";

    "unsupported-dtype", "a dtype is not supported", "
The message lists the supported dtypes. Convert float64 and int64 arrays first:
`x.astype(np.float32)`.";

    "unsupported-instruction", "a documented instruction is not supported yet", "
The instruction exists on the hardware, but this version does not model it.";

    "unsupported-operator", "an operator is used on values that do not support it", "
Dtypes, enum members and operators support only comparison for equality.";

    "unsupported-with", "`with` is used on something that is not a context", "
The only context of the language is `nl.no_reorder()`:

    with nl.no_reorder():
        nisa.tensor_copy(dst=u, src=t)";
}
