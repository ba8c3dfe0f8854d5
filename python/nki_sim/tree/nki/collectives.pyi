"""The names of `nki.collectives`. Written by python/stubs.py from the registry of the simulator; do not edit."""

import enum
from collections.abc import Sequence
from typing import Any

import nki.language as nl
from nki.isa import NkiInstruction, NkiScalar, VirtualRegister
from nki.language import NkiTensor, Operator
from nki_sim._objects import ReplicaGroup as ReplicaGroup

class rg_partition_op(enum.Enum):
    bitwise_and = 0
    div = 1
    mod = 2

def all_gather(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Joins the ranks' tensors along a dimension, in the order of the group; every rank gets the whole.

    Engines: sync.

    :param srcs: (tensors in hbm, sbuf) What each rank sends: HBM tensors, or one tile in SBUF.
    :param dsts: (tensors in hbm, sbuf) Where the results go. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param collective_dim: (int) Dimension along which `dsts` are joined: 0; for tiles in SBUF 0 or 1.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_gather_v(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends one chunk of each rank to all ranks: as many elements of `src` as its metadata say.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_count` and
        `send_displ` in the first column, `recv_counts`, and `recv_displs`. Written.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_gather_v_prepare(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Prepares an `all_gather_v` of these operands, which `all_gather_v_trigger` starts: reads the metadata, and
    neither reads `srcs` nor writes `dsts`.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_count` and
        `send_displ` in the first column, `recv_counts`, and `recv_displs`.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_gather_v_trigger(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends one chunk of each rank to all ranks, which were read when it was prepared. A kernel calls it with the
    preparation, whose operands it takes.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_count` and
        `send_displ` in the first column, `recv_counts`, and `recv_displs`. Written.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_reduce(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, op: Operator, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Reduces the ranks' tensors element by element; every rank gets the result.

    Engines: sync.

    :param srcs: (tensors in hbm, sbuf) What each rank sends: HBM tensors, or one tile in SBUF.
    :param dsts: (tensors in hbm, sbuf) Where the results go. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min, power,
        mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator: add,
        minimum or maximum.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_to_all(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Splits each rank's tensor into as many parts as there are ranks; part `j` of rank `i` becomes part `i` of rank
    `j`. Kernels of nki-library
     give both sides different shapes (attention_kv_parallel_segmented_cte), so parts are runs of elements.

    Engines: sync.

    :param srcs: (tensors in hbm) What each rank sends: HBM tensors, or one tile in SBUF.
    :param dsts: (tensors in hbm) Where the results go. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param collective_dim: (int) Dimension along which `srcs` are split and `dsts` joined: 0.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_to_all_v(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends to each rank as many elements of `src` as the metadata say.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_counts`,
        `send_displs`, `recv_counts`, and `recv_displs`. Written.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_to_all_v_prepare(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Prepares an `all_to_all_v` of these operands, which `all_to_all_v_trigger` starts: reads the metadata, and
    neither reads `srcs` nor writes `dsts`.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_counts`,
        `send_displs`, `recv_counts`, and `recv_displs`.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def all_to_all_v_trigger(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends to each rank as many elements of `src` as the metadata say, which were read when it was prepared. A
    kernel calls it with the preparation, whose operands it takes.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor, as a flat buffer of elements.
    :param dsts: (tensors in hbm) One HBM tensor, as a flat buffer of elements. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param metadata_tensor: (tensor in hbm, sbuf) Rows of uint32, one column for each rank: `send_counts`,
        `send_displs`, `recv_counts`, and `recv_displs`. Written.
    :param recv_counts_known: (bool) Leave the row of received counts alone. Default False.
    :param has_rdispls: (bool) Row 3 says where received elements go; else each sender has an equal share of
        `dst`. Default False.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def collective_permute(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], source_target_pairs: Any, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends the tensor of each source rank to its target rank. A rank that is no target keeps its `dsts`.

    Engines: sync.

    :param srcs: (tensors in hbm) One HBM tensor to send.
    :param dsts: (tensors in hbm) One HBM tensor that receives. Written.
    :param source_target_pairs: (object) Pairs (source, target) of ranks.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def collective_permute_implicit(srcs_by_channel: Sequence[Sequence[NkiTensor]], dsts_by_channel: Sequence[Sequence[NkiTensor]], replica_group: Any, channel_ids: int | Sequence[int] = [0], priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends to the next rank of the ring and receives from the one before, on each channel. All channels go round
    the group in its order.

    Engines: sync.

    :param srcs_by_channel: (tensors in hbm, sbuf) By channel, a list of one tensor to send.
    :param dsts_by_channel: (tensors in hbm, sbuf) By channel, a list of one tensor that receives. Written.
    :param replica_group: (object) Lists of the ranks; each list is a ring in its order.
    :param channel_ids: (ints) Channels: 0, 1, ... Default [0].
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def collective_permute_implicit_current_processing_rank_id(iteration_id: int, replica_group: ReplicaGroup, channel_id: int = 0) -> VirtualRegister:
    """The rank whose data this rank has after `iteration_id` steps of the ring of its group."""
    ...

def collective_permute_implicit_reduce(srcs0_by_channel: Sequence[Sequence[NkiTensor]], srcs1_by_channel: Sequence[Sequence[NkiTensor]], dsts_by_channel: Sequence[Sequence[NkiTensor]], replica_group: Any, op: Operator, channel_ids: int | Sequence[int] = [0], priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Sends `op(srcs0, srcs1)` to the next rank of the ring and receives that of the one before, on each channel.

    Engines: sync.

    :param srcs0_by_channel: (tensors in hbm, sbuf) By channel, a list of one tensor: the left operands.
    :param srcs1_by_channel: (tensors in hbm, sbuf) By channel, a list of one tensor: the right operands.
    :param dsts_by_channel: (tensors in hbm, sbuf) By channel, a list of one tensor that receives. Written.
    :param replica_group: (object) Lists of the ranks; each list is a ring in its order.
    :param op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min, power,
        mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator: add,
        minimum or maximum.
    :param channel_ids: (ints) Channels: 0, 1, ... Default [0].
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...

def rank_id() -> VirtualRegister:
    """The rank that runs the kernel."""
    ...

def reduce_scatter(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int, op: Operator, priority: int | None = None, name: str | None = None) -> NkiInstruction:
    """Reduces the ranks' tensors element by element; each rank gets the part at its position in the group.

    Engines: sync.

    :param srcs: (tensors in hbm, sbuf) What each rank sends: HBM tensors, or one tile in SBUF.
    :param dsts: (tensors in hbm, sbuf) Where the results go. Written.
    :param replica_group: (object) Lists of the ranks that work together.
    :param collective_dim: (int) Dimension along which `srcs` are split: 0.
    :param op: (math operator: bypass, add, subtract, multiply, divide, maximum, minimum, abs_max, abs_min, power,
        mod, fmod, equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
        arithmetic_right_shift, arithmetic_left_shift, rsqrt, abs, square, relu, reciprocal) Operator: add,
        minimum or maximum.
    :param priority: (int | None) Quality of service 0 to 3, lower is more urgent (Trn3). Default None.
    """
    ...
