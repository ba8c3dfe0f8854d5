"""Kernels of the older package `neuronxcc.nki`: its decorators, its grids and its profile files."""

import collections
import functools
import hashlib
import inspect
import operator
import os
import threading
import types
import warnings

import numpy as np

from . import _arrays, _beta1_options, _debug, _levels, _native, _neff, _objects, _options
from ._errors import ArgumentTypeError, KernelWarning, leave_out_ours
from ._inspect import show
from ._kernel import Kernel, findings_of
from ._profile import Report, flat, record, recorded

#: The percentiles that a benchmark reports.
PERCENTILES = (0, 1, 10, 25, 50, 90, 99, 100)

#: Limit of the bytes of remembered results, over all kernels.
REMEMBERED_BYTES = 1 << 30


class Beta1Kernel(Kernel):
    """A kernel of `neuronxcc.nki`: the result of `jit`, `trace`, `baremetal`, `benchmark` and `profile`.

    Each of them accepts a function or a kernel that another one made; a benchmark or a profile stays one
    under the others. `kernel[g0, g1]` runs
    `g0 * g1` programs; `nl.nc(2)` in an extent distributes them over two physical cores. A call
    returns the outputs; after the call of a benchmark, `benchmark_result` has the latency.
    """

    #: What a call does in addition to a run: "run", "benchmark" or "profile".
    _mode = "run"
    #: Options of the decorators.
    _options = {}
    #: Extents of the launch grid, each as (programs per core, cores, whether neighbouring programs
    #: run on one core).
    grid = ()
    #: Whether descriptors are generated before the kernel runs (the flag `--disable-dge`).
    static_descriptors = False
    benchmark_result = None

    def __init__(self, func, *, mode="run", options=None, target=None):
        super().__init__(func, target=target or getattr(func, "target", None))
        if isinstance(func, Kernel):
            self.__dict__.update({**func.__dict__, "target": self.target, "benchmark_result": None})
        if isinstance(func, Beta1Kernel):
            mode, options = _beta1_options.nested(self.__name__, mode, options or {}, func)
        self._mode = mode
        self._options = options or {}
        _beta1_options.check(mode, self._options)
        self._take_flags()

    def _take_flags(self):
        """Applies the compiler flags that have an effect here: the target, and when descriptors are
        generated."""
        flags = f"{os.environ.get('NEURON_CC_FLAGS', '')} {self._options.get('additional_compile_opt') or ''}"
        words = flags.split()
        self.static_descriptors = "--disable-dge" in words
        for position, word in enumerate(words):
            name, _, value = word.partition("=")
            if name == "--target" and self.target is None and "NEURON_PLATFORM_TARGET_OVERRIDE" not in os.environ:
                self.target = value or (words[position + 1] if position + 1 < len(words) else None)

    def __getitem__(self, grid):
        """The kernel with a grid of programs: `kernel[4]`, `kernel[4, 2]`, `kernel[nl.nc(2), 4]`."""
        extents = grid_of(self.__name__, grid)
        return self._with(grid=extents, _lnc=max((cores for _, cores, _ in extents), default=1), benchmark_result=None)

    def specialize(self, *args, **kwargs):
        """The kernel: each call specialises it for its arguments. Files that the older compiler writes end with such a call."""
        return self

    @staticmethod
    def _python_cannot(error):
        # The older tool chain parsed the source. There, `and` combines masks, and all iterations of a
        # loop with a `return` run. In Python, `and` takes the truth value of its first operand
        # (`tile-condition`), and `return` ends the loop (`unsupported-syntax`).
        return error.slug in ("tile-condition", "unsupported-syntax") or Kernel._python_cannot(error)

    @functools.cached_property
    def _is_older_of_both(self):
        return _beta1_options.is_older_of_both(self.func)

    def _launch(self):
        return {
            **super()._launch(),
            "grid": list(self.grid),
            "older_of_both": self._is_older_of_both,
            "static_descriptors": self.static_descriptors,
        }

    def _fields_of_job(self):
        def extent(programs, cores, cores_outside):
            if cores == 1:
                return str(programs)
            return f"nc{cores}*{programs}" if cores_outside else f"{programs}*nc{cores}"

        programs = ",".join(extent(*axis) for axis in self.grid)
        # A grid says how many cores there are.
        own = {"programs": programs, "lnc": None} if programs else {}
        return {"beta1": True, "disable_dge": self.static_descriptors, **own}

    def __reduce__(self):
        find, (module, name, changes) = super().__reduce__()
        own = ("_mode", "_options", "grid", "static_descriptors")
        return find, (module, name, {**changes, **{field: getattr(self, field) for field in own}})

    def __call__(self, *args, **kwargs):
        if _native.is_tracing():
            if self.grid:
                _native.refuse_grid()
            return super().__call__(*args, **kwargs)
        try:
            return self._in_mode(args, kwargs)
        except Exception as error:
            leave_out_ours(error)
            raise

    def _in_mode(self, args, kwargs):
        if self._mode == "benchmark":
            return self._benchmark(args, kwargs)
        if self._mode == "profile":
            return self._profile(args, kwargs)
        saves = self._saves()
        done = self._once(args, kwargs, "profile" if saves else None)
        if saves:
            self._save(done.profile)
        return done.result

    def _benchmark(self, args, kwargs):
        saves = self._saves()
        device = self._once(args, kwargs, "device")
        self.benchmark_result = BenchmarkResult(device.profile["summary"]["total_time"] * 1e6)
        if saves:
            self._save(self._once(args, kwargs, "profile").profile)
        print(self.benchmark_result.table(self.__name__, self._options.get("iters") or 100))
        return device.result

    def _saves(self):
        """Whether a call writes a program or a profile; they must be different files."""
        neff, trace = self._options.get("save_neff_name"), self._options.get("save_trace_name")
        _beta1_options.different(neff, trace)
        return bool(neff or trace)

    def _save(self, profile):
        if self._options.get("save_neff_name"):
            _neff.write_neff(self._options["save_neff_name"], profile)
        if self._options.get("save_trace_name"):
            _neff.write_ntff(self._options["save_trace_name"], profile)

    def _profile(self, args, kwargs):
        neff, traces, reports = _beta1_options.files_of(self._options)
        done = self._once(args, kwargs, "profile")
        os.makedirs(os.path.dirname(reports[0]), exist_ok=True)
        _neff.write_neff(neff, done.profile)
        for trace, report in zip(traces, reports):
            _neff.write_ntff(trace, done.profile)
            _neff.write_json(report, _neff.full(done.profile))
        return done.result

    def _once(self, args, kwargs, measure):
        """The results of a run, and its profile if `measure` is given; cached by program and
        arguments. A cached run repeats what the first one reported: prints, findings, and the time
        for the pytest plugin."""
        kernel = self
        if measure == "device":
            kernel = self._with(_settings=tuple(sorted({**dict(self._settings), "kernel.measure": measure}.items())))
        arguments = kernel.bind(*args, **kwargs)
        # Compiled once: the kernel may change what it depends on, e.g. a list of the caller.
        prepared = kernel._prepare(arguments)
        compiled, steps = prepared
        key = None
        # A debugger needs every run.
        stepping = steps or kernel._eager or _debug.attached() or _debug.breaks(kernel.func)
        if not stepping and not compiled.written() and not compiled.valueless():
            # Settings that are read at each run, although the program is the same: which findings
            # are denied, the precision, and the value of unwritten memory.
            now = _levels.judge(kernel), _native.variables("NKI_PRECISE_FP", "NKI_SIM_UNWRITTEN")
            key = (compiled.serial(), now, measure is not None, *(_digest(value) for value in compiled.operands()))
            known = _remembered.get(key)
            if known is not None:
                done = known.copied()
                show([*compiled.prints(), *done.prints])
                self._warn(done.findings)
                if measure is not None:
                    recorded.append(done.recorded)
                return done
        result, outcome = kernel._run_bound(arguments, measure is not None, prepared)
        done = Done(result)
        done.findings = findings_of(outcome)
        self._warn(done.findings)
        if outcome is not None:
            done.prints = list(outcome.prints)
        if measure is not None:
            report = Report(outcome)
            done.latency_us = report.latency_us
            done.recorded = record(self.__name__, report["target"], report)
            done.profile = _neff.profile_of(report, outcome, compiled)
        if key is not None and not any(array is value for array in done.arrays() for _, value in arguments):
            _remembered.add(key, done)
        return done


class Done:
    """The results of a run with its output and findings, and for a timed run its time and
    profile."""

    def __init__(self, result):
        self.result = result
        self.prints = []
        self.findings = self.latency_us = self.recorded = self.profile = None

    def arrays(self):
        """The arrays in the results."""
        return flat(self.result)

    def copied(self):
        """The same with copies of the arrays, which the caller may modify."""
        new = Done(_arrays.copied(self.result))
        new.__dict__.update({name: value for name, value in self.__dict__.items() if name != "result"})
        return new


class Remembered:
    """Results by program and arguments, at most `REMEMBERED_BYTES`; the least recently used are evicted first.

    Only whole results of programs that write no argument are remembered: a second run would give
    the same bits.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._done = collections.OrderedDict()
        self._bytes = 0

    def get(self, key):
        with self._lock:
            if key not in self._done:
                return None
            self._done.move_to_end(key)
            return self._done[key][0]

    def add(self, key, done):
        size = sum(getattr(array, "nbytes", 0) for array in done.arrays())
        if size > REMEMBERED_BYTES:
            return
        # The caller gets the original and may modify it.
        kept = done.copied()
        with self._lock:
            if key in self._done:
                return
            self._done[key] = (kept, size)
            self._bytes += size
            while self._bytes > REMEMBERED_BYTES:
                _, (_, dropped) = self._done.popitem(last=False)
                self._bytes -= dropped


_remembered = Remembered()


def _digest(value):
    array = value if isinstance(value, np.ndarray) else _arrays.as_numpy(value, "")[0]
    array = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else _arrays.contiguous(array)
    return hashlib.blake2b(array.view(np.uint8).reshape(-1) if array.size else b"", digest_size=16).digest()


class Latency:
    """The latency of a benchmark. The simulator is deterministic: all percentiles are equal."""

    def __init__(self, latency_us):
        self._latency_us = latency_us

    def get_latency_percentile(self, percentile):
        """The latency in microseconds.

        :raises ValueError: for a percentile that benchmarks do not report.
        """
        if percentile not in PERCENTILES:
            raise ValueError(f"get_latency_percentile({percentile!r}): a benchmark gives the percentiles {', '.join(map(str, PERCENTILES))}")
        return round(self._latency_us, 3)

    def __repr__(self):
        return f"<latency {self._latency_us:.3f} us>"


class BenchmarkResult:
    """The result of a benchmark."""

    def __init__(self, latency_us):
        self.nc_latency = Latency(latency_us)

    def table(self, name, iters):
        """The lines that a benchmark prints."""
        value = self.nc_latency.get_latency_percentile(50)
        lines = [f"{name}: simulated latency of the device in microseconds (the same in each of {iters} iterations)"]
        lines += [f"  p{p:<4}{value:>14.3f}" for p in PERCENTILES]
        return "\n".join(lines)


class Cores:
    """An extent of a grid over physical cores: `nl.nc(2)`; `nl.nc(2) * 4`, where each core runs four neighbouring programs; and
    `4 * nl.nc(2)`, where neighbouring programs run on different cores."""

    def __init__(self, cores, programs=1, cores_outside=True):
        self.cores = cores
        self.programs = programs
        self.cores_outside = cores_outside

    def _times(self, other, cores_outside):
        if isinstance(other, bool) or not isinstance(other, int):
            return NotImplemented
        if other < 1:
            raise ArgumentTypeError(f"{other} programs in an extent of a grid with {self!r}: the number must be positive")
        if self.programs > 1 and cores_outside != self.cores_outside:
            raise ArgumentTypeError(f"{self!r} cannot take a factor on its other side: an extent is distributed over cores only once")
        return Cores(self.cores, self.programs * other, cores_outside)

    def __mul__(self, other):
        return self._times(other, True)

    def __rmul__(self, other):
        return self._times(other, False)

    def __repr__(self):
        parts = [f"nl.nc({self.cores})"]
        if self.programs > 1:
            parts.insert(1 if self.cores_outside else 0, str(self.programs))
        return " * ".join(parts)


def nc(cores):
    """A number of physical cores as an extent of a grid."""
    if cores not in (1, 2) or isinstance(cores, bool):
        raise ArgumentTypeError(f"nl.nc({cores!r}): a logical core has 1 or 2 physical cores")
    return Cores(cores)


def spmd_dim(*extents):
    """Combines several extents into one: `nl.spmd_dim(nl.nc(2), 4)`."""
    return functools.reduce(lambda a, b: a * b, extents)


def grid_of(name, grid):
    """The extents of a grid: each as (programs per core, cores, whether neighbouring programs run
    on one core).

    :raises ArgumentTypeError: for an extent that is not a positive number, or if two extents are
        over cores.
    """
    extents = []
    for extent in grid if isinstance(grid, (tuple, list)) else (grid,):
        if isinstance(extent, (int, np.integer)) and not isinstance(extent, bool) and extent > 0:
            extents.append((int(extent), 1, True))
        elif isinstance(extent, Cores):
            extents.append((extent.programs, extent.cores, extent.cores_outside))
        else:
            raise ArgumentTypeError(f"{name}[{grid!r}]: an extent of a grid is a positive number of programs, or nl.nc(...)")
    if sum(cores > 1 for _, cores, _ in extents) > 1:
        raise ArgumentTypeError(f"{name}[{grid!r}]: only one extent of a grid can have nl.nc(...)")
    return tuple(extents)


def _decorator(mode, accepted):
    """A decorator of `neuronxcc.nki`, for `@d`, `@d(...)`, `d(f, ...)` and `d(...)(f)`."""

    def decorate(kernel=None, **options):
        if kernel is None:
            return lambda function: decorate(function, **options)
        _options.warn_of_unknown(f"nki.{decorate.__name__}", options)
        return Beta1Kernel(kernel, mode=mode, options=options, target=options.pop("platform_target", None))

    decorate.__name__ = decorate.__qualname__ = mode if mode != "run" else "baremetal"
    decorate.__doc__ = accepted
    return decorate


baremetal = _decorator(
    "run",
    """A kernel that runs on the simulated device, with NumPy arrays.

    :param save_neff_name: a file for the program, for `neuron-profile`.
    :param save_trace_name: a file for the profile.
    :param additional_compile_opt: flags of the compiler. `--target` and `--disable-dge` have an effect.
    """,
)
benchmark = _decorator(
    "benchmark",
    """A kernel whose calls print a table of latencies; `benchmark_result.nc_latency.get_latency_percentile(p)` has them
    in microseconds. It is the latency of the device, without the overhead of a profile.

    :param warmup: 0 or more; the simulator needs none.
    :param iters: 1 or more; every iteration takes the same time.
    :param save_neff_name: a file for the program.
    :param save_trace_name: a file for the profile.
    """,
)
profile = _decorator(
    "profile",
    """A kernel whose calls write a program and profiles to a directory.

    :param working_directory: an absolute path.
    :param save_neff_name: name of the program, `file.neff`.
    :param save_trace_name: name of the profile, `profile.ntff`.
    :param overwrite: False refuses to replace existing files.
    :param profile_nth: each n-th execution is profiled; files of executions after the first are named
        `<trace>_exec_<n>.ntff`.
    :param num_execs: number of executions.
    """,
)


def jit(func=None, mode="auto", **options):
    """Makes a function a kernel: `@nki.jit`, or `@nki.jit(mode=...)`.

    :param mode: `auto`, `baremetal`, `simulation`, `jax`, `torchxla` and `trace` run the kernel when
        it is called; `benchmark` measures it and `profile` writes files (see there). A function that
        `benchmark` or `profile` decorates already is measured in each mode that runs it.
    :param platform_target: trn1, trn2 or trn3. By default the environment decides, else trn2.
    :param options: other options of the compiler; see `baremetal`.
    """
    if func is None:
        return lambda f: jit(f, mode=mode, **options)
    _options.warn_of_unknown("nki.jit" if mode != "trace" else "nki.trace", options)
    return Beta1Kernel(func, mode=_beta1_options.mode_of(mode), options=options, target=options.pop("platform_target", None))


def trace(func=None, **options):
    """Marks a function that kernels call, or a kernel for `simulate_kernel`."""
    return jit(func, mode="trace", **options)


def simulate_kernel(kernel, *args, **kwargs):
    """The outputs of the kernel for NumPy arrays. A kernel that returns nothing writes to its
    arguments."""
    made = kernel if isinstance(kernel, Beta1Kernel) else Beta1Kernel(kernel)
    return made._with(_mode="run", _options={})(*args, **kwargs)


def finfo(dtype):
    """The limits of a floating-point dtype of `nki.language` or NumPy."""
    dtype = np.dtype(dtype)
    if dtype.isbuiltin == 1:
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def skip_middle_end_transformations(kernel):
    """The kernel, to be compiled without the passes that the older compiler runs before it
    schedules."""
    made = kernel if isinstance(kernel, Beta1Kernel) else Beta1Kernel(kernel)
    return made._with(as_written=True)


def enable_stack_allocator(kernel=None, **_options):
    """Returns the kernel unchanged: the simulator has one allocator."""
    return _kept(kernel, enable_stack_allocator)


def force_auto_alloc(kernel=None, **_options):
    """Returns the kernel unchanged: the simulator has one allocator."""
    return _kept(kernel, force_auto_alloc)


def _kept(kernel, decorator):
    if kernel is None:
        return decorator
    return kernel if isinstance(kernel, Beta1Kernel) else Beta1Kernel(kernel)


class Buffer:
    """A memory with an address rule: the result of `nki.compiler.sbuf.alloc`, `mod_alloc` and
    `auto_alloc` outside a kernel."""

    def __init__(self, *arguments):
        self._arguments = arguments

    def __nki_arguments__(self):
        if not _native.is_tracing():
            return self._arguments
        return tuple(_with_names(value) if callable(value) else value for value in self._arguments)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"


def _with_names(function):
    """Wraps an address function so that it accepts arguments by their documented names, even if its
    own parameters have other names."""
    try:
        inspect.signature(function).bind(idx=None, pdim_size=None, fdim_size=None)
    except TypeError:
        return lambda idx, pdim_size, fdim_size: function(idx, pdim_size, fdim_size)
    return function


class HostIndex:
    """An index tile created outside a kernel (`nl.arange(128)[:, None]`). A kernel that uses the
    tile creates it again: the tracer calls `make`, the built-in evaluator calls a function that it
    knows with these arguments."""

    def __init__(self, make, function, *arguments):
        self.__nki_make__ = make
        self.__nki_call__ = (function, arguments)

    def __repr__(self):
        return "<index tile>"

    __hash__ = None


def _host_operation(name, function, swapped):
    def operation(self, *others):
        def make():
            return function(*(one.__nki_make__() if isinstance(one, HostIndex) else one for one in operands))

        operands = (*others, self) if swapped else (self, *others)
        return HostIndex(make, function, *operands)

    setattr(HostIndex, name, operation)


for _name in ("getitem", "add", "sub", "mul", "neg", "and", "lt", "le", "gt", "ge"):
    _host_operation(f"__{_name}__", getattr(operator, f"__{_name}__"), False)
for _name in ("add", "sub", "mul"):
    _host_operation(f"__r{_name}__", getattr(operator, f"__{_name}__"), True)


class Arange(_objects.ApiFunction):
    """`nl.arange`, also outside kernels."""

    def __call__(self, *args, **kwargs):
        if _native.is_tracing():
            return super().__call__(*args, **kwargs)
        return HostIndex(lambda: self(*args, **kwargs), None if kwargs else self, *args)


class StaticCast(_objects.ApiFunction):
    """`nl.static_cast`: of a tile inside a kernel, of arrays and numbers everywhere."""

    def __call__(self, input_data, dtype):
        if _native.is_tracing() and not isinstance(input_data, (np.ndarray, np.generic, int, float)):
            return super().__call__(input_data, dtype)
        return np.asarray(input_data).astype(np.dtype(dtype))


class HostGrid(HostIndex):
    """The index tiles of an `nl.mgrid[...]` outside a kernel: a sequence whose first five items
    also have names."""

    _NAMES = ("p", "x", "y", "z", "w")

    def __init__(self, make, count, *call):
        super().__init__(make, *call)
        self._count = count

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if not 0 <= operator.index(index) < self._count:
            raise IndexError(f"index {index} of nl.mgrid of {self._count} dimensions")
        return HostIndex(lambda: self.__nki_make__()[index], operator.getitem, self, index)

    def __getattr__(self, name):
        if name in HostGrid._NAMES[: self.__dict__.get("_count", 0)]:
            return self[HostGrid._NAMES.index(name)]
        raise AttributeError(f"nl.mgrid of {self.__dict__.get('_count')} dimensions has no {name}")


class Mgrid(_objects.ApiIndex):
    """`nl.mgrid`, also outside kernels."""

    def __getitem__(self, item):
        if _native.is_tracing():
            return super().__getitem__(item)
        slices = item if isinstance(item, tuple) else (item,)
        if not all(isinstance(one, slice) and one.stop is not None for one in slices):
            raise TypeError(f"nl.mgrid[{item!r}]: it takes slices with an end, nl.mgrid[0:128, 0:512]")
        return HostGrid(lambda: self[item], len(slices), operator.getitem, self, item)


def _rule(memory, name, parameters):
    """Creates a class for a buffer outside a kernel. A kernel creates the buffer again from the
    arguments of its object."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind, default=default) for name, default in parameters])

    def __init__(self, *args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        Buffer.__init__(self, *bound.arguments.values())

    path = f"neuronxcc.nki.compiler.{memory}.{name}"
    made = type(name, (Buffer,), {"__init__": __init__, "__module__": f"neuronxcc.nki.compiler.{memory}", "__signature__": signature})
    _native.register(made, path)
    return made


#: The dialect takes these arguments by position, in this order.
_MOD_ALLOC = (("base_addr", 0), ("base_bank", 0), ("base_partition", 0), ("num_bank_tiles", ()), ("num_par_tiles", ()), ("num_free_tiles", ()))


def memory_module(memory):
    """`nki.compiler.sbuf` or `nki.compiler.psum`."""
    module = types.ModuleType(f"neuronxcc.nki.compiler.{memory}", f"Direct allocation in {memory.upper()}.")
    for name, parameters in (("alloc", (("func", inspect.Parameter.empty),)), ("mod_alloc", _MOD_ALLOC), ("auto_alloc", ())):
        setattr(module, name, _rule(memory, name, parameters))
    _native.register(module, module.__name__)
    return module
