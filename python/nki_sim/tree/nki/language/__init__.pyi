"""The names of `nki.language`. Written by python/stubs.py from the registry of the simulator; do not edit."""

import builtins
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from nki.isa import NkiScalar, VirtualRegister
from nki_sim._objects import DType as DType, NKIObject as NKIObject
from typing_extensions import Self

from . import dtypes as dtypes

Shape: TypeAlias = Sequence[int]
Dtype: TypeAlias = DType | np.dtype[Any] | type[Any] | str
Operand: TypeAlias = NkiTensor | float
Index: TypeAlias = int | VirtualRegister | NkiScalar | NkiTensor
Operator: TypeAlias = Callable[..., Any]
Grid = TypeVar("Grid", NkiTensor, NkiTileGrid, NkiBlockGrid)
#: For annotations of a kernel's parameters: the kernel gets a tensor, its caller passes an array.
tensor: TypeAlias = NkiTensor | Any

class NkiTensor(NKIObject):
    """A tensor of the device, or a view of one. Views share the memory: making one moves nothing."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents. On chip the first dimension is the partition dimension."""
        ...

    @property
    def dtype(self) -> DType:
        """The element type."""
        ...

    @property
    def buffer(self) -> MemoryRegion:
        """The memory that it is in."""
        ...

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ...

    @property
    def size(self) -> int:
        """The number of elements."""
        ...

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        ...

    @property
    def name(self) -> str:
        """The name of the allocation."""
        ...

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours in each dimension; on chip, in dimension 0, those of a partition of the
        allocation.
        """
        ...

    @property
    def offset(self) -> int:
        """Elements before the first one of the view in the allocation."""
        ...

    @property
    def address(self) -> tuple[int, int] | None:
        """The partition and the byte that the allocation was given, or None."""
        ...

    @property
    def data(self) -> NkiTensor:
        """The tensor itself, as a grid has one."""
        ...

    @property
    def base_tensor(self) -> NkiTensor:
        """The whole allocation of a view. Not documented by the SDK."""
        ...

    def __getitem__(self, index: Any) -> NkiTensor:
        """A view: `t[0:64, 3]`, `t[nl.ds(i * 64, 64), :]`, `t[..., None]`."""
        ...

    def __setitem__(self, index: Any, value: NkiTensor) -> None:
        """Copies `value` into the view."""
        ...

    def __len__(self) -> int:
        """The extent of the first dimension."""
        ...

    def reshape(self, shape: int | Sequence[int], *more: int) -> NkiTensor:
        """A view with another shape and the same elements."""
        ...

    def permute(self, dims: int | Sequence[int], *more: int) -> NkiTensor:
        """A view with its dimensions in this order."""
        ...

    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """A view with the dimension, of extent 1, repeated `size` times."""
        ...

    def broadcast_to(self, shape: Sequence[int]) -> NkiTensor:
        """A view with dimensions of extent 1 repeated to a shape."""
        ...

    def expand_dim(self, dim: int) -> NkiTensor:
        """A view with a dimension of extent 1 inserted."""
        ...

    def squeeze_dim(self, dim: int) -> NkiTensor:
        """A view without the dimension, of extent 1."""
        ...

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """A view with one dimension split into several."""
        ...

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """A view with neighbouring dimensions joined."""
        ...

    def rearrange(self, src_pattern: Sequence[Any], dst_pattern: Sequence[Any], fixed_sizes: Mapping[str, int] | None = None) -> NkiTensor:
        """A view with dimensions split, joined and moved: `t.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 4})`."""
        ...

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:
        """A view of a part of one dimension."""
        ...

    def select(self, dim: int, index: Index) -> NkiTensor:
        """A view without the dimension, at an index that may be a register."""
        ...

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """A view of the rows of an HBM tensor at the indices in a tensor, one for each partition."""
        ...

    def view(self, dtype: Dtype) -> NkiTensor:
        """A view of the same bytes as elements of another type."""
        ...

    def reinterpret_cast(self, dtype: Dtype) -> NkiTensor:
        """The same as `view`."""
        ...

    def ap(self, pattern: Sequence[Sequence[int]], offset: int | None = None, scalar_offset: Index | NkiTensor | None = None, vector_offset: NkiTensor | None = None, indirect_dim: int = 0, dtype: Dtype | None = None) -> NkiTensor:
        """A view by access pattern: `[stride, count]` pairs in elements, the partition first. An offset may come from a
        register or a tensor.
        """
        ...

    def get_pattern(self) -> list[list[int]]:
        """The `[stride, count]` pairs that `ap` takes."""
        ...

    def _get_pattern_and_offset(self) -> tuple[list[list[int]], int]:
        """`get_pattern()` and `offset`; not documented, called by nki-library."""
        ...

    def is_hbm(self) -> builtins.bool:
        """Whether the tensor is in HBM; not documented, called by nki-library."""
        ...

    def is_contiguous(self) -> builtins.bool:
        """Whether the elements of a partition (of all, in HBM) are neighbours in order."""
        ...

    def is_indirect(self) -> builtins.bool:
        """Whether a tensor gives the positions of the elements."""
        ...

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:
        """A view of the elements of each partition at the positions in `index` (Trn3)."""
        ...

class NkiGrid:
    """A grid of views of a tensor; see `nl.tiles` and `nl.blocks`. Indexing gives a smaller grid, and `data` the
    tensor.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells in each dimension: tiles or blocks."""
        ...

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Elements of a whole tile."""
        ...

    @property
    def element_shape(self) -> tuple[int, ...]:
        """Elements of the selection in each dimension of the tensor."""
        ...

    @property
    def dtype(self) -> DType:
        """The element type."""
        ...

    @property
    def buffer(self) -> MemoryRegion:
        """The memory of the tensor."""
        ...

    @property
    def data(self) -> NkiTensor:
        """The selection as one tensor; an error if no access pattern expresses it."""
        ...

    @property
    def is_data_representable(self) -> builtins.bool:
        """Whether `data` is possible."""
        ...

    @property
    def is_remainder(self) -> builtins.bool:
        """Whether the selection is smaller than whole cells."""
        ...

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """Elements of the tensor from one cell to the next."""
        ...

    def __getitem__(self, index: Any) -> Self:
        """The cells at ints and slices, as a grid."""
        ...

class NkiTileGrid(NkiGrid):
    """A grid of tiles."""

class NkiBlockGrid(NkiGrid):
    """A grid of blocks of tiles."""

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Tiles of a block in each dimension."""
        ...

class MemoryRegion(enum.Enum):
    sbuf = 'sbuf'
    psum = 'psum'
    private_hbm = 'private_hbm'
    shared_hbm = 'shared_hbm'

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
private_hbm = MemoryRegion.private_hbm
shared_hbm = MemoryRegion.shared_hbm
hbm = MemoryRegion.private_hbm
bool: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
float16: DType
bfloat16: DType
float32: DType
tfloat32: DType
float8_e4m3: DType
float8_e4m3fn: DType
float8_e5m2: DType
float8_e8m0fnu: DType
float8_e4m3fn_x4: DType
float8_e5m2_x4: DType
float4_e2m1fn_x4: DType
bool_: DType
class _TileSize:
    """Limits of the target."""

    pmax: int
    psum_fmax: int
    psum_bank_fmax: int
    psum_bank_fmax_bytes: int
    gemm_stationary_fmax: int
    gemm_moving_fmax: int
    bn_stats_fmax: int
    psum_min_align: int
    sbuf_min_align: int
    psum_num_banks: int
    sbuf_size_bytes: int
    sbuf_fmax: int
    sbuf_fmax_bytes: int
    total_available_sbuf_size: int

tile_size: _TileSize

def add(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x + y. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def subtract(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x - y. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def multiply(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x * y. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def divide(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x / y. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def maximum(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: the larger of x and y. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def minimum(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: the smaller of x and y. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def abs_max(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x if |x| > |y|, else y. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def abs_min(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x if |x| < |y|, else y. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def power(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x to the power of y. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def mod(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: remainder of x / y with the sign of y. `x` and `y` are tiles or numbers. Also an operator
    for `op=` arguments of instructions.
    """
    ...

def fmod(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: remainder of x / y with the sign of x. `x` and `y` are tiles or numbers. Also an operator
    for `op=` arguments of instructions.
    """
    ...

def equal(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x == y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def not_equal(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x != y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def greater(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x > y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def greater_equal(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x >= y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def less(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x < y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def less_equal(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x <= y, else 0. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def logical_and(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x and y are nonzero, else 0. `x` and `y` are tiles or numbers. Also an operator
    for `op=` arguments of instructions.
    """
    ...

def logical_or(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x or y is nonzero, else 0. `x` and `y` are tiles or numbers. Also an operator for
    `op=` arguments of instructions.
    """
    ...

def logical_xor(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where exactly one of x and y is nonzero, else 0. `x` and `y` are tiles or numbers. Also
    an operator for `op=` arguments of instructions.
    """
    ...

def bitwise_and(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x & y, of integers. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments
    of instructions.
    """
    ...

def bitwise_or(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x | y, of integers. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments
    of instructions.
    """
    ...

def bitwise_xor(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x ^ y, of integers. `x` and `y` are tiles or numbers. Also an operator for `op=` arguments
    of instructions.
    """
    ...

def left_shift(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x << y, of integers. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def right_shift(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x >> y of the bits: zeros come in. `x` and `y` are tiles or numbers. Also an operator for
    `op=` arguments of instructions.
    """
    ...

def arithmetic_right_shift(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x >> y of integers: copies of the sign come in. `x` and `y` are tiles or numbers. Also an
    operator for `op=` arguments of instructions.
    """
    ...

def arithmetic_left_shift(x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x << y, of integers. `x` and `y` are tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def abs(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: |x|. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def square(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x * x. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def invert(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: the complement of each bit of an integer. `x` is a tile. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def logical_not(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 where x is 0, else 0. `x` is a tile. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def negative(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: -x. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def exp(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: e^x. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def log(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: natural logarithm. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def sqrt(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: square root. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def rsqrt(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 / sqrt(x). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def reciprocal(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 / x. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def tanh(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: hyperbolic tangent. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def sigmoid(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: 1 / (1 + e^-x). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def relu(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: max(x, 0). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def gelu(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x Phi(x), with the normal distribution function Phi. `x` is a tile. Also an operator for
    `op=` arguments of instructions.
    """
    ...

def gelu_apprx_sigmoid(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x sigmoid(1.702 x). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def gelu_apprx_tanh(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). `x` is a tile. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def gelu_dx(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: derivative of gelu: Phi(x) + x phi(x). `x` is a tile. Also an operator for `op=` arguments
    of instructions.
    """
    ...

def gelu_apprx_sigmoid_dx(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: derivative of gelu_apprx_sigmoid. `x` is a tile. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def silu(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x sigmoid(x). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def silu_dx(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: derivative of silu. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def softplus(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: ln(1 + e^x). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def mish(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x tanh(softplus(x)). `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def erf(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: error function. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def erf_dx(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: derivative of the error function: 2/sqrt(pi) e^(-x^2). `x` is a tile. Also an operator for
    `op=` arguments of instructions.
    """
    ...

def sin(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: sine. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def cos(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: cosine. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def tan(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: tangent. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def arctan(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: inverse tangent. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def sign(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: -1, 0 or 1. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def floor(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: largest integer that is at most x. `x` is a tile. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def ceil(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: smallest integer that is at least x. `x` is a tile. Also an operator for `op=` arguments
    of instructions.
    """
    ...

def trunc(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x without its fraction. `x` is a tile. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def copy(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """Element by element: x. `x` is a tile. Also an operator for `op=` arguments of instructions."""
    ...

def bypass() -> NoReturn:
    """An operator for `op=` arguments of instructions: the first operand, unchanged. It cannot be called."""
    ...

def prelu() -> NoReturn:
    """An operator for `op=` arguments of instructions: x above 0, else a slope times x. It cannot be called."""
    ...

def average() -> NoReturn:
    """An operator for `op=` arguments of instructions: the sum divided by the number of partitions. It cannot be
    called.
    """
    ...

def ndarray(shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '', address: Sequence[int] | None = None) -> NkiTensor:
    """An uninitialised tensor. `buffer` is the memory: sbuf, psum, private_hbm or shared_hbm (outputs of a kernel).
    On chip the first dimension is the partition dimension, at most `nl.tile_size.pmax`. `address=(partition,
    byte)` places it.
    """
    ...

def zeros(shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '') -> NkiTensor:
    """A tensor of zeros; see `ndarray`."""
    ...

def ones(shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '') -> NkiTensor:
    """A tensor of ones; see `ndarray`."""
    ...

def full(shape: Shape, fill_value: float, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '') -> NkiTensor:
    """A tensor filled with one value; see `ndarray`."""
    ...

def zeros_like(x: NkiTensor, dtype: Dtype | None = None, buffer: MemoryRegion | None = None, name: str = '') -> NkiTensor:
    """A tensor of zeros with the shape (and dtype, buffer) of `x`."""
    ...

def empty_like(x: Grid, dtype: Dtype | None = None, buffer: MemoryRegion | None = None, name: str = '', *, transpose_axes: Sequence[int] | None = None, address: Sequence[int] | None = None) -> Grid:
    """An uninitialised tensor with the shape (and dtype, buffer) of `x`; of a grid, a grid with the same cells. With
    `transpose_axes`, the SBUF tensor that a later `nisa.dma_transpose` fills: (1, 0), (2, 1, 0) or (3, 1, 2, 0).
    """
    ...

def tiles(source: NkiTensor | NkiGrid, *, tile_shape: tuple[int, ...] | None = None) -> NkiTileGrid:
    """The tiles of a tensor as a grid of views: `nl.tiles(x, tile_shape=(128, 512))[i, j].data` is a tile. Nothing
    is allocated or moved. The last tile of a dimension is smaller where the extent is not a multiple. Of a block,
    its tiles.
    """
    ...

def blocks(source: NkiTensor | NkiGrid, *, tile_shape: tuple[int, ...] | None = None, block_shape: tuple[int, ...]) -> NkiBlockGrid:
    """Blocks of tiles of a tensor or grid, as a grid of views. `block_shape` counts tiles in each dimension."""
    ...

def alloc_tiles(*, tile_shape: tuple[int, ...], element_shape: tuple[int, ...], buffer: MemoryRegion, dtype: Dtype, address: Sequence[int] | None = None, name: str = '') -> NkiTileGrid:
    """A grid of tiles with uninitialised memory of its own. `element_shape` is the extent in elements, `tile_shape`
    that of a tile in the last dimensions.
    """
    ...

def alloc_blocks(*, tile_shape: tuple[int, ...], block_shape: tuple[int, ...], element_shape: tuple[int, ...], buffer: MemoryRegion, dtype: Dtype, address: Sequence[int] | None = None, name: str = '') -> NkiBlockGrid:
    """The memory of `alloc_tiles`, as a grid of blocks of `block_shape` tiles."""
    ...

def shared_constant(constant: Any, dtype: Dtype | None = None) -> NkiTensor:
    """Constant data in shared HBM, known when the kernel is compiled: an array, lists of numbers, or the path of a
    .npy file.
    """
    ...

def shared_identity_matrix(n: int, dtype: Dtype = uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """The identity matrix of `n` rows, for transposes on the tensor engine."""
    ...

def ds(start: Index, size: int) -> Any:
    """A slice of `size` elements from `start`, which may be a register: `t[nl.ds(i * 128, 128), :]`."""
    ...

def affine_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """A `range` of Python: the loop is unrolled when the kernel is compiled."""
    ...

def sequential_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """A `range` of Python: the loop is unrolled when the kernel is compiled."""
    ...

def static_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """A `range` of Python: the loop is unrolled when the kernel is compiled."""
    ...

def dynamic_range(start: Index, stop: Index | None = None, step: int = 1) -> Iterator[VirtualRegister]:
    """A loop on the device. The bounds may be registers; the loop variable is a register."""
    ...

def fori_loop(lower: Index, upper: Index, body_fun: Callable[[Any], None], step: int = 1) -> None:
    """A loop on the device: `body_fun(i)` is called once, with a scalar that runs from `lower` to below `upper` (a
    register if a bound is one). The body returns nothing; its effects are in memory.
    """
    ...

def while_loop(init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]) -> None:
    """A loop on the device: `body_fun(reg)` returns the next condition; the loop ends when it is 0."""
    ...

def no_reorder() -> AbstractContextManager[None]:
    """`with nl.no_reorder():` keeps the order of the instructions of each engine and of each DMA queue on the
    device. Values are computed in program order in any case.
    """
    ...

def program_id(axis: int = 0) -> int:
    """The number of this core: 0, or 1 on the second of two cores."""
    ...

def num_programs(axes: int | Sequence[int] = 0) -> int:
    """The number of cores that run the kernel."""
    ...

def program_ndim() -> int:
    """1 if the kernel runs on several cores, else 0."""
    ...

def is_hbm(buffer: MemoryRegion) -> builtins.bool:
    """Whether a memory is in HBM."""
    ...

def is_on_chip(buffer: MemoryRegion) -> builtins.bool:
    """Whether a memory is SBUF or PSUM."""
    ...

def is_psum(buffer: MemoryRegion) -> builtins.bool:
    """Whether a memory is PSUM."""
    ...

def is_sbuf(buffer: MemoryRegion) -> builtins.bool:
    """Whether a memory is SBUF."""
    ...

def load(src: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """A tile in SBUF, of the same shape, with the contents of the HBM view `src`."""
    ...

def store(dst: NkiTensor, value: NkiTensor) -> None:
    """Writes the tile `value` to the HBM view `dst`."""
    ...

def device_print(print_prefix: str, tensor: NkiTensor) -> None:
    """Prints a tensor while the kernel runs."""
    ...

def sum(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Sum over free axes."""
    ...

def max(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Maximum over free axes."""
    ...

def min(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Minimum over free axes."""
    ...

def mean(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Mean over free axes."""
    ...

def prod(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Product over free axes."""
    ...

def var(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None, keepdims: builtins.bool = False) -> NkiTensor:
    """Variance over free axes."""
    ...

def all(x: NkiTensor, axis: int | Sequence[int], dtype: Dtype | None = None) -> NkiTensor:
    """1 where all elements over free axes are nonzero, else 0."""
    ...

def softmax(x: NkiTensor, axis: int | Sequence[int] = -1, dtype: Dtype | None = None) -> NkiTensor:
    """Softmax over free axes."""
    ...

def rms_norm(x: NkiTensor, w: NkiTensor, axis: int | Sequence[int], n: int, epsilon: float = 1e-6, dtype: Dtype | None = None, compute_dtype: Dtype | None = None) -> NkiTensor:
    """Root-mean-square normalisation over `n` elements."""
    ...

def where(condition: NkiTensor, x: Operand, y: Operand, dtype: Dtype | None = None) -> NkiTensor:
    """`x` where the condition is nonzero, else `y`."""
    ...

def transpose(x: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """The tile with the partition and the free dimension exchanged."""
    ...

def matmul(x: NkiTensor, y: NkiTensor, transpose_x: builtins.bool = False) -> NkiTensor:
    """Matrix product of two tiles, in PSUM. With `transpose_x`, `x` is already transposed, which saves a transpose."""
    ...

def broadcast_to(x: NkiTensor, shape: Shape, dtype: Dtype | None = None) -> NkiTensor:
    """The tile repeated to a shape."""
    ...

def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """The tile with a dimension of 1 inserted."""
    ...

def load_transpose2d(src: NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """A tile in SBUF with the transpose of the two-dimensional HBM view `src`."""
    ...

def gather_flattened(data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: Dtype | None = None) -> NkiTensor:
    """Elements of each partition of the tile `data`, whose free dimensions count as one, at the positions in
    `indices` (uint32).
    """
    ...

def dropout(x: NkiTensor, rate: float | NkiTensor, dtype: Dtype | None = None) -> NkiTensor:
    """The tile with each element set to 0 with the probability `rate`. The others are not scaled."""
    ...

def rand(shape: Shape, dtype: Dtype, buffer: MemoryRegion = sbuf, name: str = '') -> NkiTensor:
    """A tensor of random numbers, uniformly distributed in [0, 1); see `random_seed`."""
    ...

def random_seed(seed: NkiTensor) -> None:
    """Seeds the random numbers of the vector engine with the element of a (1, 1) tensor."""
    ...
