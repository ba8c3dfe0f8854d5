"""Python's builtins as kernels know them; test harnesses alias this module."""

from builtins import *  # noqa: F403
