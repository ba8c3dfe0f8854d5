"""The names of `nki.typing`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.language import NkiTensor as NkiTensor
from nki.language import tensor as tensor
