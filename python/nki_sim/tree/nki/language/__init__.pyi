"""The names of `nki.language`. Written by python/stubs.py from the registry of the simulator; do not edit."""

import enum
from collections.abc import Sequence
from typing import Any

from nki_sim._objects import DType, NKIObject as NKIObject, NkiTensor as NkiTensor, TileSize

tensor = NkiTensor

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
tile_size: TileSize

def add(x, y, dtype=None) -> Any:
    """Element by element: add of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def subtract(x, y, dtype=None) -> Any:
    """Element by element: subtract of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def multiply(x, y, dtype=None) -> Any:
    """Element by element: multiply of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def divide(x, y, dtype=None) -> Any:
    """Element by element: divide of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def maximum(x, y, dtype=None) -> Any:
    """Element by element: maximum of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def minimum(x, y, dtype=None) -> Any:
    """Element by element: minimum of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def abs_max(x, y, dtype=None) -> Any:
    """Element by element: abs max of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def abs_min(x, y, dtype=None) -> Any:
    """Element by element: abs min of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def power(x, y, dtype=None) -> Any:
    """Element by element: power of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def mod(x, y, dtype=None) -> Any:
    """Element by element: mod of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def fmod(x, y, dtype=None) -> Any:
    """Element by element: fmod of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def equal(x, y, dtype=None) -> Any:
    """Element by element: equal of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def not_equal(x, y, dtype=None) -> Any:
    """Element by element: not equal of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def greater(x, y, dtype=None) -> Any:
    """Element by element: greater of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def greater_equal(x, y, dtype=None) -> Any:
    """Element by element: greater equal of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def less(x, y, dtype=None) -> Any:
    """Element by element: less of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def less_equal(x, y, dtype=None) -> Any:
    """Element by element: less equal of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def logical_and(x, y, dtype=None) -> Any:
    """Element by element: logical and of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def logical_or(x, y, dtype=None) -> Any:
    """Element by element: logical or of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def logical_xor(x, y, dtype=None) -> Any:
    """Element by element: logical xor of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def bitwise_and(x, y, dtype=None) -> Any:
    """Element by element: bitwise and of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def bitwise_or(x, y, dtype=None) -> Any:
    """Element by element: bitwise or of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def bitwise_xor(x, y, dtype=None) -> Any:
    """Element by element: bitwise xor of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def left_shift(x, y, dtype=None) -> Any:
    """Element by element: left shift of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def right_shift(x, y, dtype=None) -> Any:
    """Element by element: right shift of `x` and `y`, tiles or numbers. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def arithmetic_right_shift(x, y, dtype=None) -> Any:
    """Element by element: arithmetic right shift of `x` and `y`, tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def arithmetic_left_shift(x, y, dtype=None) -> Any:
    """Element by element: arithmetic left shift of `x` and `y`, tiles or numbers. Also an operator for `op=`
    arguments of instructions.
    """
    ...

def abs(x, dtype=None) -> Any:
    """Element by element: abs of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def square(x, dtype=None) -> Any:
    """Element by element: square of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def invert(x, dtype=None) -> Any:
    """Element by element: invert of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def logical_not(x, dtype=None) -> Any:
    """Element by element: logical not of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def negative(x, dtype=None) -> Any:
    """Element by element: negative of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def exp(x, dtype=None) -> Any:
    """Element by element: exp of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def log(x, dtype=None) -> Any:
    """Element by element: log of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def sqrt(x, dtype=None) -> Any:
    """Element by element: sqrt of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def rsqrt(x, dtype=None) -> Any:
    """Element by element: rsqrt of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def reciprocal(x, dtype=None) -> Any:
    """Element by element: reciprocal of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def tanh(x, dtype=None) -> Any:
    """Element by element: tanh of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def sigmoid(x, dtype=None) -> Any:
    """Element by element: sigmoid of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def relu(x, dtype=None) -> Any:
    """Element by element: relu of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def gelu(x, dtype=None) -> Any:
    """Element by element: gelu of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def gelu_apprx_sigmoid(x, dtype=None) -> Any:
    """Element by element: gelu apprx sigmoid of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def gelu_apprx_tanh(x, dtype=None) -> Any:
    """Element by element: gelu apprx tanh of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def gelu_dx(x, dtype=None) -> Any:
    """Element by element: gelu dx of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def gelu_apprx_sigmoid_dx(x, dtype=None) -> Any:
    """Element by element: gelu apprx sigmoid dx of the tile `x`. Also an operator for `op=` arguments of
    instructions.
    """
    ...

def silu(x, dtype=None) -> Any:
    """Element by element: silu of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def silu_dx(x, dtype=None) -> Any:
    """Element by element: silu dx of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def softplus(x, dtype=None) -> Any:
    """Element by element: softplus of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def mish(x, dtype=None) -> Any:
    """Element by element: mish of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def erf(x, dtype=None) -> Any:
    """Element by element: erf of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def erf_dx(x, dtype=None) -> Any:
    """Element by element: erf dx of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def sin(x, dtype=None) -> Any:
    """Element by element: sin of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def cos(x, dtype=None) -> Any:
    """Element by element: cos of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def tan(x, dtype=None) -> Any:
    """Element by element: tan of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def arctan(x, dtype=None) -> Any:
    """Element by element: arctan of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def sign(x, dtype=None) -> Any:
    """Element by element: sign of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def floor(x, dtype=None) -> Any:
    """Element by element: floor of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def ceil(x, dtype=None) -> Any:
    """Element by element: ceil of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def trunc(x, dtype=None) -> Any:
    """Element by element: trunc of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def copy(x, dtype=None) -> Any:
    """Element by element: copy of the tile `x`. Also an operator for `op=` arguments of instructions."""
    ...

def bypass() -> Any:
    """The operator bypass, as an `op=` argument of instructions; it cannot be called."""
    ...

def prelu() -> Any:
    """The operator prelu, as an `op=` argument of instructions; it cannot be called."""
    ...

def average() -> Any:
    """The operator average, as an `op=` argument of instructions; it cannot be called."""
    ...

def ndarray(shape, dtype, buffer=..., name='', address=None) -> Any:
    """An uninitialised tensor. `buffer` is the memory: sbuf, psum, private_hbm or shared_hbm (outputs of a kernel).
    On chip the first dimension is the partition dimension, at most `nl.tile_size.pmax`. `address=(partition,
    byte)` places it.
    """
    ...

def zeros(shape, dtype, buffer=..., name='', address=None) -> Any:
    """A tensor of zeros; see `ndarray`."""
    ...

def ones(shape, dtype, buffer=..., name='', address=None) -> Any:
    """A tensor of ones; see `ndarray`."""
    ...

def full(shape, fill_value, dtype, buffer=..., name='') -> Any:
    """A tensor filled with one value; see `ndarray`."""
    ...

def zeros_like(x, dtype=None, buffer=None, name='') -> Any:
    """A tensor of zeros with the shape (and dtype, buffer) of `x`."""
    ...

def empty_like(x, dtype=None, buffer=None, name='') -> Any:
    """An uninitialised tensor with the shape (and dtype, buffer) of `x`."""
    ...

def tiles(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def blocks(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def alloc_tiles(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def alloc_blocks(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def shared_constant(constant, dtype=None) -> Any:
    """Constant data in shared HBM, known when the kernel is compiled."""
    ...

def shared_identity_matrix(n, dtype=..., dst=None) -> Any:
    """The identity matrix of `n` rows, for transposes on the tensor engine."""
    ...

def ds(start, size) -> Any:
    """A slice of `size` elements from `start`, which may be a register: `t[nl.ds(i * 128, 128), :]`."""
    ...

def affine_range(start, stop=None, step=1) -> Any:
    """A range that is unrolled when the kernel is compiled."""
    ...

def sequential_range(start, stop=None, step=1) -> Any:
    """A range that is unrolled when the kernel is compiled."""
    ...

def static_range(start, stop=None, step=1) -> Any:
    """A range that is unrolled when the kernel is compiled."""
    ...

def dynamic_range(start, stop=None, step=1) -> Any:
    """A loop on the device. The bounds may be registers; the loop variable is a register."""
    ...

def fori_loop(lower, upper, body_fun, step=1) -> Any:
    """A loop on the device: calls `body_fun(i)` with a register from `lower` to below `upper`."""
    ...

def while_loop(init, body_fun) -> Any:
    """A loop on the device: `body_fun(reg)` returns the next condition; the loop ends when it is 0."""
    ...

def no_reorder() -> Any:
    """`with nl.no_reorder():` keeps the order of instructions. Values are always computed in program order."""
    ...

def program_id(axis=0) -> Any:
    """The number of this core: 0, or 1 on the second of two cores."""
    ...

def num_programs(axes=None) -> Any:
    """The number of cores that run the kernel."""
    ...

def program_ndim() -> Any:
    """1 if the kernel runs on several cores, else 0."""
    ...

def is_hbm(buffer) -> Any:
    """Whether a memory is in HBM."""
    ...

def is_on_chip(buffer) -> Any:
    """Whether a memory is SBUF or PSUM."""
    ...

def is_psum(buffer) -> Any:
    """Whether a memory is PSUM."""
    ...

def is_sbuf(buffer) -> Any:
    """Whether a memory is SBUF."""
    ...

def load(src, dtype=None) -> Any:
    """A tile in SBUF, of the same shape, with the contents of the HBM view `src`."""
    ...

def store(dst, value) -> Any:
    """Writes the tile `value` to the HBM view `dst`."""
    ...

def device_print(print_prefix, tensor) -> Any:
    """Prints a tensor while the kernel runs."""
    ...

def sum(x, axis, dtype=None, keepdims=False) -> Any:
    """Sum over free axes."""
    ...

def max(x, axis, dtype=None, keepdims=False) -> Any:
    """Maximum over free axes."""
    ...

def min(x, axis, dtype=None, keepdims=False) -> Any:
    """Minimum over free axes."""
    ...

def mean(x, axis, dtype=None, keepdims=False) -> Any:
    """Mean over free axes."""
    ...

def prod(x, axis, dtype=None, keepdims=False) -> Any:
    """Product over free axes."""
    ...

def var(x, axis, dtype=None, keepdims=False) -> Any:
    """Variance over free axes."""
    ...

def all(x, axis, dtype=None, keepdims=False) -> Any:
    """Whether all elements over free axes are nonzero."""
    ...

def softmax(x, axis, dtype=None) -> Any:
    """Softmax over free axes."""
    ...

def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None) -> Any:
    """Root-mean-square normalisation over `n` elements."""
    ...

def where(condition, x, y, dtype=None) -> Any:
    """`x` where the condition is nonzero, else `y`."""
    ...

def transpose(x, dtype=None) -> Any:
    """The tile with the partition and the free dimension exchanged."""
    ...

def matmul(x, y, transpose_x=False) -> Any:
    """Matrix product of two tiles, in PSUM."""
    ...

def broadcast_to(x, shape, dtype=None) -> Any:
    """The tile repeated to a shape."""
    ...

def expand_dims(x, axis) -> Any:
    """The tile with a dimension of 1 inserted."""
    ...

def load_transpose2d(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def gather_flattened(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def dropout(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def rand(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...

def random_seed(*args, **kwargs) -> Any:
    """See the documentation of the NKI language."""
    ...
