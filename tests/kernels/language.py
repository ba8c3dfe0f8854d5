"""The metaprogram: classes, dictionaries, helpers as values, strings, chained compares, early decisions."""

from dataclasses import dataclass
from enum import Enum
from math import ceil

import nki
import nki.isa as nisa
import nki.language as nl


class Mode(Enum):
    SHIFT = 1
    SCALE = 2


@dataclass
class Step(nl.NKIObject):
    mode: Mode
    amount: float = 1.0

    def op(self):
        return nl.add if self.mode == Mode.SHIFT else nl.multiply


def apply(tile, step):
    nisa.tensor_scalar(dst=tile, data=tile, op0=step.op(), operand0=step.amount)


def tiles_of(total, size=128):
    return [(i * size, min(total, (i + 1) * size)) for i in range(ceil(total / size))]


@nki.jit
def metaprogram(x, amounts=(2.0, 0.5), *, repeat=1):
    """x * amounts[0] + amounts[1], `repeat` times."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    steps = {"scale": Step(Mode.SCALE, amounts[0])}
    steps["shift"] = Step(mode=Mode.SHIFT, amount=amounts[1])
    run = apply
    for first, last in tiles_of(rows):
        assert 0 <= first < last <= rows, f"tile {first}:{last}"
        tile = nl.ndarray((last - first, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[first:last])
        count = 0
        while True:
            if count == repeat:
                break
            for name, step in steps.items():
                if name == "unused":
                    continue
                run(tile, step)
            count += 1
        nisa.dma_copy(dst=out[first:last, ...], src=tile)
    print(f"{len(steps)} steps, {repeat=}" if False else "two steps")
    return out
