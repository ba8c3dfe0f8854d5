"""Values of intermediates, for tests: a kernel's tensors after each instruction that wrote them."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _arrays, _native
from ._errors import ArgumentError, ArgumentTypeError, KernelWarning, leave_out_ours
from ._kernel import Kernel, findings_of, simulate

if TYPE_CHECKING:
    from . import _ranks


class Value:
    """A tensor after one execution of an instruction. NumPy accepts it as an array.

    :ivar tensor: the name of the tensor.
    :ivar shape: its shape; `dtype` is the name of its element type.
    :ivar file: the source file; `line` is the 1-based line.
    :ivar instruction: the instruction, such as `tensor_scalar`; `name` is its `name=`, else empty.
    :ivar core: the physical core.
    :ivar execution: how many times the core wrote the tensor at this line before.
    :ivar iterations: the loops around it, outermost first: variable and value of a loop that was
        unrolled, and for a loop of the device `line N` and the number of the iteration.
    """

    def __init__(self, kind, memory, shape, dtype, iterations, unwritten=None, **place):
        self._kind = kind
        self._memory = memory
        self._unwritten = unwritten
        self.shape = shape
        self.dtype = dtype
        self.iterations = dict(iterations)
        self.tensor, self.instruction, self.name = place["tensor"], place["instruction"], place["name"]
        self.file, self.line = place["file"], place["line"]
        self.core, self.execution = place["core"], place["execution"]

    @property
    def array(self) -> Any:
        """The elements, as an array of the type of the arguments.

        Elements that were never written are NaN, or an arbitrary value if the type has no NaN. A
        `KernelWarning` says how many there are.
        """
        if missing := self._missing():
            warnings.warn(f"{self._place()}: {missing} of {self._size()} elements are not written yet", KernelWarning, stacklevel=2)
        return _arrays.make(self._memory, self.shape, self.dtype, self._kind)

    @property
    def unwritten(self) -> np.ndarray:
        """A NumPy array of bool: the elements that have not been written yet."""
        if self._unwritten is None:
            return np.zeros(self.shape, np.bool_)
        return np.asarray(self._unwritten).view(np.bool_).reshape(self.shape)

    @property
    def nans(self) -> int:
        """The number of written elements that are NaN."""
        elements = _arrays.make(self._memory, self.shape, self.dtype, "numpy")
        if elements.dtype.fields is not None or elements.dtype.kind in "iub":
            return 0
        return int(np.count_nonzero(np.isnan(elements.astype(np.float32)) & ~self.unwritten))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if missing := self._missing():
            warnings.warn(f"{self._place()}: {missing} of {self._size()} elements are not written yet", KernelWarning, stacklevel=2)
        array = _arrays.make(self._memory, self.shape, self.dtype, "numpy")
        return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))

    def _size(self):
        return int(np.prod(self.shape))

    def _missing(self):
        return 0 if self._unwritten is None else int(np.count_nonzero(self.unwritten))

    def _place(self):
        steps = ", ".join(f"{variable}={value}" for variable, value in self.iterations.items())
        return f"{self.tensor} at {self.file}:{self.line}{f' ({steps})' if steps else ''}, core {self.core}"

    def __repr__(self):
        said = [f"{count} {what}" for count, what in ((self.nans, "NaN"), (self._missing(), "not written")) if count]
        found = f": {', '.join(said)}" if said else ""
        return f"<{self.dtype}{list(self.shape)} {self._place()}{found}>"


class Values:
    """The intermediates of a run, in the order in which they were written.

    `values["t"]` is the last value of the tensor `t`; `find` and `all` choose others. Iterating
    gives all of them.
    """

    def __init__(self, found):
        self._found = found

    @property
    def names(self):
        """The names of the tensors, in the order of their first values."""
        return list(dict.fromkeys(value.tensor for value in self._found))

    def __getitem__(self, tensor: str) -> Value:
        return self.find(tensor)

    def __iter__(self):
        return iter(self._found)

    def __len__(self):
        return len(self._found)

    def all(self, tensor=None, *, name=None, line=None, file=None, iteration=None, core=None):
        """The values that have all of these properties.

        :param tensor: the name of the tensor.
        :param name: the `name=` of the instruction.
        :param line: the line of the instruction.
        :param file: the source file, or the end of its path.
        :param iteration: which execution of a line, from 0 (-1 is the last one), or a dict of loop
            variables: {"i": 3}.
        :param core: the physical core.
        """
        found = [
            value
            for value in self._found
            if (tensor is None or value.tensor == tensor)
            and (name is None or value.name == name)
            and (line is None or value.line == line)
            and (file is None or f"/{value.file}".endswith(f"/{file}"))
            and (core is None or value.core == core)
        ]
        if iteration is None:
            return found
        if isinstance(iteration, dict):
            return [v for v in found if all(step in v.iterations and v.iterations[step] == i for step, i in iteration.items())]
        if iteration >= 0:
            return [value for value in found if value.execution == iteration]
        counts = {}
        for value in found:
            key = (value.core, value.file, value.line, value.tensor)
            counts[key] = max(counts.get(key, 0), value.execution + 1)
        return [v for v in found if v.execution == counts[v.core, v.file, v.line, v.tensor] + iteration]

    def find(self, tensor: str | None = None, **where: Any) -> Value:
        """The last of the values that `all` returns for these arguments.

        :raises LookupError: if there is none, or if several cores have one and `core` is not given.
        """
        found = self.all(tensor, **where)
        if not found:
            raise LookupError(f"no value of {_text(tensor, where)}; {self._known(tensor)}")
        cores = sorted({value.core for value in found})
        if len(cores) > 1:
            raise LookupError(f"cores {' and '.join(map(str, cores))} have values of {_text(tensor, where)}; pass core=0 or core=1")
        return found[-1]

    def _known(self, tensor):
        of = [value for value in self._found if value.tensor == tensor]
        if not of:
            return f"there are values of {', '.join(f'`{name}`' for name in self.names) or 'no tensor'}"
        lines = {}
        for value in of:
            lines[value.line] = max(lines.get(value.line, 0), value.execution + 1)
        return f"`{tensor}` is written at " + ", ".join(f"line {line} ({count} times)" for line, count in lines.items())

    def __repr__(self):
        return f"<{len(self)} values of {', '.join(self.names)}>"


def _text(tensor, where):
    given = ", ".join(f"{key}={value!r}" for key, value in where.items() if value is not None)
    what = "any tensor" if tensor is None else f"`{tensor}`"
    return f"{what} with {given}" if given else what


class WithValues:
    """A kernel whose calls return its results and its intermediates."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, lnc):
        return WithValues(self.kernel[lnc])

    def __call__(self, *args, **kwargs) -> tuple[Any, Values]:
        try:
            result, outcome = self.kernel._run(args, kwargs, False)
        except Exception as error:
            leave_out_ours(error)
            raise
        if outcome is None:
            raise ArgumentTypeError(f"{self.kernel.__name__}: a kernel that jax traces does not run, so it has no values; call it outside of jax.jit")
        self.kernel._warn(findings_of(outcome))
        return result, _values(outcome, self.kernel.bind(*args, **kwargs))

    def __repr__(self):
        return f"<{self.kernel!r} with its values>"


class RanksWithValues:
    """Ranks whose calls return their results and, for each rank, its intermediates."""

    def __init__(self, ranks):
        self.kernel = ranks

    def __getitem__(self, lnc):
        return RanksWithValues(self.kernel[lnc])

    def __call__(self, *args, **kwargs) -> tuple[list[Any], list[Values]]:
        try:
            results, outcome = self.kernel._run(args, kwargs, False)
        except Exception as error:
            leave_out_ours(error)
            raise
        if found := outcome.findings():
            warnings.warn(found.rstrip(), KernelWarning, stacklevel=2)
        arguments = [*enumerate(args), *kwargs.items()]
        return results, [_values(rank, arguments) for rank in outcome.ranks]


def _values(outcome, arguments):
    kind = _arrays.kind_of([value for _, value in arguments])
    return Values([Value(kind, **value) for value in outcome.values])


@overload
def trace_values(kernel: "_ranks.Ranks", names: Any = None, lines: Any = None) -> RanksWithValues: ...
@overload
def trace_values(kernel: Kernel[..., Any] | Callable[..., Any], names: Any = None, lines: Any = None) -> WithValues: ...
def trace_values(kernel, names=None, lines=None):
    """The kernel with its intermediates: `outputs, values = nki_sim.trace_values(kernel)(...)`.

    `values` has the contents of a tensor after each instruction that writes it, on both cores
    (`Values`). Accepts the result of `simulate_ranks(kernel, n)` as well; `values` is then a list
    with the values of each rank. The run computes the same results as without.

    :param names: names of the tensors whose values are kept; by default all.
    :param lines: lines whose values are kept, as numbers or as "FILE:LINE"; by default all.
    :raises ArgumentError: from the call, if no instruction writes such a tensor or stands at such a
        line, or if the values take more than half of the memory limit (`nki_sim.configure`).
    """
    from . import _ranks

    wanted = _Wanted([names] if isinstance(names, str) else list(names or ()), [_line(line) for line in _several(lines)])
    if isinstance(kernel, _ranks.Ranks):
        return RanksWithValues(_ranks.Ranks(kernel.kernel._with(_wanted=wanted), kernel.count))
    return WithValues(simulate(kernel)._with(_wanted=wanted))


class _Wanted:
    """Which values a run keeps."""

    def __init__(self, names, lines):
        if not all(isinstance(name, str) for name in names):
            raise ArgumentTypeError(f"trace_values(names={names!r}): names of tensors are strings")
        self.names = names
        self.lines = lines

    @property
    def limit(self):
        """Bytes that the values may take; the rest of the limit is for the kernel."""
        return _native.memory_limit() // 2


def _several(lines):
    return [] if lines is None else [lines] if isinstance(lines, (int, str)) else list(lines)


def _line(line):
    """A line as the end of the path of its file, or None, and a number."""
    file, _, number = line.rpartition(":") if isinstance(line, str) else (None, "", line)
    try:
        number = int(number)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise ArgumentError(f"trace_values(lines=...): {line!r} is not a line; pass 12 or 'kernel.py:12'")
    return file or None, number
