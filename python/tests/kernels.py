"""Kernels of the tests."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import helpers
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from helpers import scale_tile as rescale

FACTOR = 3.0
TABLE = {"half": 0.5, "double": 2.0}
ROWS = np.arange(32, dtype=np.float32).reshape(4, 8) + 2


class Mode(Enum):
    ADD = "add"
    MUL = "mul"


@dataclass(frozen=True)
class Config:
    factor: float
    mode: Mode = Mode.ADD

    def doubled(self):
        return self.factor * 2


class Box(nl.NKIObject):
    tensor: nl.tensor
    bias: float = 0.5


class Pair(NamedTuple):
    left: int
    right: int = 2


def load(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def scaled(tile, by):
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=by)
    return tile


@nki.jit
def add(x, y):
    """x + y"""
    a, b = load(x), load(y)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    return store(a)


@nki.jit
def adds_in_place(total, x):
    """total += x"""
    a = load(total)
    nisa.tensor_tensor(dst=a, data1=a, data2=load(x), op=nl.add)
    nisa.dma_copy(dst=total, src=a)
    return total


@nki.jit
def scale(x, factor=FACTOR):
    a = load(x)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=factor)
    return store(a)


@nki.jit
def with_global(x):
    a = load(x)
    rescale(a, FACTOR * TABLE["double"] + math.sqrt(helpers.OFFSET))
    return store(a)


@nki.jit
def with_constant(x):
    """Adds a global array."""
    constant = nl.shared_constant(ROWS)
    a, b = load(x), nl.load(constant)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    rescale(a, float(ROWS[0, 1]))
    return store(a)


@nki.jit
def with_file(x, path):
    """Adds the array of a file."""
    a, b = load(x), nl.load(nl.shared_constant(path))
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    return store(a)


@nki.jit
def with_config(x, config, box, pair):
    a, b = load(x), load(box.tensor)
    op = nl.add if config.mode == Mode.ADD else nl.multiply
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=op)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=config.doubled() + pair.left + pair.right + box.bias)
    return store(a)


@nki.jit
def several(x):
    a = load(x)
    return {"first": store(a), "rest": [store(a), (store(a), None)]}


@nki.jit
def increment(x):
    a = load(x)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=x, src=a)
    return x


@nki.jit
def increment_quietly(x):
    a = load(x)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=x, src=a)


@nki.jit
def pick(x, index):
    """One row of x; the index is known on the device only."""
    i = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=i, src=index)
    r = nisa.register_alloc()
    nisa.register_load(r, i)
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x.select(0, r).reshape((1, x.shape[1])))
    return out


@nki.jit
def add_into(a, b, out):
    """Writes a + b to its last argument, as older kernels do."""
    t, u = load(a), load(b)
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    nisa.dma_copy(dst=out, src=t)


@nki.jit
def same_and_double(x):
    a = load(x)
    nisa.tensor_tensor(dst=a, data1=a, data2=a, op=nl.add)
    return x, {"double": store(a)}


@nki.jit
def watched(x):
    a = load(x)
    nl.device_print("first:", a[0:1, 0:2])
    return store(a)


@nki.jit
def partly(x):
    """The second row of the result is never written."""
    out = nl.ndarray((2, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0:1, :], src=x[0:1, :])
    return out


@nki.jit
def tanh(x):
    a = load(x)
    nisa.activation(dst=a, data=a, op=nl.tanh)
    return store(a)


@nki.jit
def tanh_backward(y, dy):
    """dy * (1 - y * y)"""
    a, g = load(y), load(dy)
    nisa.tensor_tensor(dst=a, data1=a, data2=a, op=nl.multiply)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=-1.0, op1=nl.add, operand1=1.0)
    nisa.tensor_tensor(dst=a, data1=a, data2=g, op=nl.multiply)
    return store(a)


@nki.jit
def write_then_fail(x, index):
    a = load(x)
    nisa.dma_copy(dst=x, src=a)
    i = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=i, src=index)
    r = nisa.register_alloc()
    nisa.register_load(r, i)
    nisa.dma_copy(dst=a[0:1, 0:1], src=x.select(0, r)[0:1].reshape((1, 1)))
    return store(a)


@nki.jit
def checked(x, limit: int = 4):
    assert x.shape[0] <= limit, f"{x.shape[0]} rows"
    if limit > 1000:
        raise ValueError("limit is too large")
    return store(load(x))


@nki.jit
def cores(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = x.shape[0] // nl.num_programs(0)
    here = nl.ds(nl.program_id(0) * half, half)
    t = nl.ndarray((half, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[here, :])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(nl.program_id(0)))
    nisa.dma_copy(dst=out[here, :], src=t)
    return out


@nki.jit(platform_target="trn3", mode="trace")
def version(x):
    t = load(x)
    nisa.memset(dst=t, value=float(nisa.get_nc_version().value))
    return store(t)


@nki.jit
def talkative(x):
    print("compiling for", x.shape)
    t = load(x)
    return store(t)


def make_kernel(amount):
    """A kernel that is a closure."""

    def apply(tile, recursion):
        if recursion:
            apply(tile, recursion - 1)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=amount)

    @nki.jit
    def closure(x):
        t = load(x)
        apply(t, 1)
        return store(t)

    return closure


@dataclass
class Sizes(nl.NKIObject):
    given: float
    left_out: float


@nki.jit
def add_if_set(x):
    sizes = Sizes(given=1.0)
    assert sizes.left_out is None
    tile = nl.load(x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(tile, sizes.given))
    return out


@nki.jit
def named_steps(x):
    t = sbuf.view(dtype=x.dtype, shape=x.shape)  # noqa: F821  (a memory by its name, as early releases have it)
    nisa.dma_copy(dst=t, src=x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=a, data=t, op0=nl.add, operand0=1.0, name="one")
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=b, data=t, op=nl.copy, name="two")
    a[...] = nl.add(a, b)
    out[...] = a
    return out
