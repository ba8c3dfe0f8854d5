"""The drop-in package under another name: `nki_cpu_simulator.nki` is available even if the real
`nki` is installed."""

import nki_sim._tree

__path__.append(nki_sim._tree.PATH)

from . import nki  # noqa: E402, F401
