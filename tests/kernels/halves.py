"""More tiles of 64 partitions than fit next to each other."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def two_groups(x):
    """Six tiles of 56000 bytes, live at the same time. Three are summed in the first, the other three multiplied in the fourth; all are returned."""
    tiles, rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    on_chip = []
    for i in range(tiles):
        on_chip.append(nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=on_chip[i], src=x[i])
    for first, op in ((0, nl.add), (3, nl.multiply)):
        for i in (1, 2):
            nisa.tensor_tensor(dst=on_chip[first], data1=on_chip[first], data2=on_chip[first + i], op=op)
    for i in range(tiles):
        nisa.dma_copy(dst=out[i], src=on_chip[i])
    return out
