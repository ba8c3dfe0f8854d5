"""Annotations of parameters that a kernel writes."""

from nki.typing import *  # noqa: F403


class mutable_tensor:  # noqa: N801
    """Marks a tensor parameter that is written in place."""
