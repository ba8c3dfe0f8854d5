"""A copy of nki-library in which the gaps of the published repository are filled.

The published test suite cannot be collected as it is: modules are missing, one file does not parse, and its simulation mode reads an
attribute that it never sets. Each gap is one `Patch` below. A patch whose target is no longer as expected is left out and not counted.
"""

import dataclasses
import pathlib
import re
import shutil
from typing import Callable

SHIMS = pathlib.Path(__file__).resolve().parent.parent / "shims"


@dataclasses.dataclass(frozen=True)
class Patch:
    """One gap: the file, why it is patched, and the edit (text before, or None for a missing file, to text after)."""

    file: str
    reason: str
    edit: Callable[[str | None], str | None]


def _add(text: str) -> Callable[[str | None], str | None]:
    """A file that the repository refers to and does not hold."""
    return lambda before: text if before is None else None


def _replace(pattern: str, replacement: str) -> Callable[[str | None], str | None]:
    def edit(before: str | None) -> str | None:
        if before is None:
            return None
        after = re.sub(pattern, replacement, before, count=1, flags=re.S | re.M)
        return after if after != before else None

    return edit


def _drop_orphaned_docstring(before: str | None) -> str | None:
    """The function's docstring is closed early and its tail repeated behind it: the repeated part goes."""
    if before is None:
        return None
    try:
        compile(before, "mlp.py", "exec")
        return None
    except SyntaxError as error:
        lines = before.splitlines(keepends=True)
        orphan = (error.lineno or 1) - 1
    closing = next((n for n in range(orphan, len(lines)) if lines[n].strip() == '"""'), None)
    if closing is None:
        return None
    # The reported line may be the second of the orphaned ones: start behind the real closing quotes.
    opening = max((n for n in range(orphan) if lines[n].strip() == '"""'), default=orphan - 1)
    return "".join(lines[: opening + 1] + lines[closing + 1 :])


LOCKS = '''"""Stands in for a module that the published repository does not hold. Simulation locks no hardware."""
import dataclasses
import enum


class LockStatus(enum.Enum):
    ALLOCATED = 0
    RELEASED = 1
    NO_CORES = 2
    DRAINING = 3
    DRAINED = 4
    UNDRAINED = 5
    ERROR = 6
    FLOCK_TIMEOUT = 7

    @property
    def exit_code(self):
        return self.value

    @classmethod
    def from_exit_code(cls, code):
        return next((status for status in cls if status.value == code), None)


@dataclasses.dataclass
class LockResult:
    status: LockStatus
    cores: list = dataclasses.field(default_factory=list)
'''

PERF = '''"""Stands in for a module that the published repository does not hold. Simulation makes no hardware trace."""


def analyze_trace(*args, **kwargs):
    raise NotImplementedError("hardware traces cannot be analysed in simulation")
'''

ALIAS = '''"""The installed name of the library. Modules are those of nkilib_src.nkilib, not second copies of them."""
import importlib
import importlib.abc
import importlib.util
import sys

REAL = "nkilib_src.nkilib"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("nkilib."):
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        return importlib.import_module(REAL + spec.name.removeprefix("nkilib"))

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Alias())
_real = importlib.import_module(REAL)
__path__ = _real.__path__
'''

PATCHES = [
    Patch("test/utils/perf_analysis_private.py", "module missing, imported by the orchestrator", _add(PERF)),
    Patch("test/utils/scripts/__init__.py", "package missing", _add("")),
    Patch("test/utils/scripts/remote_lock_scripts.py", "module missing, imported by the lock client", _add(LOCKS)),
    Patch("src/nkilib/__init__.py", "the installed name nkilib is not in the source tree", _add(ALIAS)),
    Patch(
        "src/nkilib_src/nkilib/core/mlp/mlp.py",
        "does not parse: a part of the docstring is repeated after its end",
        _drop_orphaned_docstring,
    ),
    Patch(
        "src/nkilib_src/nkilib/core/qkv/qkv_cte.py",
        "calls the module stream_shuffle_broadcast where it means the function of that name in it",
        _replace(r"^from \.\.utils import stream_shuffle_broadcast$", "from ..utils.stream_shuffle_broadcast import stream_shuffle_broadcast"),
    ),
    Patch(
        "test/utils/test_orchestrator.py",
        "simulation mode reads _compiled_kernel, which it never sets",
        _replace(
            r"if not self\._compiled_kernel or not self\._compiled_kernel\.output_specs:",
            'if getattr(self, "_compiled_kernel", None) is None or not self._compiled_kernel.output_specs:',
        ),
    ),
    Patch(
        "test/utils/test_orchestrator.py",
        "simulation mode knows one rank only: tests of several ranks are run by nki_sim.simulate_ranks",
        _replace(
            r"(def _run_simulator_inference\(self, kernel_under_test[^\n]*\n.*?        try:\n)",
            r"\1"
            "            if kernel_under_test.inference_args.collective_ranks > 1:\n"
            "                from library_suite import ranks\n\n"
            "                return ranks.run(self, kernel_under_test)\n",
        ),
    ),
    Patch(
        "test/integration/nkilib/core/attention/test_gen_mask_tkg.py",
        "looks for the input mask_out_hbm, which is there as mask_out_hbm.must_alias_input",
        _replace(r'kernel_input\["mask_out_hbm"\]', 'kernel_input["mask_out_hbm.must_alias_input"]'),
    ),
    Patch(
        "test/integration/nkilib/core/qkv/test_qkv_tkg.py",
        "uses Platforms without importing it",
        lambda before: None
        if before is None or re.search(r"import[^\n]*\bPlatforms\b|^\s+Platforms,$", before, re.M)
        else _replace(r"^(from test\.utils)", r"from test.utils.common_dataclasses import Platforms\n\1")(before),
    ),
    Patch(
        "test/integration/nkilib/utils/tensor_generators.py",
        "makes random MX inputs in a Python loop over blocks, minutes for one test: made at once, other values of the same distribution",
        _replace(
            r"^    for i in range\(0, shape\[0\], _q_height\):\n.*?(?=^    rand_quantized_data = )",
            "    from library_suite import mx_inputs\n\n    mx_inputs.pin_exponents(rand_data, max_exp)\n",
        ),
    ),
    Patch(
        "test/utils/mx_utils.py",
        "multiplies with an einsum that no BLAS sees, minutes for one test: NumPy's own optimisation is switched on",
        _replace(r'(np\.einsum\("kiq,kjq->ij", stationary, moving)\)', r"\1, optimize=True)"),
    ),
    Patch(
        "test/integration/nkilib/experimental/subkernels/test_topk_reduce.py",
        "imports from where the kernel was before it moved to experimental.collectives",
        lambda before: before and before.replace("nkilib.experimental.subkernels.topk_reduce", "nkilib.experimental.collectives.topk_reduce"),
    ),
]


def make(checkout: pathlib.Path, copy: pathlib.Path) -> list[Patch]:
    """Copies the checkout's source and tests and patches the copy. Gives the patches that applied."""
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", "build"))
    applied = []
    for patch in PATCHES:
        file = copy / patch.file
        before = file.read_text() if file.exists() else None
        after = patch.edit(before)
        if after is not None and after != before:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(after)
            applied.append(patch)
    return applied
