"""The compiler's frontends for test harnesses: `compile` specialises a kernel, which runs its
asserts, without executing it."""

import os

from nki_sim._compiled import CompileOptions, _Context, compile_to_bir


class NKIFrontend:
    """Compiles a kernel for given inputs without running it. The frontends build the same program."""

    def __init__(self, enable_backend_opt=False):
        self.enable_backend_opt = enable_backend_opt

    def compile(self, *args, kernel=None, inputs=None, target=None, lnc=1, artifacts_dir=None, output_names=None, **_options):
        """Specialises a kernel for `inputs` (a dict by parameter): `compile(kernel, inputs)`, or after a
        context, `compile(context, kernel, inputs)`. Raises nki_sim.KernelError if it has an error.

        With `artifacts_dir`, the program is written there as `<kernel>.nkir`. The number of
        `output_names` is checked.
        """
        given = args[1:] if args and isinstance(args[0], _Context) else args
        kernel, inputs = [*given, *(value for value in (kernel, inputs) if value is not None), None][:2]
        given = {} if target is None else {"target": target}
        result = compile_to_bir(kernel, inputs=inputs, compile_opts=CompileOptions(lnc=lnc or 1, **given), output_names=output_names)
        if artifacts_dir is not None:
            os.makedirs(artifacts_dir, exist_ok=True)
            with open(os.path.join(artifacts_dir, f"{result.function_name}.nkir"), "w", encoding="utf-8") as file:
                file.write(result.text)
        return result


class ParserFrontend(NKIFrontend):
    """The same as the base class."""


class TracerFrontend(NKIFrontend):
    """The same as the base class."""


def resolve_frontend_cls():
    """The frontend that kernels use."""
    return TracerFrontend
