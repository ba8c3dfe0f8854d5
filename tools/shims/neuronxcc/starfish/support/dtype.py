"""The one function of this module that nki-library's tests use."""

from neuron_dtypes import static_cast  # noqa: F401
