"""Rows of a table by index, as an embedding lookup does."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: table=float32[1000,256] indices=int32[256,1]
@nki.jit
def gather_rows(table, indices):
    """out[i, :] = table[indices[i, 0], :]; indices is int32[N, 1] with N a multiple of 128."""
    count = indices.shape[0]
    width = table.shape[1]
    tile = nl.tile_size.pmax
    assert count % tile == 0, f"{count} indices are not a multiple of {tile}"
    out = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.shared_hbm)
    for t in nl.affine_range(count // tile):
        index = nl.ndarray((tile, 1), dtype=indices.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=index, src=indices[nl.ds(t * tile, tile), :])
        rows = nl.ndarray((tile, width), dtype=table.dtype, buffer=nl.sbuf)
        # One index per partition replaces the partition's own number.
        nisa.dma_copy(
            dst=rows, src=table.ap(pattern=[[width, tile], [1, width]], offset=0, vector_offset=index, indirect_dim=0)
        )
        nisa.dma_copy(dst=out[nl.ds(t * tile, tile), :], src=rows)
    return out
