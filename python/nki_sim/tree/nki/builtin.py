"""Python's builtins as available in kernels; test harnesses alias this module."""

from builtins import *  # noqa: F403
