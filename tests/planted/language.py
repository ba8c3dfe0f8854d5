"""Python code that behaves differently on the device, or that the official compiler rejects"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def tensor_as_a_condition(x):
    """A branch on the value of a tensor is decided when the kernel is compiled."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
    if largest:  # plant: tensor-condition
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=largest)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def tensor_as_a_condition_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=largest)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def arithmetic_on_tensors(x):
    """`a + b` on tiles."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    doubled = tile + tile  # plant: tensor-operator
    nisa.dma_copy(dst=out, src=doubled)
    return out


@nki.jit
def arithmetic_on_tensors_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    doubled = nl.add(tile, tile)
    nisa.dma_copy(dst=out, src=doubled)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def true_division_of_sizes(x):
    """`/` yields a float, which is not a valid size."""
    rows, columns = x.shape
    half = columns / 2
    out = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, half), dtype=x.dtype, buffer=nl.sbuf)  # plant: operand-kind
    nisa.dma_copy(dst=tile, src=x[:, 0:half])
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def true_division_of_sizes_fixed(x):
    rows, columns = x.shape
    half = columns // 2
    out = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, half), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, 0:half])
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[4,128,32]
# flags: --strict
# seen-by: check run
@nki.jit
def tiles_in_a_comprehension(x):
    """The official compiler has no comprehensions."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf) for _ in range(4)]  # plant: strict-language
    for t in range(4):
        nisa.dma_copy(dst=tiles[t], src=x[t])
        nisa.dma_copy(dst=out[t], src=tiles[t])
    return out


@nki.jit
def tiles_in_a_comprehension_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = []
    for t in range(4):
        tiles.append(nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=tiles[t], src=x[t])
        nisa.dma_copy(dst=out[t], src=tiles[t])
    return out


# args: x=float32[128,64]
# flags: --strict
# seen-by: check run
@nki.jit
def choice_by_lambda(x):
    """The official compiler has no lambda."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    width = max((16, 64, 32), key=lambda w: -abs(w - 64))  # plant: strict-language
    nisa.activation(dst=tile[:, 0:width], op=nl.tanh, data=tile[:, 0:width])
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def choice_by_lambda_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    width = 16
    for w in (64, 32):
        if abs(w - 64) < abs(width - 64):
            width = w
    nisa.activation(dst=tile[:, 0:width], op=nl.tanh, data=tile[:, 0:width])
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[4,128,32]
# seen-by: check run
@nki.jit
def tiles_by_list(x):
    """A list cannot be a dict key."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = {}
    for t in range(4):
        tiles[[t, 0]] = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)  # plant: dict-key
        nisa.dma_copy(dst=tiles[[t, 0]], src=x[t])
        nisa.dma_copy(dst=out[t], src=tiles[[t, 0]])
    return out


@nki.jit
def tiles_by_list_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = {}
    for t in range(4):
        tiles[t, 0] = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tiles[t, 0], src=x[t])
        nisa.dma_copy(dst=out[t], src=tiles[t, 0])
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def refused_copy_is_caught(x):
    """A copy into a narrower tile is rejected; the error is caught, and the program lacks the copy."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    for first in range(0, 64, 48):
        try:
            nisa.dma_copy(dst=tile[:, first : first + 16], src=x[:, nl.ds(first, 48)])  # plant: caught-error
        except Exception:
            nisa.dma_copy(dst=tile[:, first : first + 16], src=x[:, nl.ds(0, 16)])
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def refused_copy_is_caught_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    for first in range(0, 64, 48):
        try:
            width = {0: 48}[first]
        except KeyError:
            width = 16
        nisa.dma_copy(dst=tile[:, nl.ds(first, width)], src=x[:, nl.ds(first, width)])
    nisa.dma_copy(dst=out, src=tile)
    return out
