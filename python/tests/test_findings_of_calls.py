"""Findings of a kernel that is called again: findings that depend on values are determined in each call."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from findings import warned

import nki_sim


@nki.jit
def loads_twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def scatters(x, index):
    out = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    at = nl.ndarray((4, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=index)
    tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    zeros = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=zeros, value=0)
    nisa.dma_copy(dst=out, src=zeros)
    nisa.dma_copy(dst=out.ap([[8, 4], [1, 8]], vector_offset=at, indirect_dim=0), src=tile)
    return out


@nki.jit
def writes_windows(x, offsets):
    out = nl.ndarray((16, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, at = nl.ndarray((1, 8), dtype=x.dtype, buffer=nl.sbuf), nl.ndarray((1, 4), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=at, src=offsets)
    for i in range(4):
        window = out.ap(pattern=[[1, 8]], scalar_offset=at[0:1, i : i + 1], indirect_dim=0)
        nisa.dma_copy(dst=window, src=tile[0:1, 0:8])
    return out


def test_offsets_from_a_tensor_may_be_others_in_the_next_run():
    assert warned(lambda: writes_windows(np.ones((1, 8), np.float32), np.array([[8, 8, 0, 0]], np.int32))) == []


def test_every_call_finds_what_the_program_shows():
    x = np.ones((4, 8), np.float32)
    first = warned(lambda: loads_twice(x))
    assert len(first) == 1 and "overwritten-before-read" in first[0]
    assert warned(lambda: loads_twice(x)) == first
    assert warned(lambda: loads_twice(2 * x)) == first


def test_what_values_decide_is_found_in_the_call_that_has_them():
    x = np.ones((4, 8), np.float32)
    apart, together = np.array([[0], [1], [2], [3]], np.int32), np.array([[0], [0], [2], [3]], np.int32)
    assert warned(lambda: scatters(x, apart)) == []
    (found,) = warned(lambda: scatters(x, together))
    assert "overlapping-write" in found and "row 0" in found
    assert warned(lambda: scatters(x, apart)) == []


def test_a_global_that_another_object_replaces_is_seen():
    """Also if the value was compared by identity, and if it is equal, new, or gone."""
    space = {"nki": nki, "nl": nl, "nisa": nisa, "ROWS": 4, "FACTORS": [2.0]}

    @nki.jit
    def scaled(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=FACTORS[0] * ROWS)  # noqa: F821
        nisa.dma_copy(dst=out, src=tile)
        return out

    kernel = nki.jit(type(scaled.func)(scaled.func.__code__, space))
    x = np.ones((4, 8), np.float32)
    assert (kernel(x) == 8).all()
    space["FACTORS"][0] = 3.0
    assert (kernel(x) == 12).all()
    space["ROWS"] = 5
    assert (kernel(x) == 15).all()
    space["ROWS"] = 5.0
    assert (kernel(x) == 15).all()
    space["FACTORS"] = (1.0,)
    assert (kernel(x) == 5).all()
    before = len(kernel._cache)
    assert (kernel(x) == 5).all()
    assert len(kernel._cache) == before
    del space["ROWS"]
    with pytest.raises(nki_sim.KernelError, match="ROWS"):
        kernel(x)
