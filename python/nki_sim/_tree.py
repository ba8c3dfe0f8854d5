"""The drop-in packages `nki`, `neuronxcc`, `nrtpy`, `torch_neuronx` and `jax_neuronx`.

They are in `nki_sim/tree`, which `nki-sim.pth` appends to Python's path, after site-packages. An
installed real `nki` therefore takes precedence.
"""

import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")


def offer():
    """Makes `import nki` work if there is no other `nki`, even if Python does not read `.pth`
    files."""
    if os.environ.get("NKI_SIM_OVERRIDE") == "1":
        install()
    elif PATH not in sys.path:
        sys.path.append(PATH)


def install():
    """Gives our `nki` precedence over any other, even one that is already imported.

    `NKI_SIM_OVERRIDE=1` has this effect when nki_sim is imported.
    """
    while PATH in sys.path:
        sys.path.remove(PATH)
    sys.path.insert(0, PATH)
    loaded = sys.modules.get("nki")
    if loaded is not None and not getattr(loaded, "__file__", "").startswith(PATH):
        for name in [n for n in sys.modules if n == "nki" or n.startswith("nki.")]:
            del sys.modules[name]
