"""The names of `nki.language.tensor`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.language import NkiTensor as NkiTensor
