"""The compiler's frontends for test harnesses: `compile` specialises a kernel, which runs its
asserts, without executing it."""

import os

from nki_sim._kernel import Kernel


class FrontendResult:
    """The result of `compile`: the program in text form, and the names of its tensors."""

    def __init__(self, compiled, artifacts_dir):
        self.compiled = compiled
        self.text = compiled.text()
        self.inputs = compiled.inputs()
        self.outputs = compiled.outputs()
        self.artifacts_dir = artifacts_dir


class NKIFrontend:
    """Compiles a kernel for given inputs without running it."""

    def compile(self, kernel, inputs=None, target=None, lnc=1, artifacts_dir=None, output_names=None, **_options):
        """Specialises `kernel` for `inputs` (a dict by parameter). Raises nki_sim.KernelError if it
        has an error.

        With `artifacts_dir`, the program is written there as `<kernel>.nkir`. The number of
        `output_names` is checked.
        """
        made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
        made = made._with(_lnc=lnc or 1, target=str(getattr(target, "value", target)) if target is not None else made.target)
        inputs = {name.removesuffix(".must_alias_input"): value for name, value in (inputs or {}).items()}
        result = FrontendResult(made.compile(**inputs), artifacts_dir)
        if output_names is not None and len(output_names) != len(result.outputs):
            raise ValueError(f"{made.__name__} returns {len(result.outputs)} tensors, {len(output_names)} names given")
        if artifacts_dir is not None:
            os.makedirs(artifacts_dir, exist_ok=True)
            with open(os.path.join(artifacts_dir, f"{made.__name__}.nkir"), "w", encoding="utf-8") as file:
                file.write(result.text)
        return result


class ParserFrontend(NKIFrontend):
    """The same as the base class."""


class TracerFrontend(NKIFrontend):
    """The same as the base class."""
