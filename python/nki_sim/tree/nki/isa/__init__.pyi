"""The names of `nki.isa`. Written by python/stubs.py from the registry of the simulator; do not edit."""

import enum
from collections.abc import Sequence
from typing import Any

import nki.language as nl
from nki.language import Dtype, DType, NKIObject, NkiTensor, Operator

from . import constants as constants

class VirtualRegister(NKIObject):
    """A register of the device; see `nisa.register_alloc`. It has no value while the kernel is compiled, and no
    arithmetic.
    """

class NkiScalar:
    """An integer that the device computes; see `nisa.scalar_load`. It has no value while the kernel is compiled."""

    @property
    def dtype(self) -> DType:
        """int32 or int64."""
        ...

    @property
    def is_comparison(self) -> bool:
        """Whether it is the result of a comparison."""
        ...

    def __add__(self, other: int | NkiScalar) -> NkiScalar:
        """Sum; wraps around."""
        ...

    def __radd__(self, other: int) -> NkiScalar:
        """Sum; wraps around."""
        ...

    def __sub__(self, other: int | NkiScalar) -> NkiScalar:
        """Difference; wraps around."""
        ...

    def __rsub__(self, other: int) -> NkiScalar:
        """Difference; wraps around."""
        ...

    def __mul__(self, other: int | NkiScalar) -> NkiScalar:
        """Product; wraps around."""
        ...

    def __rmul__(self, other: int) -> NkiScalar:
        """Product; wraps around."""
        ...

    def __neg__(self) -> NkiScalar:
        """The negative number."""
        ...

    def __pos__(self) -> NkiScalar:
        """The same number."""
        ...

class NkiInstruction(NKIObject):
    """What an instruction returns: a handle for dependences."""

    def depends_on(self, *producers: NkiInstruction | Sequence[NkiInstruction], kind: dependency | None = None) -> NkiInstruction:
        """Lets the instruction wait for others: until they have completed (`nisa.dependency.runtime`, the default), or
        until they have been issued (`schedule`).
        """
        ...

class NkiValidationError(Exception):
    """An operand or operation that the machine does not support. Also `nisa.NkiValidationError`."""

class engine(enum.Enum):
    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6

class dge_mode(enum.Enum):
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3

class dependency(enum.Enum):
    runtime = 0
    schedule = 1

class oob_mode(enum.Enum):
    error = 0
    skip = 1

class reduce_cmd(enum.Enum):
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4

class matmul_perf_mode(enum.Enum):
    none = 0
    double_row = 1

class nc_version(enum.Enum):
    gen2 = 2
    gen3 = 3
    gen4 = 4

class dma_engine(enum.Enum):
    dma = 1
    gpsimd_dma = 2

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown
def nc_matmul(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, is_stationary_onezero: bool = False, is_moving_onezero: bool = False, is_transpose: bool = False, accumulate: bool | None = None, tile_position: int | Sequence[int] = [], tile_size: int | Sequence[int] = [], perf_mode: matmul_perf_mode = matmul_perf_mode.none, name: str | None = None) -> NkiInstruction:
    """Multiplies the transpose of `stationary` `[K, M]` with `moving` `[K, N]` into the PSUM tile `dst` `[M, N]`.
     The contraction runs over the partitions, in fp32.

    Engines: tensor.

    :param dst: (tensor in psum) The product, in PSUM. Written.
    :param stationary: (tensor in sbuf) The operand loaded into the array: contraction over partitions, result
        rows over free elements.
    :param moving: (tensor in sbuf) The operand streamed through the array: contraction over partitions, result
        columns over free elements.
    :param is_stationary_onezero: (bool) Hint: `stationary` holds ones and zeros only. Default False.
    :param is_moving_onezero: (bool) Hint: `moving` holds ones and zeros only. Default False.
    :param is_transpose: (bool) Transpose mode: `moving` is an identity (or permutation), the bits of `stationary`
        are moved unchanged (Trn2 on). Default False.
    :param accumulate: (bool | None) Add to `dst` (True), overwrite it (False), or overwrite what no matmul has
        written yet and add to the rest (None). Default None.
    :param tile_position: (ints) `(start_row, start_column)` of the array tile to use; set together with
        `tile_size`. Default [].
    :param tile_size: (ints) `(rows, columns)` of the array tile to use. Default [].
    :param perf_mode: (matmul_perf_mode: none, double_row) `double_row` contracts two FP8 rows at once: operands
        are `[K, 2, M]` and `[K, 2, N]`. Default 'none'.
    """
    ...

def nc_matmul_mx(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, stationary_scale: NkiTensor, moving_scale: NkiTensor, tile_position: int | Sequence[int] = [], tile_size: int | Sequence[int] = [], accumulate: bool | None = None, name: str | None = None) -> NkiInstruction:
    """Multiplies the transpose of `stationary` `[K, M]` with `moving` `[K, N]`, both in packed elements of four,
    into the PSUM tile
     `dst` `[M, N]`. The contraction runs over the partitions and the four numbers of each element; each number
    counts times the
     scale of its block of 8 partitions (Trn3).

    Engines: tensor.

    :param dst: (tensor in psum) The product, in PSUM, float32 or bfloat16. Written.
    :param stationary: (tensor in sbuf) The operand loaded into the array, packed.
    :param moving: (tensor in sbuf) The operand streamed through the array, packed.
    :param stationary_scale: (tensor in sbuf) Scales of `stationary`: four rows in each quadrant of 32 partitions.
    :param moving_scale: (tensor in sbuf) Scales of `moving`.
    :param tile_position: (ints) `(start_row, 0)` of the rows of the array to use; set together with `tile_size`.
        Default [].
    :param tile_size: (ints) `(rows, 128)`: how many rows of the array to use. Default [].
    :param accumulate: (bool | None) Add to `dst` (True), overwrite it (False), or overwrite what no matmul has
        written yet and add to the rest (None). Default None.
    """
    ...

def nc_transpose(dst: NkiTensor, data: NkiTensor, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """Transposes the tile `data` `[P, F]` (free dimensions flattened) into `dst` `[F, P]`.

    Engines: tensor, vector.

    :param dst: (tensor in sbuf, psum) The result. In PSUM if the tensor engine makes it. Written.
    :param data: (tensor in sbuf, psum) The tile to transpose. In SBUF for the tensor engine.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) `tensor` (up to 128 x 128) or
        `vector` (up to 32 x 32). Default 'unknown'.
    """
    ...

def dma_compute(dst: NkiTensor, srcs: Sequence[NkiTensor], reduce_op: Operator, scales: Sequence[float] | None = None, unique_indices: bool = True, oob_mode: oob_mode = oob_mode.error, name: str | None = None) -> NkiInstruction:
    """Writes the sum of the sources to `dst`, computed in fp32 by the DMA engines. With a vector index on one source
    it reads, adds
     and writes back: scatter if `dst` has that index too, else gather.

    Engines: sync, gpsimd.

    :param dst: (tensor in sbuf, hbm) Destination. Written.
    :param srcs: (tensors in sbuf, hbm) Up to 16 tensors of as many elements as `dst`.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) The operation: only
        `add`.
    :param scales: (numbers | None) A factor for each source: only 1.0. Default None.
    :param unique_indices: (bool) No index occurs twice. With False, what goes to one place is added up: the older
        interface only (`dst_rmw_op` of `dma_copy`). Default True.
    :param oob_mode: (oob_mode: error, skip) What to do with a dynamic index out of bounds. Default 'error'.
    """
    ...

def dma_copy(dst: NkiTensor, src: NkiTensor, priority: int | None = None, oob_mode: oob_mode = oob_mode.error, dge_mode: dge_mode = dge_mode.unknown, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """Copies `src` to `dst` by DMA, converting the element type through fp32 if it differs.

    Engines: sync, scalar, gpsimd.

    :param dst: (tensor in sbuf, hbm) Destination. Written.
    :param src: (tensor in sbuf, hbm) Source.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    :param oob_mode: (oob_mode: error, skip) What to do with a dynamic index out of bounds. Default 'error'.
    :param dge_mode: (dge_mode: unknown, swdge, hwdge, none) Who makes the descriptors. Default 'unknown'.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) The engine that triggers a
        hardware-DGE transfer. Default 'unknown'.
    """
    ...

def dma_transpose(dst: NkiTensor, src: NkiTensor, axes: int | Sequence[int] = [], priority: int | None = None, dge_mode: dge_mode = dge_mode.unknown, oob_mode: oob_mode = oob_mode.error, name: str | None = None) -> NkiInstruction:
    """Swaps the first and the last dimension of a tensor of 2, 3 or 4 dimensions (in 3, all are reversed), bit by
    bit. With a vector
     index on `src`, gathers its rows first.

    Engines: sync, scalar, gpsimd.

    :param dst: (tensor in sbuf) Destination tile. Written.
    :param src: (tensor in sbuf, hbm) Source, of the dtype of `dst`.
    :param axes: (ints) Axis `i` of `dst` is axis `axes[i]` of `src`: (1, 0), (2, 1, 0) or (3, 1, 2, 0). Default
        [].
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    :param dge_mode: (dge_mode: unknown, swdge, hwdge, none) Who makes the descriptors. Default 'unknown'.
    :param oob_mode: (oob_mode: error, skip) What to do with a dynamic index out of bounds. Default 'error'.
    """
    ...

def sendrecv(src: NkiTensor, dst: NkiTensor, send_to_rank: int, recv_from_rank: int, pipe_id: int, dma_engine: dma_engine = dma_engine.dma, name: str | None = None) -> NkiInstruction:
    """Sends `src` to the `dst` of core `send_to_rank`, and receives into `dst` the `src` of core `recv_from_rank`.

    Engines: sync, gpsimd, scalar.

    :param src: (tensor in sbuf) The tile to send.
    :param dst: (tensor in sbuf) Where the received tile goes. Written.
    :param send_to_rank: (int) The core that gets `src`: 0 or 1.
    :param recv_from_rank: (int) The core whose `src` goes to `dst`: 0 or 1.
    :param pipe_id: (int) Exchanges with one id go in their order on both cores.
    :param dma_engine: (dma_engine: dma, gpsimd_dma) Who moves the bytes. Default 'dma'.
    """
    ...

def sendrecv_compute(src: NkiTensor, dst: NkiTensor, send_to_rank: int, recv_from_rank: int, reduce_op: Operator, name: str | None = None) -> NkiInstruction:
    """Sends `src` to core `send_to_rank`, and writes `reduce_op(src, received)` to `dst`, where core
    `recv_from_rank` sends the second operand.

    Engines: sync.

    :param src: (tensor in sbuf, hbm) The tile to send, and the first operand.
    :param dst: (tensor in sbuf, hbm) Where the result goes: in the same memory as `src`. Written.
    :param send_to_rank: (int) The core that gets `src`: 0 or 1.
    :param recv_from_rank: (int) The core that sends the second operand: 0 or 1.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator: add,
        maximum or minimum.
    """
    ...

def affine_select(dst: NkiTensor, pattern: Sequence[Sequence[int]], channel_multiplier: int, on_true_tile: NkiTensor, on_false_value: float, cmp_op: Operator = nl.equal, offset: VirtualRegister | NkiScalar | int = 0, name: str | None = None) -> NkiInstruction:
    """Writes `on_true_tile` where `affine <cmp_op> 0` holds and `on_false_value` elsewhere; the affine value of an
    element is
     `offset + partition * channel_multiplier + sum of index * step` in 32-bit integers.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) The result. Written.
    :param pattern: (pattern) Up to four `[step, count]` pairs, outermost first; the counts multiply to the
        elements per partition.
    :param channel_multiplier: (int) Multiplies the partition's number, counted from `dst`'s first (int32).
    :param on_true_tile: (tensor in sbuf) Taken where the comparison holds.
    :param on_false_value: (number) Taken elsewhere (float32).
    :param cmp_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) A comparison: equal,
        not_equal, greater, greater_equal, less or less_equal. Default 'equal'.
    :param offset: (register | int) Added to every affine value (int32). Default 0.
    """
    ...

def iota(dst: NkiTensor, pattern: Sequence[Sequence[int]], offset: VirtualRegister | NkiScalar | int = 0, channel_multiplier: int = 0, name: str | None = None) -> NkiInstruction:
    """Writes `offset + partition * channel_multiplier + sum of index * step` (32-bit integers) to each element.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) The result. Written.
    :param pattern: (pattern) Up to four `[step, count]` pairs, outermost first; the counts multiply to the
        elements per partition.
    :param offset: (register | int) Added to every value (int32). Default 0.
    :param channel_multiplier: (int) Multiplies the partition's number, counted from `dst`'s first (int32).
        Default 0.
    """
    ...

def local_gather(dst: NkiTensor, src_buffer: NkiTensor, index: NkiTensor, num_elem_per_idx: int = 1, num_valid_indices: int | None = None, name: str | None = None) -> NkiInstruction:
    """Each group of 16 partitions gathers, in all of them, the elements at the indices in the group's slice of
    `index`.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) The gathered elements: per partition `num_valid_indices * num_elem_per_idx`, of
        the dtype of `src_buffer`. Written.
    :param src_buffer: (tensor in sbuf) Tile to gather from.
    :param index: (tensor in sbuf) Offsets of elements within a partition: uint16. A core takes those of its 16
        partitions, column by column.
    :param num_elem_per_idx: (int) Neighbouring elements to take at each index: 1, 2, 4, 8, 16 or 32. Default 1.
    :param num_valid_indices: (int | None) How many indices of each core count; all by default. Default None.
    """
    ...

def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None) -> NkiInstruction:
    """`dst[p, i] = data[p, indices[p, i]]`, the free dimensions of each tile flattened.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) The gathered elements: the dtype of `data`, as many elements as `indices`.
        Written.
    :param data: (tensor in sbuf) Tile to gather from.
    :param indices: (tensor in sbuf) Which elements: uint32, each less than the elements per partition of `data`.
    """
    ...

def nonzero_with_count(dst: NkiTensor, src: NkiTensor, index_offset: int = 0, padding_val: int = -1, name: str | None = None) -> NkiInstruction:
    """In partitions 0, 16, 32, ...: the positions of the elements of `src` that are not zero, then padding, and last
    their number.
     The other partitions of `dst` stay as they are (trn2 and later).

    Engines: gpsimd.

    :param dst: (tensor in sbuf) Positions, padding and number: int32, one element more per partition than `src`.
        Written.
    :param src: (tensor in sbuf) Input tile: float32 or int32.
    :param index_offset: (int) Added to each position (int32). Default 0.
    :param padding_val: (int) Fills the places behind the positions (int32). Default -1.
    """
    ...

def rand_get_state(dst: NkiTensor, engine: engine = engine.gpsimd, name: str | None = None) -> NkiInstruction:
    """Stores the state of an engine's random number generators, lane by lane (trn2 and later).

    Engines: gpsimd, vector.

    :param dst: (tensor in sbuf, psum) The state: uint32, 6 words per partition for gpsimd, 24 for vector. In PSUM
        only from the vector engine. Written.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine: gpsimd, or from trn3
        vector. Default 'gpsimd'.
    """
    ...

def rand_set_state(src_seeds: NkiTensor, engine: engine = engine.gpsimd, name: str | None = None) -> NkiInstruction:
    """Sets the state of an engine's random number generators, lane by lane (trn2 and later).

    Engines: gpsimd, vector.

    :param src_seeds: (tensor in sbuf) The state: uint32, 6 words per partition for gpsimd, 24 for vector.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine: gpsimd, or from trn3
        vector. Default 'gpsimd'.
    """
    ...

def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> NkiInstruction:
    """For each element the start of its segment and the position after its end; `n` and -1 for padding, which has
    segment id 0.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) Starts, then ends: shape (1, 2, n), float32 or int32. Written.
    :param segment_ids: (tensor in sbuf) Segment ids: shape (1, n), float32 or int32. A segment is a run of equal
        ids.
    """
    ...

def tensor_partition_reduce(dst: NkiTensor, op: Operator, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Reduces `data` across its partitions to one partition.

    Engines: gpsimd.

    :param dst: (tensor in sbuf) The result, in its first partition, with as many elements as a partition of
        `data`. Other partitions keep their contents. Written.
    :param op: (partition reduction: add, average, maximum, bitwise_or, bitwise_and, bitwise_xor) Operator: add,
        average, maximum, bitwise_or, bitwise_and or bitwise_xor.
    :param data: (tensor in sbuf) Input tile.
    """
    ...

def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int, sorted: bool = False, name: str | None = None) -> NkiInstruction:
    """The k largest of the first `n` elements that a group of 16 partitions holds, with their positions. Element `i`
    of a group is in
     its partition `i % 16`, column `i / 16`, and so is result `i`: results fill the first `ceil(k / 16)` columns.

    Engines: gpsimd.

    :param val_dst: (tensor in sbuf) The values: bfloat16. Its size per partition is k. Written.
    :param idx_dst: (tensor in sbuf) Their positions in the group: uint32, of the size of `val_dst`. Written.
    :param src: (tensor in sbuf) Input tile: bfloat16, a multiple of 16 partitions.
    :param n: (int) Elements of a group that count: 8 to 65535.
    :param sorted: (bool) Results in descending order. Default False.
    """
    ...

def core_barrier(data: NkiTensor, cores: int | Sequence[int], engine: engine = engine.gpsimd, name: str | None = None) -> NkiInstruction:
    """Waits until all `cores` have come here. What a core has written to `data` before, the others see after.

    Engines: gpsimd, sync, vector, scalar, tensor.

    :param data: (tensor in hbm, sbuf) The shared tensor that the cores synchronise on. Written.
    :param cores: (ints) The cores that wait for each other: `(0, 1)`. With one core there is nothing to wait for.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) The engine that waits; the others
        go on. Default 'gpsimd'.
    """
    ...

def device_print(print_prefix: str, tensor: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Prints a prefix and the values of a tensor. Costs no time on the modelled engines.

    Engines: sync.

    :param print_prefix: (str) Printed first.
    :param tensor: (tensor in sbuf, psum, hbm) What to print.
    """
    ...

def register_load(dst: VirtualRegister | NkiScalar, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Loads the only element of `src` into a register. Signed integers are sign-extended; of floats the bits are
    loaded.

    Engines: sync.

    :param dst: (register) The register to set. Written.
    :param src: (tensor in sbuf, hbm) A tensor of one element.
    """
    ...

def register_move(dst: VirtualRegister | NkiScalar, src: VirtualRegister | NkiScalar | int, name: str | None = None) -> NkiInstruction:
    """Moves an integer or another register's value into a register. `register_alloc` with an initial value is this
    too.

    Engines: sync.

    :param dst: (register) The register to set. Written.
    :param src: (register | int) A 32-bit integer or a register.
    """
    ...

def register_store(dst: NkiTensor, src: VirtualRegister | NkiScalar, name: str | None = None) -> NkiInstruction:
    """Stores a register's bits in the only element of `dst`, the low ones if the element is narrower.

    Engines: sync.

    :param dst: (tensor in sbuf, hbm) A tensor of one element. Written.
    :param src: (register) The register.
    """
    ...

def scalar_load(dst: VirtualRegister | NkiScalar, src: NkiTensor, name: str | None = None) -> NkiScalar:
    """Loads the only element of `src` into a scalar of the same width. In a kernel `nisa.scalar_load(src)` returns
    the scalar (`NkiScalar`).

    Engines: sync.

    :param dst: (register) The register of the new scalar. Written.
    :param src: (tensor in sbuf, hbm) A tensor of one element.
    """
    ...

def scalar_store(dst: NkiTensor, value: VirtualRegister | NkiScalar, name: str | None = None) -> None:
    """Stores a scalar (`NkiScalar`) in the only element of `dst`, which has the scalar's width.

    Engines: sync.

    :param dst: (tensor in sbuf, hbm) A tensor of one element. Written.
    :param value: (register) The register of the scalar.
    """
    ...

def activate2(dst: NkiTensor, op: Operator, data: NkiTensor, imm0: float | NkiTensor | VirtualRegister | NkiScalar | None, imm1: float | NkiTensor | VirtualRegister | NkiScalar | None, op0: Operator | None, op1: Operator | None, relu_param: float | NkiTensor | VirtualRegister | NkiScalar = 0.0, reverse0: bool = False, reverse1: bool = False, reduce_op: Operator | None = None, reduce_res: NkiTensor | None = None, reduce_cmd: reduce_cmd = reduce_cmd.idle, engine: engine = engine.scalar, name: str | None = None) -> NkiInstruction:
    """`dst = op((data <op0> imm0) <op1> imm1)`, optionally reduced along the free dimensions (trn3 and later).

    Engines: scalar, gpsimd.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param op: (activation function: copy, square, sigmoid, relu, prelu, gelu, gelu_dx, gelu_apprx_tanh,
        gelu_apprx_sigmoid, gelu_apprx_sigmoid_dx, silu, silu_dx, tanh, softplus, mish, erf, erf_dx, exp, log,
        sin, arctan, sqrt, rsqrt, reciprocal, sign, abs) Activation function.
    :param data: (tensor in sbuf, psum) Input tile.
    :param imm0: (number | tensor | register | None in sbuf, psum) Scalar of `op0`: a number or a tile of shape
        (P, 1).
    :param imm1: (number | tensor | register | None in sbuf, psum) Scalar of `op1`: a number or a tile of shape
        (P, 1).
    :param op0: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) First
        operator: multiply, add, subtract or bypass.
    :param op1: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Second
        operator: add, subtract or bypass.
    :param relu_param: (number | tensor | register in sbuf, psum) Parameter of parameterised functions (the slope
        of prelu): a number or a tile of shape (P, 1). Default 0.0.
    :param reverse0: (bool) `imm0` is the left operand of `op0`. Default False.
    :param reverse1: (bool) `imm1` is the left operand of `op1`. Default False.
    :param reduce_op: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal)
        Reduction operator: add, maximum, minimum, abs_max or abs_min. Default None.
    :param reduce_res: (tensor | None in sbuf, psum) The reduction's result, shape (P, 1); `None` leaves it in the
        accumulators. Default None. Written.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators: idle, reset, reduce or reset_reduce. Default 'idle'.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine: scalar or gpsimd. Default
        'scalar'.
    """
    ...

def activation(dst: NkiTensor, op: Operator, data: NkiTensor, bias: float | NkiTensor | VirtualRegister | NkiScalar | None = None, scale: float | NkiTensor | VirtualRegister | NkiScalar = 1.0, reduce_op: Operator | None = None, reduce_res: NkiTensor | None = None, reduce_cmd: reduce_cmd = reduce_cmd.idle, engine: engine = engine.scalar, name: str | None = None) -> NkiInstruction:
    """`dst = op(data * scale + bias)`, optionally summed along the free dimensions into the engine's accumulators.

    Engines: scalar, gpsimd.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param op: (activation function: copy, square, sigmoid, relu, prelu, gelu, gelu_dx, gelu_apprx_tanh,
        gelu_apprx_sigmoid, gelu_apprx_sigmoid_dx, silu, silu_dx, tanh, softplus, mish, erf, erf_dx, exp, log,
        sin, arctan, sqrt, rsqrt, reciprocal, sign, abs) Activation function.
    :param data: (tensor in sbuf, psum) Input tile.
    :param bias: (number | tensor | register | None in sbuf, psum) Added after scaling: a tile of shape (P, 1), or
        a number (not on trn1). Default None.
    :param scale: (number | tensor | register in sbuf, psum) Multiplied first: a number or a float32 tile of shape
        (P, 1). Default 1.0.
    :param reduce_op: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal)
        Reduction along the free dimensions: add. Default None.
    :param reduce_res: (tensor | None in sbuf, psum) Where the accumulators are read out to: shape (P, 1). Default
        None. Written.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators. Default 'idle'.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine: scalar, or gpsimd (trn3).
        Default 'scalar'.
    """
    ...

def activation_reduce(dst: NkiTensor, op: Operator, data: NkiTensor, reduce_op: Operator, reduce_res: NkiTensor | None, bias: float | NkiTensor | VirtualRegister | NkiScalar | None = None, scale: float | NkiTensor | VirtualRegister | NkiScalar = 1.0, name: str | None = None) -> NkiInstruction:
    """`dst = op(data * scale + bias)` and `reduce_res = reduce_op(dst)` along all free dimensions.

    Engines: scalar.

    :param dst: (tensor in sbuf, psum) The result of the activation. Written.
    :param op: (activation function: copy, square, sigmoid, relu, prelu, gelu, gelu_dx, gelu_apprx_tanh,
        gelu_apprx_sigmoid, gelu_apprx_sigmoid_dx, silu, silu_dx, tanh, softplus, mish, erf, erf_dx, exp, log,
        sin, arctan, sqrt, rsqrt, reciprocal, sign, abs) Activation function.
    :param data: (tensor in sbuf, psum) Input tile.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Reduction operator:
        add.
    :param reduce_res: (tensor | None in sbuf, psum) The reduction's result, shape (P, 1); `None` leaves it in the
        accumulators. Written.
    :param bias: (number | tensor | register | None in sbuf, psum) Added after scaling: a tile of shape (P, 1), or
        a number (not on trn1). Default None.
    :param scale: (number | tensor | register in sbuf, psum) Multiplied first: a number or a float32 tile of shape
        (P, 1). Default 1.0.
    """
    ...

def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Combines `(count, mean, variance * count)` triples into one mean and one variance per partition.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) Mean and variance: 2 elements per partition. Written.
    :param data: (tensor in sbuf, psum) Results of one or more `bn_stats`: a multiple of 3 elements per partition.
    """
    ...

def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Six statistics per partition: count, mean and variance times count of the elements at even positions, then of
    those at odd
     positions. `bn_aggr` makes a mean and a variance of them.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The statistics: 6 elements per partition. Written.
    :param data: (tensor in sbuf, psum) Input tile of at most 512 elements per partition
        (`nl.tile_size.bn_stats_fmax`).
    """
    ...

def dropout(dst: NkiTensor, data: NkiTensor, prob: float | NkiTensor | VirtualRegister | NkiScalar, name: str | None = None) -> NkiInstruction:
    """Copies `data` with each element replaced by zero with probability `prob`.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result, of the dtype of `data`. Written.
    :param data: (tensor in sbuf, psum) Input tile.
    :param prob: (number | tensor | register in sbuf, psum) Probability of zero: a number or a tile of shape (P,
        1); float32 for integers, else of any float type.
    """
    ...

def exponential(dst: NkiTensor, src: NkiTensor, max_value: float | NkiTensor | VirtualRegister | NkiScalar = 0.0, reduce_res: NkiTensor | None = None, reduce_cmd: reduce_cmd = reduce_cmd.idle, reduce_init: float | NkiTensor | VirtualRegister | NkiScalar = 0.0, name: str | None = None) -> NkiInstruction:
    """`dst = exp(src - max_value)`, optionally summed along the free dimensions (trn3 and later).

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param src: (tensor in sbuf, psum) Input tile of at most 4 dimensions.
    :param max_value: (number | tensor | register in sbuf, psum) Subtracted first: a number or a float32 tile of
        shape (P, 1). Default 0.0.
    :param reduce_res: (tensor | None in sbuf, psum) The sum, shape (P, 1); `None` leaves it in the accumulators.
        Default None. Written.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators: idle, reset_reduce, reduce or load_reduce. Default 'idle'.
    :param reduce_init: (number | tensor | register in sbuf, psum) What load_reduce puts into the accumulators: a
        number or a float32 tile of shape (P, 1). Default 0.0.
    """
    ...

def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """The 8 largest values of each partition, in descending order.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The values: 8 elements per partition. Written.
    :param src: (tensor in sbuf, psum) Input tile of 8 to 16384 elements per partition and at most 5 dimensions.
    """
    ...

def memset(dst: NkiTensor, value: float, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """Fills `dst` with a constant of its dtype.

    Engines: vector, gpsimd.

    :param dst: (tensor in sbuf, psum) The tile to fill. Written.
    :param value: (number) The constant: an integer for integer dtypes.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine to use. Default 'unknown'.
    """
    ...

def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> NkiInstruction:
    """The positions of the 8 values in the flattened free dimensions of `data`; all ones for a value that is not
    there.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The positions: 8 elements per partition, uint16 or uint32. Written.
    :param data: (tensor in sbuf, psum) Searched tile of 8 to 16384 elements per partition and at most 3
        dimensions.
    :param vals: (tensor in sbuf, psum) The values: 8 elements per partition.
    """
    ...

def nc_match_replace8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, imm: float, dst_idx: NkiTensor | None = None, name: str | None = None) -> NkiInstruction:
    """Copies `data` with the first occurrence of each of the 8 values replaced by `imm`.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) `data` with the replacements. Written.
    :param data: (tensor in sbuf, psum) Searched tile of 8 to 16384 elements per partition and at most 3
        dimensions.
    :param vals: (tensor in sbuf, psum) The values: 8 elements per partition.
    :param imm: (number) What replaces them (float32).
    :param dst_idx: (tensor | None in sbuf, psum) Where the values stood: 8 elements per partition, uint16 or
        uint32. Default None. Written.
    """
    ...

def nc_stream_shuffle(dst: NkiTensor, src: NkiTensor, shuffle_mask: int | Sequence[int], name: str | None = None) -> NkiInstruction:
    """In each quadrant of 32 partitions: partition `i` of `dst` becomes partition `shuffle_mask[i]` of `src`, or
    stays as it is where
     the mask says 255.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) Destination. Written.
    :param src: (tensor in sbuf, psum) Source, of the dtype of `dst` and with as many elements per partition.
    :param shuffle_mask: (ints) 32 numbers: 0 to 31, or 255.
    """
    ...

def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Quantizes `src` to MXFP8: each block of 8 partitions x 4 elements gets the scale `2^(floor(log2(max|x|)) - (E
    - 1))`, where `E` is
     the largest exponent of the result's format (8 for e4m3fn, 15 for e5m2), and its elements are divided by that
    and rounded to
     nearest even. A block of zeros gets the smallest scale, 2^-127 (Trn3).

    Engines: vector.

    :param dst: (tensor in sbuf) The quantized elements, four to each packed element. Written.
    :param src: (tensor in sbuf) The tile to quantize, in float16 or bfloat16.
    :param dst_scale: (tensor in sbuf) The scales: four rows in each quadrant of 32 partitions, one column for
        each packed element. Written.
    """
    ...

def rand2(dst: NkiTensor, min: float | NkiTensor | VirtualRegister | NkiScalar, max: float | NkiTensor | VirtualRegister | NkiScalar, name: str | None = None) -> NkiInstruction:
    """Fills `dst` with random numbers that are uniformly distributed from `min` to `max` (trn3 and later).

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The tile to fill. Written.
    :param min: (number | tensor | register in sbuf, psum) Lower end: a number or a float32 tile of shape (P, 1).
    :param max: (number | tensor | register in sbuf, psum) Upper end: a number or a float32 tile of shape (P, 1).
    """
    ...

def range_select(dst: NkiTensor, on_true_tile: NkiTensor, comp_op0: Operator, comp_op1: Operator, bound0: float | NkiTensor | VirtualRegister | NkiScalar, bound1: float | NkiTensor | VirtualRegister | NkiScalar, reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce, reduce_res: NkiTensor | None = None, reduce_op: Operator = nl.maximum, range_start: int = 0, on_false_value: float = -3.4028234663852886e38, name: str | None = None) -> NkiInstruction:
    """With `i` the position in the free dimensions plus `range_start`: `dst = on_true_tile` where `i <comp_op0>
    bound0` and
     `i <comp_op1> bound1`, else `on_false_value`; and the maximum of `dst` along the free dimensions.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The selected elements. Written.
    :param on_true_tile: (tensor in sbuf, psum) Input tile of a float type.
    :param comp_op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) First comparison:
        equal, less, less_equal, greater or greater_equal.
    :param comp_op1: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Second comparison.
    :param bound0: (number | tensor | register in sbuf, psum) First bound: a float32 tile of shape (P, 1), or a
        number.
    :param bound1: (number | tensor | register in sbuf, psum) Second bound: a float32 tile of shape (P, 1), or a
        number.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators. Default 'reset_reduce'.
    :param reduce_res: (tensor | None in sbuf, psum) The maximum, shape (P, 1); `None` leaves it in the
        accumulators. Default None. Written.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Reduction operator:
        maximum. Default 'maximum'.
    :param range_start: (int) The position of the first element. Default 0.
    :param on_false_value: (number) Taken where a comparison fails: the lowest fp32 number, -3.4028235e38, and no
        other. Default -3.4028234663852886e38.
    """
    ...

def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Element-wise `dst = 1.0 / data` in fp32.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param data: (tensor in sbuf, psum) Input.
    """
    ...

def rng(dst: NkiTensor, engine: engine = engine.vector, name: str | None = None) -> NkiInstruction:
    """Fills `dst` with random bits: for each element the lowest of 32.

    Engines: vector, gpsimd.

    :param dst: (tensor in sbuf, psum) The tile to fill, of an integer type. Written.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine to use: vector, or from
        trn2 gpsimd. Default 'vector'.
    """
    ...

def scalar_tensor_tensor(dst: NkiTensor, data: NkiTensor, op0: Operator, operand0: float | NkiTensor | VirtualRegister | NkiScalar, op1: Operator, operand1: NkiTensor, reverse0: bool = False, reverse1: bool = False, reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce, reduce_op: Operator | None = None, reduce_res: NkiTensor | None = None, name: str | None = None) -> NkiInstruction:
    """`dst = (data <op0> operand0) <op1> operand1` where `operand0` is a scalar and `operand1` a tile; with
    `reduce_op` also
     `reduce_res = reduce_op(dst)` along all free dimensions.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param data: (tensor in sbuf, psum) Input tile.
    :param op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) First operator.
    :param operand0: (number | tensor | register in sbuf, psum) Its scalar: a number or a tile of shape (P, 1).
    :param op1: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Second operator.
    :param operand1: (tensor in sbuf, psum) Its tile, of the shape of `data`.
    :param reverse0: (bool) The scalar is the left operand of `op0`. Default False.
    :param reverse1: (bool) `operand1` is the left operand of `op1`. Default False.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators if there is a `reduce_op`: reset_reduce or reduce. Default 'reset_reduce'.
    :param reduce_op: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal)
        Reduction operator: add, multiply, maximum or minimum; without one nothing is reduced. Default None.
    :param reduce_res: (tensor | None in sbuf, psum) The reduction's result, shape (P, 1); `None` leaves it in the
        accumulators. Default None. Written.
    """
    ...

def select_reduce(dst: NkiTensor, predicate: NkiTensor, on_true: NkiTensor, on_false: float | NkiTensor | VirtualRegister | NkiScalar, reduce_res: NkiTensor | None = None, reduce_cmd: reduce_cmd = reduce_cmd.idle, reduce_op: Operator = nl.maximum, reverse_pred: bool = False, name: str | None = None) -> NkiInstruction:
    """`dst = on_true` where `predicate` is not zero, else `on_false`; optionally the maximum of `dst` along the free
    dimensions.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The selected elements. Written.
    :param predicate: (tensor in sbuf, psum) Integers of 8 or 16 bits, of the shape of `dst`.
    :param on_true: (tensor in sbuf, psum) Taken where the predicate holds.
    :param on_false: (number | tensor | register in sbuf, psum) Taken elsewhere: a float32 number or a tile of
        shape (P, 1).
    :param reduce_res: (tensor | None in sbuf, psum) The maximum, shape (P, 1); `None` leaves it in the
        accumulators. Default None. Written.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators: idle, reset_reduce or reduce. Default 'idle'.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Reduction operator:
        maximum. Default 'maximum'.
    :param reverse_pred: (bool) The predicate holds where it is zero. Default False.
    """
    ...

def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seeds the vector engine's random number generators: the same seed gives the same numbers.

    Engines: vector.

    :param src_seeds: (tensor in sbuf, psum) The seed: shape (1, 1), 32 bits.
    """
    ...

def tensor_copy(dst: NkiTensor, src: NkiTensor, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """Copies `src` to `dst`: bit for bit between equal dtypes, else through fp32.

    Engines: vector, scalar, gpsimd.

    :param dst: (tensor in sbuf, psum) Destination. Written.
    :param src: (tensor in sbuf, psum) Source, with as many partitions and elements per partition.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine to use. Default 'unknown'.
    """
    ...

def tensor_copy_predicated(dst: NkiTensor, src: float | NkiTensor | VirtualRegister | NkiScalar, predicate: NkiTensor, reverse_pred: bool = False, name: str | None = None) -> NkiInstruction:
    """`dst = src` where `predicate` is not zero; other elements of `dst` stay as they are.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) Destination. Written.
    :param src: (number | tensor | register in sbuf, psum) A tile of the dtype and shape of `dst`, or a number.
    :param predicate: (tensor in sbuf, psum) Which elements to copy: unsigned integers of the shape of `dst`.
    :param reverse_pred: (bool) Copy where the predicate is zero instead. Default False.
    """
    ...

def tensor_reduce(dst: NkiTensor, op: Operator, data: NkiTensor, axis: int | Sequence[int], negate: bool = False, keepdims: bool = False, name: str | None = None) -> NkiInstruction:
    """Reduces the last free dimensions of `data` with an operator.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result: one element per partition and per step of the dimensions that
        are kept. Written.
    :param op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min, power,
        mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Reduction operator.
    :param data: (tensor in sbuf, psum) Input tile.
    :param axis: (ints) Dimensions of `data` to reduce: the last ones, without gaps, never dimension 0.
    :param negate: (bool) Multiply the result by -1 (arithmetic operators only). Default False.
    :param keepdims: (bool) Keep reduced dimensions with size 1. It changes the shape that is expected of `dst`,
        not its elements. Default False.
    """
    ...

def tensor_scalar(dst: NkiTensor, data: NkiTensor, op0: Operator, operand0: float | NkiTensor | VirtualRegister | NkiScalar | None, reverse0: bool = False, op1: Operator | None = None, operand1: float | NkiTensor | VirtualRegister | NkiScalar | None = None, reverse1: bool = False, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """`dst = (data <op0> operand0) <op1> operand1`, scalars broadcast along the free dimensions.

    Engines: vector, scalar, gpsimd.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param data: (tensor in sbuf, psum) Input tile.
    :param op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) First operator.
    :param operand0: (number | tensor | register | None in sbuf, psum) Its scalar: a number or a tile of shape (P,
        1). `None` or 0 for a unary operator.
    :param reverse0: (bool) The scalar is the left operand of `op0`. Default False.
    :param op1: (math operator | None: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max,
        abs_min, power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and,
        logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift,
        right_shift, arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Second
        operator. Default None.
    :param operand1: (number | tensor | register | None in sbuf, psum) Its scalar. Default None.
    :param reverse1: (bool) The scalar is the left operand of `op1`. Default False.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine to use. Default 'unknown'.
    """
    ...

def tensor_scalar_cumulative(dst: NkiTensor, src: NkiTensor, op0: Operator, op1: Operator, imm0: float | NkiTensor | VirtualRegister | NkiScalar, imm1: float | NkiTensor | VirtualRegister | NkiScalar | None = None, reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce, name: str | None = None) -> NkiInstruction:
    """`reg = (src[i] <op0> imm0) <op1> reg; dst[i] = reg` along the free dimensions; `reg` is an accumulator of the
    engine.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The running result. Written.
    :param src: (tensor in sbuf, psum) Input tile.
    :param op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator between an
        element and `imm0`.
    :param op1: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Running operator:
        add, subtract, multiply, maximum or minimum.
    :param imm0: (number | tensor | register in sbuf, psum) A number or a float32 tile of shape (P, 1).
    :param imm1: (number | tensor | register | None in sbuf, psum) What load_reduce puts into the accumulators: a
        number or a float32 tile of shape (P, 1). Default None.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators before the first element. Default 'reset_reduce'.
    """
    ...

def tensor_scalar_reduce(dst: NkiTensor, data: NkiTensor, op0: Operator, operand0: float | NkiTensor | VirtualRegister | NkiScalar | None, reduce_op: Operator, reduce_res: NkiTensor | None = None, reverse0: bool = False, reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce, reduce_init: float | NkiTensor | VirtualRegister | NkiScalar | None = None, reduce_res_negate: bool = False, name: str | None = None) -> NkiInstruction:
    """`dst = data <op0> operand0` and `reduce_res = reduce_op(dst)` along all free dimensions.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The result of `op0`. Written.
    :param data: (tensor in sbuf, psum) Input tile.
    :param op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Arithmetic operator.
    :param operand0: (number | tensor | register | None in sbuf, psum) Its scalar (float32): a number or a tile of
        shape (P, 1). `None` or 0 for a unary operator.
    :param reduce_op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Reduction operator:
        add, multiply, maximum or minimum.
    :param reduce_res: (tensor | None in sbuf, psum) The reduction's result, shape (P, 1); `None` leaves it in the
        accumulators. Default None. Written.
    :param reverse0: (bool) Not supported yet by any release. Default False.
    :param reduce_cmd: (reduce_cmd: idle, reset, reduce, reset_reduce, load_reduce) What happens to the
        accumulators: reset_reduce, reduce or load_reduce. Default 'reset_reduce'.
    :param reduce_init: (number | tensor | register | None in sbuf, psum) What load_reduce puts into the
        accumulators: a number or a float32 tile of shape (P, 1). Default None.
    :param reduce_res_negate: (bool) The result is written negated; the accumulators are not. Default False.
    """
    ...

def tensor_tensor(dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Operator, engine: engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """Element-wise `dst = data1 <op> data2` of two tiles of equal size.

    Engines: vector, gpsimd.

    :param dst: (tensor in sbuf, psum) The result. Written.
    :param data1: (tensor in sbuf, psum) Left operand.
    :param data2: (tensor in sbuf, psum) Right operand.
    :param op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min, power,
        mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator.
    :param engine: (engine: tensor, vector, scalar, gpsimd, sync, dma, unknown) Engine to use. Default 'unknown'.
    """
    ...

def tensor_tensor_scan(dst: NkiTensor, data0: NkiTensor, data1: NkiTensor, initial: float | NkiTensor | VirtualRegister | NkiScalar, op0: Operator, op1: Operator, reverse0: bool = False, reverse1: bool = False, name: str | None = None) -> NkiInstruction:
    """`dst[i] = (data0[i] <op0> dst[i-1]) <op1> data1[i]` along the free dimensions, with `initial` before the first
    element.

    Engines: vector.

    :param dst: (tensor in sbuf, psum) The running result. Written.
    :param data0: (tensor in sbuf, psum) Combined with the previous result by `op0`.
    :param data1: (tensor in sbuf, psum) Combined with that by `op1`.
    :param initial: (number | tensor | register in sbuf, psum) The previous result of the first element: a number
        or a tile of shape (P, 1).
    :param op0: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) First operator,
        arithmetic and binary.
    :param op1: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min,
        power, mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Second operator,
        arithmetic and binary.
    :param reverse0: (bool) `data0` is the right operand of `op0`. Default False.
    :param reverse1: (bool) `data1` is the left operand of `op1`. Default False.
    """
    ...

def register_alloc(x: int | NkiTensor | None = None) -> VirtualRegister:
    """A register of the device: uninitialised, or with an int or the single element of a tensor."""
    ...

def get_nc_version() -> nc_version:
    """The target generation of the kernel."""
    ...

def get_nc_sub_version() -> int:
    """Always 0."""
    ...
