"""Kernels as Python objects: `nki.jit`, `nki.simulate`, calls."""

import contextlib
import functools
import inspect
import linecache
import math
import numbers
import re
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from . import _arrays, _debug, _dependencies, _levels, _native, _neff, _options, _source, _watch
from ._errors import ArgumentError, ArgumentTypeError, KernelError, KernelWarning, NoSourceError, leave_out_ours
from ._inspect import show

P = ParamSpec("P")
R = TypeVar("R")


def findings_of(outcome):
    """The findings of a run as text; None without findings, or without a run."""
    return outcome.findings()[0].rstrip() if outcome is not None and outcome.has_findings() else None


class Kernel(Generic[P, R]):
    """A function that is compiled for the device and simulated; the result of `nki.jit`.

    Calling it with arrays runs it. Results have the type of the array arguments (NumPy, torch,
    jax). `kernel[lnc]` runs on `lnc` physical cores; without it, NEURON_LOGICAL_NC_CONFIG decides at
    the time of the call, else it is one. `func` (also `__wrapped__`) is the Python
    function. A call raises `KernelError` if the kernel has an error, and `ArgumentError` or
    `ArgumentTypeError` for unsupported arguments.
    """

    #: Levels of findings passed to `simulate`, and whether `assert_close` is the caller.
    _given = None
    _close = False
    __name__: str
    __qualname__: str
    func: Callable[P, R]
    #: The intermediates whose values runs keep (`trace_values`).
    _wanted = None
    #: The function's code, and whether it names `breakpoint`.
    _named = (None, False)
    #: Whether the kernel is stepped through; None if a debugger or a breakpoint decides.
    _eager = None
    #: Whether the compiler's rewrites are disabled: dropped loads and, for older kernels, others
    #: (`skip_middle_end_transformations`).
    as_written = False

    def __init__(self, func, *, lnc=None, target=None, strict=False, capacity=None, cache=None, compile_config=None, specialization_config=None):
        #: The named tuples that programs return (`_dependencies.structure`), by number of the program.
        self._structures = {}
        if isinstance(func, Kernel):
            if cache is None:
                cache, self._structures = func._cache, func._structures
            func = func.func
        if isinstance(func, (staticmethod, classmethod)):
            func = func.__func__
        fixed = ((), {})
        while isinstance(func, functools.partial):
            fixed = ((*func.args, *fixed[0]), {**func.keywords, **fixed[1]})
            func = func.func
            if isinstance(func, Kernel):
                func = func.func
        if isinstance(func, types.MethodType):
            fixed = ((func.__self__, *fixed[0]), fixed[1])
            func = func.__func__
        if not isinstance(func, (types.FunctionType, type)) and isinstance(getattr(type(func), "__call__", None), types.FunctionType):
            # A callable object.
            fixed = ((func, *fixed[0]), fixed[1])
            func = type(func).__call__
        if not isinstance(func, types.FunctionType):
            raise ArgumentTypeError(f"a kernel is a Python function; this is of type {type(func).__name__}")
        self.func = func
        self._lnc = lnc
        self.target = target
        self.compile_config = compile_config
        self.specialization_config = specialization_config
        self.strict = strict
        self.capacity = capacity
        self._schedule = []
        self._settings = ()
        self._fixed = fixed
        self._cache = cache if cache is not None else _native.Cache()
        self._has_source = False
        #: Numbers of programs whose specialisation met a breakpoint.
        self._breaking = set()
        functools.update_wrapper(self, func)
        self._signature = _signature_of(func)
        self._plain, self._required = _positions(self._signature)
        self._folder = _levels.folder(func)
        if fixed != ((), {}):
            self.__signature__ = inspect.signature(functools.partial(func, *fixed[0], **fixed[1]))
        else:
            self.__signature__ = self._signature
        # Capture the text now: it may be in a caller's variable, or the file may change.
        _source.search(func)
        _watch.made(self)

    def _with(self, **changes):
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.__dict__.update(changes)
        _watch.made(new)
        return new

    @property
    def lnc(self):
        """The number of physical cores on which the kernel runs."""
        return _native.logical_cores() if self._lnc is None else self._lnc

    def __getitem__(self, grid: int | tuple[int]) -> "Kernel[P, R]":
        """The kernel on this number of physical cores: `kernel[2]` or `kernel[(2,)]`."""
        if isinstance(grid, tuple) and len(grid) == 1:
            (grid,) = grid
        if not isinstance(grid, numbers.Integral) or isinstance(grid, bool) or grid not in (1, 2):
            raise ValueError(f"kernel[{grid!r}]: a logical core has 1 or 2 physical cores: kernel[1] or kernel[2]; a kernel that runs for several indices loops over them")
        return self._with(_lnc=int(grid))

    def with_schedule(self, edges) -> "Kernel[P, R]":
        """The kernel with additional dependences between named instructions: pairs
        `(later, earlier)` of `name=` values, where `earlier` may be a list of names."""
        pairs = []
        for edge in (edges,) if isinstance(edges, str) else edges:
            later, earlier = edge if isinstance(edge, (list, tuple)) and len(edge) == 2 else (None, ())
            names = earlier if isinstance(earlier, (list, tuple)) else (earlier,)
            if not all(isinstance(name, str) for name in (later, *names)):
                raise ArgumentTypeError(f"with_schedule takes pairs of instruction names, [(\"later\", \"earlier\")], got {edge!r}")
            pairs += [(later, one) for one in names]
        return self._with(_schedule=[*self._schedule, *pairs])

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return self._with(_fixed=((instance, *self._fixed[0]), self._fixed[1]))

    def bind(self, *args, **kwargs):
        """The arguments by parameter name, in parameter order, as a list of pairs."""
        if self._fixed[0] or self._fixed[1]:
            args, kwargs = (*self._fixed[0], *args), {**self._fixed[1], **kwargs}
        if not kwargs and self._required <= len(args) <= len(self._plain):
            # Equivalent to binding the signature, at a twentieth of the cost.
            return list(zip(self._plain, args))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.__name__}: {error}; it is {self.__name__}{self._signature}") from None
        for name in bound.arguments:
            rest = self._signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            if rest and not _traces():
                raise ArgumentTypeError(f"{self.__name__}: a kernel can have only named parameters, not *{name}; pass a tuple")
        return list(bound.arguments.items())

    def _bind_args(self, args, kwargs):
        return dict(self.bind(*args, **kwargs))

    def _to_subclass(self, cls, **changes):
        """The kernel as one of `nki.framework.compiled`."""
        return cls(self, **changes)

    def compile(self, *args, **kwargs):
        """Compiles for these arguments without running.

        The compiled program has the methods `text()`, `inputs()` and `outputs()`. Output of the
        kernel's `print` during compilation is printed. Raises `KernelError` if the kernel has an
        error.
        """
        try:
            compiled = self._compile(self.bind(*args, **kwargs))
        except Exception as error:
            leave_out_ours(error)
            raise
        show(compiled.prints())
        return compiled

    def _compile(self, arguments):
        if not _traces():
            return self._compile_with(arguments, False)
        try:
            return self._compile_with(arguments, True)
        except KernelError as error:
            if not self._python_cannot(error):
                raise
            if error._changed:
                warnings.warn(
                    f"{self.__name__} changes an argument or a value outside of it, and Python stopped at line {error.line}: the built-in evaluator, "
                    f"which compiles the kernel now, starts from the changed value; set NKI_COMPILER_FRONTEND=parser, or change a copy",
                    KernelWarning,
                    stacklevel=_dependencies.depth(),
                )
            try:
                return self._compile_with(arguments, False)
            except NoSourceError:
                raise error from None

    @staticmethod
    def _python_cannot(error):
        """Whether the kernel failed at what earlier releases accepted and Python cannot execute:
        memories without an import (NKI 0.2), and `while register:` (NKI 0.2 to 0.6)."""
        if error.slug == "undefined-name":
            return getattr(error.__cause__, "name", None) in ("sbuf", "psum", "hbm")
        line = linecache.getline(error.file or "", error.line or 0)
        return error.slug == "register-arithmetic" and bool(_WHILE.match(line))

    def _compile_with(self, arguments, traced, **how):
        if not traced:
            if not self._has_source:
                _source.require(self.func)
                self._has_source = True
            _source.warn_of_replaced(self.func, not _traces())
        judge = _levels.judge(self)
        config = (self.compile_config, self.specialization_config)
        launch = {**self._launch(), **how}
        given = (self.func, arguments, self.target, self._lnc, judge, self._schedule, config, self.capacity, self._settings, traced)
        if not traced or how.get("known"):
            return self._cache.compile(*given, **launch)
        with _dependencies.specialising(self.func, "the next program of the grid" if launch.get("grid") else "core 1") as noted:
            try:
                compiled = self._cache.compile(*given, **launch)
            except KernelError as error:
                error._changed = noted.has_changed()
                raise
        if noted.structure is not None:
            self._structures[compiled.serial()] = noted.structure
        return compiled

    def _restored(self, compiled, result):
        """The results of a compiled kernel, with the named tuples that its function returned."""
        return _dependencies.restored(self._structures.get(compiled.serial()), result) if self._structures else result

    def _prepare(self, arguments):
        """The compiled kernel for these arguments, and whether to step through it."""
        traces = _traces()
        if self._eager and not traces:
            raise ArgumentError(
                "eager=True: Python has to execute the kernel, but NKI_COMPILER_FRONTEND chooses the parser; unset it, or set it to tracer"
            )
        if self._eager is False or not traces:
            return self._compile(arguments), False
        stepping = self._eager or _debug.attached() or self._breaks()
        compiled = self._compile_with(arguments, True, known=True)
        if compiled is None:
            compiled, failed = self._specialise(arguments, stepping)
            if failed:
                return compiled, True
        stepping = stepping or compiled.serial() in self._breaking
        reason = compiled.unsteppable() if stepping else None
        if reason is not None and self._eager:
            raise ArgumentError(f"eager=True: {self.__name__} cannot be stepped through: {reason}")
        if stepping and reason is None and not self.as_written and compiled.rewritten():
            # When stepping, each instruction that Python calls has to be in the program.
            compiled = self._compile_with(arguments, True, as_written=True)
        return compiled, stepping and reason is None

    def _breaks(self):
        """`_debug.breaks` of the function. Whether code names `breakpoint` is cached per code
        object."""
        code = self.func.__code__
        known = self._named
        if known[0] is not code:
            known = self._named = code, _debug.names_breakpoint(code)
        return known[1] and _debug.breakpoints_are_on()

    def _specialise(self, arguments, stepping):
        """Compiles the kernel, and records whether it calls `breakpoint()`. If it fails but can be
        stepped through, the program ends at the error, and the second result is True."""
        breaks = _debug.Breaks()
        try:
            with breaks, _debug.hidden() if stepping else contextlib.nullcontext():
                compiled = self._compile(arguments)
        except KernelError:
            if not (stepping or breaks.hit):
                raise
            # It can be stepped through up to its error.
            with breaks, _debug.hidden():
                return self._compile_with(arguments, True, up_to_error=True), True
        if breaks.hit:
            self._breaking.add(compiled.serial())
        return compiled, False

    def _step(self, compiled, arguments, ranks=None, rank=0):
        """Calls the kernel again, instruction by instruction, alongside a run of all ranks; returns
        the program that this records."""
        stepped, departed = compiled.step(self.func, arguments, ranks or [compiled], rank)
        if departed is not None:
            warnings.warn(
                f"{departed}: {self.__name__} called a different instruction than when it was specialised, so values were not known from there on; "
                f"the result is that of the instructions called now",
                KernelWarning,
                stacklevel=5,
            )
        return stepped

    def _launch(self):
        """Additional compiler arguments. A subclass adds a launch grid."""
        return {"as_written": self.as_written}

    def _fields_of_job(self):
        """Fields of a job in which a subclass has a launch grid and flags."""
        return {}

    def _run(self, args, kwargs, timed):
        return self._run_bound(self.bind(*args, **kwargs), timed)

    def _run_bound(self, arguments, timed, prepared=None):
        """Runs the kernel; `prepared` is the result of `_prepare`, if it has been called."""
        try:
            compiled, stepping = prepared or self._prepare(arguments)
            prepared = compiled
            if compiled.valueless() and _traced(compiled):
                return self._stage(compiled, timed), None
            if "torch_xla" in sys.modules:
                _record_xla(self, compiled)
            _neff.save_artifact(self, compiled)
            if stepping:
                compiled = self._step(compiled, arguments)
            written = _arrays.torch_tensors(compiled)
            outcome = compiled.run(timed, self._wanted)
            _arrays.note_written(written)
        except Exception as error:
            _explain(error, arguments)
            raise
        show(compiled.prints())
        show(outcome.prints)
        kind = _arrays.kind_of([value for _, value in arguments])
        return self._restored(prepared, _shape(outcome.result, kind)), outcome

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        if _native.is_tracing():
            # Inside a kernel, this kernel's instructions become part of the caller.
            _native.check_nested(self.compile_config)
            return self.func(*self._fixed[0], *args, **{**self._fixed[1], **kwargs})
        graphs = sys.modules.get("nki_sim._torch")
        try:
            result, outcome = self._run(args, kwargs, False) if graphs is None else graphs.run(self, args, kwargs)
        except Exception as error:
            leave_out_ours(error)
            raise
        self._warn(findings_of(outcome))
        return result

    def _warn(self, findings):
        if findings is not None:
            warnings.warn(findings, KernelWarning, stacklevel=_dependencies.depth())

    def _stage(self, compiled, timed):
        """Adds the kernel to the graph that jax is tracing."""
        from . import _jax

        if timed:
            raise ArgumentTypeError(f"{self.__name__}: a kernel that jax traces does not run, so there is no time; profile it outside of jax.jit")
        results, operands = _jax.stage(self, compiled)
        show(compiled.prints())
        findings = compiled.warnings()[0]
        if findings:
            warnings.warn(findings.rstrip(), KernelWarning, stacklevel=4)
        shaped = _shaped(compiled.returned(), lambda _how, index, same: results[index] if same is None else operands[same])
        return self._restored(compiled, shaped)

    def __repr__(self):
        lnc = f"[{self.lnc}]" if self.lnc != 1 else ""
        return f"<kernel {self.__qualname__}{lnc}>"

    #: What a caller or a decorator requested.
    _REQUESTED = (
        *("_lnc", "target", "strict", "capacity", "compile_config", "specialization_config", "as_written"),
        *("_schedule", "_settings", "_fixed", "_given", "_eager"),
    )

    def __reduce__(self):
        # Pickle by global name, like a function, together with the requested options.
        changes = {name: getattr(self, name) for name in self._REQUESTED}
        return _find, (self.func.__module__, self.func.__qualname__, changes)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        # Like a function, a kernel is one object.
        return self


def _signature_of(func):
    """The signature of a function: of a wrapper that takes anything, that of the wrapped function."""
    own = inspect.signature(func, follow_wrapped=False)
    takes_all = all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own.parameters.values())
    return inspect.signature(func) if takes_all else own


def _positions(signature):
    """The names of the parameters if all can be given by position, and how many are required;
    otherwise no names, and a number that no call reaches."""
    parameters = signature.parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return (), 1
    return tuple(signature.parameters), sum(p.default is p.empty for p in parameters)


def _traces():
    """Whether Python executes kernels, rather than the evaluator: NKI_COMPILER_FRONTEND decides."""
    (name,) = _native.variables("NKI_COMPILER_FRONTEND")
    name = (name or "tracer").strip().lower()
    try:
        return _FRONTENDS[name or "tracer"]
    except KeyError:
        raise ValueError(f"NKI_COMPILER_FRONTEND={name!r} is not a frontend; the frontends are {', '.join(_FRONTENDS)}") from None


#: The first line of a `while` loop.
_WHILE = re.compile(r"\s*while\b")


#: Values of NKI_COMPILER_FRONTEND. The old frontend is called `custom` or `parser`.
_FRONTENDS = {"tracer": True, "parser": False, "custom": False}


def _record_xla(kernel, compiled):
    from . import _xla

    if _xla.wanted():
        _xla.record(kernel, compiled)


def _find(module, qualname, changes):
    __import__(module)
    found = sys.modules[module]
    for part in qualname.split("."):
        found = getattr(found, part)
    return (found if isinstance(found, Kernel) else Kernel(found))._with(**changes)


# If a kernel cannot be in a graph of torch's compiler, the graph breaks (see `_watch`).
Kernel.__call__._torchdynamo_disable = True


def _explain(error, arguments):
    """Adds a note that a list of numbers is not a tensor, if this may be the cause of the error."""
    if not hasattr(error, "diagnostics"):
        return
    for name, value in arguments:
        flat = value
        for _ in range(32):
            if not (isinstance(flat, (list, tuple)) and flat and isinstance(flat[0], (list, tuple))):
                break
            flat = flat[0]
        if isinstance(value, list) and flat and all(isinstance(x, (int, float)) for x in flat):
            text = f"{error.args[0]}\n\nargument `{name}` is a list of numbers, not a tensor; pass np.asarray({name}, dtype=np.float32)"
            error.args = (text,)
            return


def _shape(result, kind):
    """The return value of a kernel, with arrays of this type."""
    if result is not None and result[0] == "array":
        return _arrays.make(*result[1], kind)
    return _shaped(result, lambda how, what: _arrays.make(*what, kind) if how == "array" else what)


def _shaped(result, leaf):
    if result is None:
        return None
    how, what = result[:2]
    if how == "dict":
        return {key: _shaped(value, leaf) for key, value in what.items()}
    if how in ("tuple", "list"):
        items = (_shaped(item, leaf) for item in what)
        return tuple(items) if how == "tuple" else list(items)
    return leaf(*result)


def _traced(compiled):
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(x, jax.core.Tracer) for x in compiled.operands())


@overload
def jit(func: Kernel[P, R], **options: Any) -> Kernel[P, R]: ...
@overload
def jit(func: Callable[P, R], **options: Any) -> Kernel[P, R]: ...
@overload
def jit(func: None = None, **options: Any) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def jit(func=None, *, mode=None, platform_target=None, target=None, strict=False, compile_config=None, specialization_config=None, **options):
    """Makes a function a kernel: `@nki.jit`, or `@nki.jit(...)`.

    :param platform_target: trn1, trn2 or trn3 (or another name of `--target`). By default the environment
        decides (NEURON_PLATFORM_TARGET_OVERRIDE, NKI_NC_VERSION), else trn2.
    :param mode: accepted for older code. Kernels are always simulated.
    :param strict: also report constructs that the official compiler rejects.
    :param compile_config: a `nki.compiler.CompileConfig`. A kernel that is called in another one must
        have the same, or none.
    :param specialization_config: a `nki.compiler.SpecializationConfig`.
    :param options: other options of the official compiler; they have no effect. `grid=` is warned of: a
        call gives the grid, `kernel[2](x)`; and so is a name that no option has.
    """
    _options.warn_of_unknown("nki.jit", options)
    if "grid" in options:
        warnings.warn("nki.jit: `grid=` has no effect; give the grid in the call: kernel[2](x) runs two cores", stacklevel=2)
    given = {"target": target or platform_target, "strict": strict, "compile_config": compile_config, "specialization_config": specialization_config}
    if func is None:
        return lambda f: _made(f, given)
    return _made(func, given)


def _made(func, given):
    """The kernel of a function or of another kernel. A kernel of `neuronxcc.nki` keeps its class,
    its grid and its mode."""
    if isinstance(func, Kernel) and type(func) is not Kernel:
        return type(func)(func, target=given["target"])._with(strict=func.strict or given["strict"])
    return Kernel(func, **given)


@overload
def simulate(kernel: Kernel[P, R], **options: Any) -> Kernel[P, R]: ...
@overload
def simulate(kernel: Callable[P, R], **options: Any) -> Kernel[P, R]: ...
def simulate(kernel, *, capacity=None, settings=None, deny=None, warn=None, allow=None, eager=None, as_written=None):
    """The kernel as a function of NumPy, torch or jax arrays. Every kernel is simulated, so this is
    the kernel itself.

    :param capacity: "warn" runs a kernel that exceeds SBUF or PSUM, and warns; its latency is then
        not valid. "error" rejects it. By default `nki_sim.configure` or NKI_SIM_CAPACITY decides,
        else "error".
    :param settings: timing parameters by name, as in `--set`: {"kernel.measure": "device"}. They
        add to those that the kernel has.
    :param deny: findings that raise: slugs, classes (`bug`, `suspicious`, `strict`) or `warnings`,
        as a comma-separated string or a list.
    :param warn: findings that are warnings.
    :param allow: findings that are dropped.
    :param eager: whether each instruction is executed as the kernel calls it, so that a debugger shows
        values: `repr(tensor)`, `tensor.value`. By default if a debugger is attached or the kernel calls
        `breakpoint()`. The result is the same.
    :param as_written: True keeps what the compiler would change: loads that it drops, values of a tile that it
        places apart, and in kernels for `neuronxcc.nki` copies and spills. The result is the same, the latency is not.
    """
    for name, value in (("eager", eager), ("as_written", as_written)):
        if value is not None and not isinstance(value, bool):
            raise ArgumentTypeError(f"{name}={value!r} is neither True nor False")
    kernel = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    given = _levels.lists("{}= of nki.simulate", deny, warn, allow)
    changes = {name: value for name, value in (("capacity", capacity), ("_given", given), ("_eager", eager), ("as_written", as_written)) if value is not None}
    if settings:
        if not isinstance(settings, Mapping):
            raise ArgumentTypeError(f"settings={settings!r}: a dict of timing parameters by name, such as {{'kernel.measure': 'device'}}")
        new = {**dict(kernel._settings), **{str(name): str(value) for name, value in settings.items()}}
        changes["_settings"] = tuple(sorted(new.items()))
    return kernel._with(**changes) if changes else kernel


@overload
def cpu_simulate(kernel: Kernel[P, R]) -> Kernel[P, R]: ...
@overload
def cpu_simulate(kernel: Callable[P, R]) -> Kernel[P, R]: ...
def cpu_simulate(kernel):
    """Like `simulate`; the number of cores follows: `cpu_simulate(kernel)[lnc](**inputs)`."""
    return simulate(kernel)


class Traced:
    """The result of `trace`: a kernel that can be compiled."""

    def __init__(self, kernel):
        self.kernel = kernel

    def specialize(self, *args, **kwargs):
        """Compiles the kernel for these arguments, so that its asserts run. Raises `KernelError` if
        the kernel has an error; see `Kernel.compile`."""
        return self.kernel.compile(*args, **kwargs)

    def __repr__(self):
        return f"<trace of {self.kernel!r}>"


def trace(kernel, grid=None, platform_target=None, **options) -> Traced:
    """The kernel for compilation without a run: `nki.trace(kernel, grid=2,
    platform_target="trn2").specialize(x)`.

    :param grid: physical cores, as for `kernel[grid]`. A larger grid, as in older code, compiles
        for one core, with a warning.
    :param platform_target: as for `jit`, like the other options.
    """
    _options.warn_of_unknown("nki.trace", options)
    made = simulate(kernel)
    programs = grid_programs(grid)
    if programs > 2:
        warn_of_grid(made.__name__, grid)
    lnc = made._lnc if grid is None else 2 if programs == 2 else 1
    return Traced(made._with(_lnc=lnc, target=platform_target or made.target))


def grid_programs(grid):
    """The number of programs of a grid: a number, a tuple of numbers, or None."""
    extents = tuple(grid) if isinstance(grid, (tuple, list)) else () if grid is None else (grid,)
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in extents):
        raise ArgumentTypeError(f"grid={grid!r}: a grid is a number of programs, or a tuple of them")
    return math.prod(extents)


def warn_of_grid(name, grid, level=3):
    """Warns of a grid that is larger than a logical core."""
    warnings.warn(
        f"{name} has grid {grid!r}: a logical core runs 1 or 2 programs, so it is compiled for one core, where nl.num_programs() is 1 and "
        f"nl.program_id() is 0; write the other programs as a loop of the kernel",
        KernelWarning,
        stacklevel=level,
    )


def from_source(text, name=None, globals=None) -> Kernel[..., Any]:
    """A kernel from source text: the function `name`, evaluated with these globals. By default it is
    the last decorated function that the text defines, or the last function if none is decorated."""
    filename = f"<nki-sim text {abs(hash(text)):x}>"
    scope = {"__name__": "__nki_text__", **(globals or {})}
    _source.remember(filename, text)
    exec(compile(text, filename, "exec"), scope)
    if name is None:
        # Kernels that the text imports, or receives in `globals`, are not its own.
        functions = [v for v in scope.values() if isinstance(v, (Kernel, types.FunctionType))]
        own = [v for v in functions if getattr(inspect.unwrap(v), "__globals__", None) is scope]
        if not own:
            raise ArgumentTypeError("the text defines no function")
        return simulate(([v for v in own if isinstance(v, Kernel)] or own)[-1])
    if name not in scope:
        raise ArgumentTypeError(f"the text defines no `{name}`")
    return simulate(scope[name])
