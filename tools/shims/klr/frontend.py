"""KLR's compiler as its tests call it: `Kernel(f).specialize(arguments)` and `.trace(file)`, each giving JSON with a list of errors."""

import json

from nki_sim import Kernel as SimulatedKernel

# What was refused. Some tests look at no result at all, so that their outcome says nothing.
errors: list[str] = []


class Kernel:
    def __init__(self, function):
        self.kernel = SimulatedKernel(function)

    def __call__(self, *arguments):
        """Compiles; raises when the kernel is refused."""
        self.compiled = self.kernel.compile(*arguments)

    def specialize(self, arguments=(), **options):
        try:
            self(*(arguments or ()))
        except Exception as error:
            errors.append(str(error))
            return json.dumps({"errors": [str(error)], "warnings": []})
        return json.dumps({"errors": [], "warnings": []})

    def trace(self, file):
        with open(file, "w") as out:
            out.write(self.compiled.text())
        return json.dumps({"errors": [], "warnings": []})
