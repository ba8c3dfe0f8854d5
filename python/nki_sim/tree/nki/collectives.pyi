"""The names of `nki.collectives`. Written by python/stubs.py from the registry of the simulator; do not edit."""

import enum
from collections.abc import Sequence
from typing import Any

from nki.isa import NkiInstruction
from nki.language import NkiTensor
from nki_sim._objects import ReplicaGroup as ReplicaGroup
