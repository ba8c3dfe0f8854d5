"""A copy of nki-library with patches for the gaps of the published repository.

pytest cannot collect the published test suite: modules are missing, one file does not parse, and
the simulation mode reads an attribute that is never set. Each gap is one `Patch` below. A patch
whose target has changed is skipped and not counted.
"""

import dataclasses
import pathlib
import re
import shutil
from typing import Callable

SHIMS = pathlib.Path(__file__).resolve().parent.parent / "shims"


@dataclasses.dataclass(frozen=True)
class Patch:
    """One gap: the file, the reason for the patch, and the edit (from the old text, or None for a
    missing file, to the new text)."""

    file: str
    reason: str
    edit: Callable[[str | None], str | None]


def _add(text: str) -> Callable[[str | None], str | None]:
    """Adds a file that the repository refers to and does not contain."""
    return lambda before: text if before is None else None


def _replace(pattern: str, replacement: str) -> Callable[[str | None], str | None]:
    def edit(before: str | None) -> str | None:
        if before is None:
            return None
        after = re.sub(pattern, replacement, before, count=1, flags=re.S | re.M)
        return after if after != before else None

    return edit


def _drop_orphaned_docstring(before: str | None) -> str | None:
    """Removes the repeated tail of a docstring that is closed too early."""
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
    # The reported line may be the second of the orphaned ones, so start after the real closing
    # quotes.
    opening = max((n for n in range(orphan) if lines[n].strip() == '"""'), default=orphan - 1)
    return "".join(lines[: opening + 1] + lines[closing + 1 :])


LOCKS = '''"""Replaces a module that the published repository lacks. Simulation locks no hardware."""
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

PERF = '''"""Replaces a module that the published repository lacks. Simulation records no hardware trace."""


def analyze_trace(*args, **kwargs):
    raise NotImplementedError("hardware traces cannot be analysed in simulation")
'''

ALIAS = '''"""The installed name of the library. It shares the modules of nkilib_src.nkilib."""
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

SCALE = "its quantize_mx has the scale from before NKI 0.6, with which the largest elements of a block saturate: twice that, as in the release notes of 0.6"

PATCHES = [
    Patch("test/utils/perf_analysis_private.py", "the orchestrator imports this missing module", _add(PERF)),
    Patch("test/utils/scripts/__init__.py", "package missing", _add("")),
    Patch("test/utils/scripts/remote_lock_scripts.py", "the lock client imports this missing module", _add(LOCKS)),
    Patch("src/nkilib/__init__.py", "the installed name nkilib is not in the source tree", _add(ALIAS)),
    Patch(
        "src/nkilib_src/nkilib/core/mlp/mlp.py",
        "does not parse: part of the docstring is repeated after its end",
        _drop_orphaned_docstring,
    ),
    Patch(
        "src/nkilib_src/nkilib/core/qkv/qkv_cte.py",
        "calls the module stream_shuffle_broadcast instead of its function of that name",
        _replace(r"^from \.\.utils import stream_shuffle_broadcast$", "from ..utils.stream_shuffle_broadcast import stream_shuffle_broadcast"),
    ),
    Patch(
        "test/utils/test_orchestrator.py",
        "simulation mode reads _compiled_kernel, which is never set",
        _replace(
            r"if not self\._compiled_kernel or not self\._compiled_kernel\.output_specs:",
            'if getattr(self, "_compiled_kernel", None) is None or not self._compiled_kernel.output_specs:',
        ),
    ),
    Patch(
        "test/utils/test_orchestrator.py",
        "simulation mode supports one rank only: nki_sim.simulate_ranks runs tests of several ranks",
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
        "expects the input mask_out_hbm, whose name is mask_out_hbm.must_alias_input",
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
        "generates random MX inputs in a Python loop over blocks, which takes minutes for one test: generated at once, with other values of the same distribution",
        _replace(
            r"^    for i in range\(0, shape\[0\], _q_height\):\n.*?(?=^    rand_quantized_data = )",
            "    from library_suite import mx_inputs\n\n    mx_inputs.pin_exponents(rand_data, max_exp)\n",
        ),
    ),
    Patch(
        "test/utils/mx_utils.py",
        "multiplies with an einsum that does not use BLAS, which takes minutes for one test: NumPy's own optimisation is enabled",
        _replace(r'(np\.einsum\("kiq,kjq->ij", stationary, moving)\)', r"\1, optimize=True)"),
    ),
    Patch(
        "src/nkilib_src/nkilib/core/utils/mx_torch_common.py",
        SCALE,
        _replace(r"^    max_exp, max_val = _MX_DTYPE_PARAMS\[out_x4_dtype\]$", r"\g<0>\n    max_exp -= 1"),
    ),
    Patch("test/utils/mx_utils.py", SCALE, _replace(r"else get_mx_max_exp\(out_x4_dtype\)$", r"\g<0> - 1")),
    Patch("test/integration/nkilib/core/mlp/test_mlp_common.py", SCALE, _replace(r"else get_mx_max_exp\(out_x4_dtype\)$", r"\g<0> - 1")),
    Patch(
        "test/integration/nkilib/experimental/subkernels/test_topk_reduce.py",
        "imports the kernel from its location before the move to experimental.collectives",
        lambda before: before and before.replace("nkilib.experimental.subkernels.topk_reduce", "nkilib.experimental.collectives.topk_reduce"),
    ),
]


def make(checkout: pathlib.Path, copy: pathlib.Path) -> list[Patch]:
    """Copies the sources and tests of the checkout and patches the copy. Returns the patches that
    applied."""
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
