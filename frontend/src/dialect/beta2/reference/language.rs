//! The functions of `nki.language` that are not operators.

use super::{Entry, function};

const LOOP: &str = "A `range` of Python: the loop is unrolled when the kernel is compiled.";

/// One entry for each function of the dialect's table.
pub(super) const FUNCTIONS: &[Entry] = &[
    function(
        "ndarray",
        "shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '', address: Sequence[int] | None = None",
        "NkiTensor",
        "An uninitialised tensor. `buffer` is the memory: sbuf, psum, private_hbm or shared_hbm (outputs of a kernel). On chip the first \
         dimension is the partition dimension, at most `nl.tile_size.pmax`. `address=(partition, byte)` places it.",
    ),
    function(
        "zeros",
        "shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = ''",
        "NkiTensor",
        "A tensor of zeros; see `ndarray`.",
    ),
    function(
        "ones",
        "shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = ''",
        "NkiTensor",
        "A tensor of ones; see `ndarray`.",
    ),
    function(
        "full",
        "shape: Shape, fill_value: float, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = ''",
        "NkiTensor",
        "A tensor filled with one value; see `ndarray`.",
    ),
    function(
        "zeros_like",
        "x: NkiTensor, dtype: Dtype | None = None, buffer: MemoryRegion | None = None, name: str = ''",
        "NkiTensor",
        "A tensor of zeros with the shape (and dtype, buffer) of `x`.",
    ),
    function(
        "empty_like",
        "x: Grid, dtype: Dtype | None = None, buffer: MemoryRegion | None = None, name: str = '', *, \
         transpose_axes: Sequence[int] | None = None, address: Sequence[int] | None = None",
        "Grid",
        "An uninitialised tensor with the shape (and dtype, buffer) of `x`; of a grid, a grid with the same cells. With `transpose_axes`, \
         the SBUF tensor that a later `nisa.dma_transpose` fills: (1, 0), (2, 1, 0) or (3, 1, 2, 0).",
    ),
    function(
        "tiles",
        "source: NkiTensor | NkiGrid, *, tile_shape: tuple[int, ...] | None = None",
        "NkiTileGrid",
        "The tiles of a tensor as a grid of views: `nl.tiles(x, tile_shape=(128, 512))[i, j].data` is a tile. Nothing is allocated or moved. \
         The last tile of a dimension is smaller where the extent is not a multiple. Of a block, its tiles.",
    ),
    function(
        "blocks",
        "source: NkiTensor | NkiGrid, *, tile_shape: tuple[int, ...] | None = None, block_shape: tuple[int, ...]",
        "NkiBlockGrid",
        "Blocks of tiles of a tensor or grid, as a grid of views. `block_shape` counts tiles in each dimension.",
    ),
    function(
        "alloc_tiles",
        "*, tile_shape: tuple[int, ...], element_shape: tuple[int, ...], buffer: MemoryRegion, dtype: Dtype, \
         address: Sequence[int] | None = None, name: str = ''",
        "NkiTileGrid",
        "A grid of tiles with uninitialised memory of its own. `element_shape` is the extent in elements, `tile_shape` that of a tile in the \
         last dimensions.",
    ),
    function(
        "alloc_blocks",
        "*, tile_shape: tuple[int, ...], block_shape: tuple[int, ...], element_shape: tuple[int, ...], buffer: MemoryRegion, dtype: Dtype, \
         address: Sequence[int] | None = None, name: str = ''",
        "NkiBlockGrid",
        "The memory of `alloc_tiles`, as a grid of blocks of `block_shape` tiles.",
    ),
    function(
        "shared_constant",
        "constant: Any, dtype: Dtype | None = None",
        "NkiTensor",
        "Constant data in shared HBM, known when the kernel is compiled: an array, lists of numbers, or the path of a .npy file.",
    ),
    function(
        "shared_identity_matrix",
        "n: int, dtype: Dtype = uint8, dst: NkiTensor | None = None",
        "NkiTensor",
        "The identity matrix of `n` rows, for transposes on the tensor engine.",
    ),
    function(
        "ds",
        "start: Index, size: int",
        "Any",
        "A slice of `size` elements from `start`, which may be a register: `t[nl.ds(i * 128, 128), :]`.",
    ),
    function("affine_range", "start: int, stop: int | None = None, step: int = 1", "range", LOOP),
    function("sequential_range", "start: int, stop: int | None = None, step: int = 1", "range", LOOP),
    function("static_range", "start: int, stop: int | None = None, step: int = 1", "range", LOOP),
    function(
        "dynamic_range",
        "start: Index, stop: Index | None = None, step: int = 1",
        "Iterator[VirtualRegister]",
        "A loop on the device. The bounds may be registers; the loop variable is a register.",
    ),
    function(
        "fori_loop",
        "lower: Index, upper: Index, body_fun: Callable[[Any], None], step: int = 1",
        "None",
        "A loop on the device: `body_fun(i)` is called once, with a scalar that runs from `lower` to below `upper` (a register if a bound is \
         one). The body returns nothing; its effects are in memory.",
    ),
    function(
        "while_loop",
        "init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]",
        "None",
        "A loop on the device: `body_fun(reg)` returns the next condition; the loop ends when it is 0.",
    ),
    function(
        "no_reorder",
        "",
        "AbstractContextManager[None]",
        "`with nl.no_reorder():` keeps the order of the instructions of each engine and of each DMA queue on the device. Values are computed \
         in program order in any case.",
    ),
    function("program_id", "axis: int = 0", "int", "The number of this core: 0, or 1 on the second of two cores."),
    function("num_programs", "axes: int | Sequence[int] = 0", "int", "The number of cores that run the kernel."),
    function("program_ndim", "", "int", "1 if the kernel runs on several cores, else 0."),
    function("is_hbm", "buffer: MemoryRegion", "bool", "Whether a memory is in HBM."),
    function("is_on_chip", "buffer: MemoryRegion", "bool", "Whether a memory is SBUF or PSUM."),
    function("is_psum", "buffer: MemoryRegion", "bool", "Whether a memory is PSUM."),
    function("is_sbuf", "buffer: MemoryRegion", "bool", "Whether a memory is SBUF."),
    function(
        "load",
        "src: NkiTensor, dtype: Dtype | None = None",
        "NkiTensor",
        "A tile in SBUF, of the same shape, with the contents of the HBM view `src`.",
    ),
    function("store", "dst: NkiTensor, value: NkiTensor", "None", "Writes the tile `value` to the HBM view `dst`."),
    function(
        "load_transpose2d",
        "src: NkiTensor, dtype: Dtype | None = None",
        "NkiTensor",
        "A tile in SBUF with the transpose of the two-dimensional HBM view `src`.",
    ),
    function(
        "gather_flattened",
        "data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: Dtype | None = None",
        "NkiTensor",
        "Elements of each partition of the tile `data`, whose free dimensions count as one, at the positions in `indices` (uint32).",
    ),
    function("device_print", "print_prefix: str, tensor: NkiTensor", "None", "Prints a tensor while the kernel runs."),
    function("sum", REDUCE, "NkiTensor", "Sum over free axes."),
    function("max", REDUCE, "NkiTensor", "Maximum over free axes."),
    function("min", REDUCE, "NkiTensor", "Minimum over free axes."),
    function("mean", REDUCE, "NkiTensor", "Mean over free axes."),
    function("prod", REDUCE, "NkiTensor", "Product over free axes."),
    function("var", REDUCE, "NkiTensor", "Variance over free axes."),
    function(
        "all",
        "x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None",
        "NkiTensor",
        "1 where all elements over free axes are nonzero, else 0.",
    ),
    function(
        "softmax",
        "x: NkiTensor, axis: int | Sequence[int] = -1, dtype: Dtype | None = None",
        "NkiTensor",
        "Softmax over free axes.",
    ),
    function(
        "rms_norm",
        "x: NkiTensor, w: NkiTensor, axis: int | Sequence[int], n: int, epsilon: float = 1e-6, dtype: Dtype | None = None, \
         compute_dtype: Dtype | None = None",
        "NkiTensor",
        "Root-mean-square normalisation over `n` elements.",
    ),
    function(
        "where",
        "condition: NkiTensor, x: Operand, y: Operand, dtype: Dtype | None = None",
        "NkiTensor",
        "`x` where the condition is nonzero, else `y`.",
    ),
    function(
        "dropout",
        "x: NkiTensor, rate: float | NkiTensor, dtype: Dtype | None = None",
        "NkiTensor",
        "The tile with each element set to 0 with the probability `rate`. The others are not scaled.",
    ),
    function(
        "rand",
        "shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = ''",
        "NkiTensor",
        "A tensor of random numbers, uniformly distributed in [0, 1); see `random_seed`.",
    ),
    function(
        "random_seed",
        "seed: NkiTensor",
        "None",
        "Seeds the random numbers of the vector engine with the element of a (1, 1) tensor.",
    ),
    function(
        "transpose",
        "x: NkiTensor, dtype: Dtype | None = None",
        "NkiTensor",
        "The tile with the partition and the free dimension exchanged.",
    ),
    function(
        "matmul",
        "x: NkiTensor, y: NkiTensor, transpose_x: bool = False",
        "NkiTensor",
        "Matrix product of two tiles, in PSUM. With `transpose_x`, `x` is already transposed, which saves a transpose.",
    ),
    function(
        "broadcast_to",
        "x: NkiTensor, shape: Shape, dtype: Dtype | None = None",
        "NkiTensor",
        "The tile repeated to a shape.",
    ),
    function("expand_dims", "x: NkiTensor, axis: int", "NkiTensor", "The tile with a dimension of 1 inserted."),
];

const REDUCE: &str = "x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: bool = False";
