"""Python's builtins as available in kernels. Test harnesses alias this module."""

from builtins import *  # noqa: F403
