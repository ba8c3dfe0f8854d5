"""KLR's compiler interface for its tests: `Kernel(f).specialize(arguments)` and `.trace(file)`,
each returning JSON with a list of errors."""

import inspect
import json

import numpy as np
from nki_sim import Kernel as SimulatedKernel
from nki_sim import _inspect

_text_of = _inspect.source_text


def _as_klr(file):
    """The text of a file, marked as KLR's dialect: the simulator recognises the dialect by an
    import of `klr`."""
    text = _text_of(file)
    return text and f"{text}\nimport klr\n"


_inspect.source_text = _as_klr

# The errors so far. Some tests ignore the result, so that their outcome is meaningless.
errors: list[str] = []


class Kernel:
    def __init__(self, function):
        self.function = function
        self.kernel = SimulatedKernel(function)
        self.errors: list[str] = []

    def __call__(self, *arguments):
        """Compiles; raises if the kernel has an error."""
        return self.kernel.compile(*arguments)

    def specialize(self, arguments=None, named=None, *options):
        """Compiles. As in KLR, parameters without an argument and without a default are tensors of
        10 by 10."""
        required = [one for one in inspect.signature(self.function).parameters.values() if one.default is one.empty]
        arguments = tuple(arguments or ()) or tuple(np.zeros((10, 10), np.float32) for _ in required if not named)
        try:
            self.compiled = self.kernel.compile(*arguments, **(named or {}))
        except Exception as error:
            self.errors = [str(error)]
        # In KLR, specialisation only loads the kernel; tracing finds undefined names.
        return self._answer([one for one in self.errors if "[undefined-name]" not in one])

    def trace(self, file, *options):
        if not self.errors:
            with open(file, "w") as out:
                out.write(self.compiled.text())
        return self._answer(self.errors)

    def _answer(self, found):
        errors.extend(found)
        return json.dumps({"errors": found, "warnings": []})
