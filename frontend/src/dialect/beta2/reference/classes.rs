//! The classes of the API and their members.

use super::{Class, Entry, attribute, function};

/// The classes whose objects kernels get from the API.
pub static CLASSES: &[Class] = &[
    Class {
        module: "nki.language",
        name: "NkiTensor",
        base: "NKIObject",
        doc: "A tensor of the device, or a view of one. Views share the memory: making one moves nothing.",
        members: TENSOR,
    },
    Class {
        module: "nki.language",
        name: "NkiGrid",
        base: "",
        doc: "A grid of views of a tensor; see `nl.tiles` and `nl.blocks`. Indexing gives a smaller grid, and `data` the tensor.",
        members: GRID,
    },
    Class { module: "nki.language", name: "NkiTileGrid", base: "NkiGrid", doc: "A grid of tiles.", members: &[] },
    Class {
        module: "nki.language",
        name: "NkiBlockGrid",
        base: "NkiGrid",
        doc: "A grid of blocks of tiles.",
        members: &[attribute("block_shape", "tuple[int, ...]", "Tiles of a block in each dimension.")],
    },
    Class {
        module: "nki.isa",
        name: "VirtualRegister",
        base: "NKIObject",
        doc: "A register of the device; see `nisa.register_alloc`. It has no value while the kernel is compiled, and no arithmetic.",
        members: &[],
    },
    Class {
        module: "nki.isa",
        name: "NkiScalar",
        base: "",
        doc: "An integer that the device computes; see `nisa.scalar_load`. It has no value while the kernel is compiled.",
        members: SCALAR,
    },
    Class {
        module: "nki.isa",
        name: "NkiInstruction",
        base: "NKIObject",
        doc: "What an instruction returns: a handle for dependences.",
        members: INSTRUCTION,
    },
];

const TENSOR: &[Entry] = &[
    attribute("shape", "tuple[int, ...]", "Extents. On chip the first dimension is the partition dimension."),
    attribute("dtype", "DType", "The element type."),
    attribute("buffer", "MemoryRegion", "The memory that it is in."),
    attribute("ndim", "int", "The number of dimensions."),
    attribute("size", "int", "The number of elements."),
    attribute("itemsize", "int", "Bytes of an element."),
    attribute("name", "str", "The name of the allocation."),
    attribute(
        "strides",
        "tuple[int, ...]",
        "Elements between neighbours in each dimension; on chip, in dimension 0, those of a partition of the allocation.",
    ),
    attribute("offset", "int", "Elements before the first one of the view in the allocation."),
    attribute(
        "address",
        "tuple[int, int] | None",
        "The partition and the byte that the allocation was given, or None.",
    ),
    attribute("data", "NkiTensor", "The tensor itself, as a grid has one."),
    attribute("base_tensor", "NkiTensor", "The whole allocation of a view. Not documented by the SDK."),
    function(
        "__getitem__",
        "index: Any",
        "NkiTensor",
        "A view: `t[0:64, 3]`, `t[nl.ds(i * 64, 64), :]`, `t[..., None]`.",
    ),
    function("__setitem__", "index: Any, value: NkiTensor", "None", "Copies `value` into the view."),
    function("__len__", "", "int", "The extent of the first dimension."),
    function(
        "reshape",
        "shape: int | Sequence[int], *more: int",
        "NkiTensor",
        "A view with another shape and the same elements.",
    ),
    function(
        "permute",
        "dims: int | Sequence[int], *more: int",
        "NkiTensor",
        "A view with its dimensions in this order.",
    ),
    function(
        "broadcast",
        "dim: int, size: int",
        "NkiTensor",
        "A view with the dimension, of extent 1, repeated `size` times.",
    ),
    function(
        "broadcast_to",
        "shape: Sequence[int]",
        "NkiTensor",
        "A view with dimensions of extent 1 repeated to a shape.",
    ),
    function("expand_dim", "dim: int", "NkiTensor", "A view with a dimension of extent 1 inserted."),
    function("squeeze_dim", "dim: int", "NkiTensor", "A view without the dimension, of extent 1."),
    function(
        "reshape_dim",
        "dim: int, shape: Sequence[int]",
        "NkiTensor",
        "A view with one dimension split into several.",
    ),
    function(
        "flatten_dims",
        "start_dim: int, end_dim: int",
        "NkiTensor",
        "A view with neighbouring dimensions joined.",
    ),
    function(
        "rearrange",
        "src_pattern: Sequence[Any], dst_pattern: Sequence[Any], fixed_sizes: Mapping[str, int] | None = None",
        "NkiTensor",
        "A view with dimensions split, joined and moved: `t.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 4})`.",
    ),
    function(
        "slice",
        "dim: int, start: int, end: int, step: int = 1",
        "NkiTensor",
        "A view of a part of one dimension.",
    ),
    function(
        "select",
        "dim: int, index: Index",
        "NkiTensor",
        "A view without the dimension, at an index that may be a register.",
    ),
    function(
        "vector_select",
        "dim: int, vector_offset: NkiTensor",
        "NkiTensor",
        "A view of the rows of an HBM tensor at the indices in a tensor, one for each partition.",
    ),
    function("view", "dtype: Dtype", "NkiTensor", "A view of the same bytes as elements of another type."),
    function("reinterpret_cast", "dtype: Dtype", "NkiTensor", "The same as `view`."),
    function(
        "ap",
        "pattern: Sequence[Sequence[int]], offset: int | None = None, scalar_offset: Index | NkiTensor | None = None, \
         vector_offset: NkiTensor | None = None, indirect_dim: int = 0, dtype: Dtype | None = None",
        "NkiTensor",
        "A view by access pattern: `[stride, count]` pairs in elements, the partition first. An offset may come from a register or a tensor.",
    ),
    function("get_pattern", "", "list[list[int]]", "The `[stride, count]` pairs that `ap` takes."),
    function(
        "_get_pattern_and_offset",
        "",
        "tuple[list[list[int]], int]",
        "`get_pattern()` and `offset`; not documented, called by nki-library.",
    ),
    function("is_hbm", "", "bool", "Whether the tensor is in HBM; not documented, called by nki-library."),
    function(
        "is_contiguous",
        "",
        "bool",
        "Whether the elements of a partition (of all, in HBM) are neighbours in order.",
    ),
    function("is_indirect", "", "bool", "Whether a tensor gives the positions of the elements."),
    function(
        "indirect",
        "index: NkiTensor, num_elem: int | None = None",
        "NkiTensor",
        "A view of the elements of each partition at the positions in `index` (Trn3).",
    ),
];

const GRID: &[Entry] = &[
    attribute("shape", "tuple[int, ...]", "Cells in each dimension: tiles or blocks."),
    attribute("tile_shape", "tuple[int, ...]", "Elements of a whole tile."),
    attribute("element_shape", "tuple[int, ...]", "Elements of the selection in each dimension of the tensor."),
    attribute("dtype", "DType", "The element type."),
    attribute("buffer", "MemoryRegion", "The memory of the tensor."),
    attribute("data", "NkiTensor", "The selection as one tensor; an error if no access pattern expresses it."),
    attribute("is_data_representable", "bool", "Whether `data` is possible."),
    attribute("is_remainder", "bool", "Whether the selection is smaller than whole cells."),
    attribute("index_step_elements", "tuple[int, ...]", "Elements of the tensor from one cell to the next."),
    function("__getitem__", "index: Any", "Self", "The cells at ints and slices, as a grid."),
];

const SCALAR: &[Entry] = &[
    attribute("dtype", "DType", "int32 or int64."),
    attribute("is_comparison", "bool", "Whether it is the result of a comparison."),
    function("__add__", "other: int | NkiScalar", "NkiScalar", "Sum; wraps around."),
    function("__radd__", "other: int", "NkiScalar", "Sum; wraps around."),
    function("__sub__", "other: int | NkiScalar", "NkiScalar", "Difference; wraps around."),
    function("__rsub__", "other: int", "NkiScalar", "Difference; wraps around."),
    function("__mul__", "other: int | NkiScalar", "NkiScalar", "Product; wraps around."),
    function("__rmul__", "other: int", "NkiScalar", "Product; wraps around."),
    function("__neg__", "", "NkiScalar", "The negative number."),
    function("__pos__", "", "NkiScalar", "The same number."),
];

const INSTRUCTION: &[Entry] = &[function(
    "depends_on",
    "*producers: NkiInstruction | Sequence[NkiInstruction], kind: dependency | None = None",
    "NkiInstruction",
    "Lets the instruction wait for others: until they have completed (`nisa.dependency.runtime`, the default), or until they have been \
     issued (`schedule`).",
)];
