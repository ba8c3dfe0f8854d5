"""Code of the host next to a kernel: it stays as it is."""

import dataclasses

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt

IS_TRN1 = nisa.get_nc_version() < nisa.nc_version.gen3


@dataclasses.dataclass
class Sizes:
    rows: int = 64
    weight: nt.tensor[64, 32] | None = None

    def last(self, step):
        return self.rows - step


def largest(a, b):
    return a[0] * b if a[0] > b else a[1] + b


def first(*tiles: nt.tensor, rows: int) -> nt.tensor:
    return tiles[0][0:rows]


@nki.jit
def kernel(x: nt.tensor, y: nt.tensor[64, 32]) -> nt.mutable_tensor:
    sizes: Sizes = Sizes()
    rows: int = 64
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if nisa.get_nc_version() >= nisa.nc_version.gen3:
        rows = sizes.last(16)
    t = nl.load(first(x, y, rows=rows))
    u = nl.load(y[0:rows])
    nl.store(out[0:rows], t + u)
    if rows < 64:
        nl.store(out[rows:64], nl.load(x[rows:64]))
    return out


def main(a, b):
    return largest(a.shape, 2) * b
