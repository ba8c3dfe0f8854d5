"""The drop-in package `torch_neuronx`, with the functions that call NKI kernels from torch. See nki_sim."""

import nki
from nki_sim import _objects
from nki_sim._torch_neuronx import nki_jit, nki_op, wrap_nki

__all__ = ["nki", "nki_jit", "nki_op", "wrap_nki"]

_COMPILES = "it compiles a model for the hardware; nki-sim runs single kernels"
globals()["__getattr__"] = _objects.hints_of(
    "torch_neuronx",
    dict.fromkeys(["DataParallel", "analyze", "async_load", "dynamic_batch", "lazy_load", "replace_weights", "trace"], _COMPILES),
)
