"""Grids of tiles and blocks: coordinates over tensors, remainders, separate storage."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def negated_by_tiles(x, tile_rows, tile_columns):
    """-x, tile by tile; the tiles in the last row and column are smaller."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    src = nl.tiles(x, tile_shape=(tile_rows, tile_columns))
    dst = nl.tiles(out, tile_shape=(tile_rows, tile_columns))
    for i in range(src.shape[0]):
        for j in range(src.shape[1]):
            cell = src[i, j]
            t = nl.ndarray(cell.element_shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=cell.data)
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=-1.0)
            nisa.dma_copy(dst=dst[i, j].data, src=t.data)
    return out


@nki.jit
def negated_by_blocks(x):
    """-x: a block of 2 by 2 tiles at a time in separate storage, whose tiles are adjacent."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    src = nl.blocks(x, tile_shape=(32, 48), block_shape=(2, 2))
    dst = nl.blocks(nl.tiles(out, tile_shape=(32, 48)), block_shape=(2, 2))
    for i in range(src.shape[0]):
        for j in range(src.shape[1]):
            block = nl.tiles(src[i, j])
            local = nl.empty_like(block, buffer=nl.sbuf)
            result = nl.alloc_tiles(
                tile_shape=block.tile_shape, element_shape=block.element_shape, buffer=nl.sbuf, dtype=x.dtype, name="result"
            )
            for r in range(block.shape[0]):
                for c in range(block.shape[1]):
                    nisa.dma_copy(dst=local[r, c].data, src=block[r, c].data)
                    nisa.tensor_scalar(dst=result[r, c].data, data=local[r, c].data, op0=nl.multiply, operand0=-1.0)
                    nisa.dma_copy(dst=nl.tiles(dst[i, j])[r, c].data, src=result[r, c].data)
    return out


@nki.jit
def doubled_at_once(x):
    """2 * x for the even tile rows: all tiles of an allocation in one operand, and a slab of a three-dimensional HBM tensor."""
    slabs, rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    src, dst = nl.tiles(x, tile_shape=(64, 32)), nl.tiles(out, tile_shape=(64, 32))
    for s in range(src.shape[0]):
        tiles = nl.alloc_tiles(tile_shape=(64, 32), element_shape=(rows, width), buffer=nl.sbuf, dtype=x.dtype)
        for i in range(tiles.shape[0]):
            for j in range(tiles.shape[1]):
                nisa.dma_copy(dst=tiles[i, j].data, src=src[s, i, j].data)
        assert tiles.is_data_representable and not tiles.is_remainder
        nisa.tensor_scalar(dst=tiles.data, data=tiles.data, op0=nl.multiply, operand0=2.0)
        for i in range(tiles.shape[0]):
            for j in range(tiles.shape[1]):
                nisa.dma_copy(dst=dst[s, i, j].data, src=tiles[i, j].data)
    return out
