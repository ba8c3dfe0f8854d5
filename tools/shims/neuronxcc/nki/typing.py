"""Annotations only: a kernel's parameter that the kernel writes."""

from nki.typing import *  # noqa: F403


class mutable_tensor:  # noqa: N801
    """Marks a tensor parameter that is written in place."""
