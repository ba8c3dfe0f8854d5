"""Kernels that are compiled to a file, run and timed step by step: `nki.framework.compiled`,
`nki.compiler.ncc_driver` and `nki.compiler.driver`.

The SDK does not document these modules. Names, parameters and units are those with which public
harnesses for NKI 0.6 use them.
"""

import base64
import contextlib
import dataclasses
import functools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _arrays, _native, _neff, _nrtpy
from ._errors import ArgumentError, KernelWarning, leave_out_ours
from ._kernel import Kernel, _shaped, findings_of, simulate
from ._profile import Report


def _program():
    return shutil.which("nki-sim") or sys.executable


@dataclasses.dataclass(frozen=True)
class CompileOptions:
    """Options of the compiler. Those that only the compiler of the device has are kept and have no effect."""

    target: str = dataclasses.field(default_factory=lambda: _native.target())
    #: Physical cores.
    lnc: int = 1
    artifacts_dir: str | None = None
    #: The file of the program; by default `kernel.neff` in `artifacts_dir`.
    output_path: str | None = None
    #: Whether `birsim_outputs` of a compiled kernel has its results.
    enable_simulation: bool = False
    emit_predicted_latency: bool = False
    enable_statistics: bool = False
    enable_device_dump: bool = False
    verbose: bool = False
    debug: bool = False
    lower_dma_transpose: bool = False
    neuronx_cc_path: str = dataclasses.field(default_factory=_program)
    neuronx_cc_args: tuple = ()
    neuronx_cc_backend_opts: tuple = ()
    kernel_json_filename: str = "kernel.json"
    mode: Any = None
    pipeline_options: tuple = ()
    #: Whether the compiler orders the instructions of an engine anew. `@nki.jit` of NKI 0.6 does not ask for it.
    backend_optimizations: bool = True

    def disable_backend_optimizations(self):
        """The options of `@nki.jit`: the vector, scalar and GpSimd engines keep the order of the source."""
        return dataclasses.replace(self, backend_optimizations=False)

    def set_pipeline_options(self, *options):
        """The options with these passes, such as `enable-instruction-scheduling=false`."""
        off = "enable-instruction-scheduling=false" in options
        return dataclasses.replace(self, pipeline_options=(*self.pipeline_options, *options), backend_optimizations=self.backend_optimizations and not off)

    def _settings(self):
        return {} if self.backend_optimizations else {"compiler.compute_window": "1"}

    def _folder(self):
        if self.artifacts_dir is None and self.output_path is None:
            raise ArgumentError("CompileOptions: give artifacts_dir= or output_path=, the place of the compiled program")
        return os.fspath(self.artifacts_dir if self.artifacts_dir is not None else os.path.dirname(os.path.abspath(self.output_path)))

    def _neff(self):
        return os.fspath(self.output_path) if self.output_path is not None else os.path.join(self._folder(), "kernel.neff")


class CompilationMode:
    """Modes that callers name; kernels are compiled alike in all."""

    STANDALONE, INTEGRATION = "standalone", "integration"


class TensorSpec:
    """An input or output of a compiled kernel."""

    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype

    def __repr__(self):
        return f"TensorSpec({self.name!r}, {self.shape}, {self.dtype})"


class NirResult:
    """A kernel compiled for given inputs, and its predicted time. The time is computed when it is first read."""

    def __init__(self, kernel, compiled, inputs, options, output_names=None, seconds=0.0):
        self._kernel, self._compiled, self._options = kernel, compiled, options
        given = dict(inputs)
        self.function_name = kernel.__name__
        self.argument_names = compiled.inputs()
        shapes = {name: np.asarray(given[name]) for name in self.argument_names if name in given}
        self.input_specs = [TensorSpec(name, shapes[name].shape, shapes[name].dtype) for name in self.argument_names if name in shapes]
        results = compiled.outputs()
        names = [f"output_{i}" for i in range(len(results))] if output_names is None else list(output_names)
        if len(names) != len(results):
            raise ValueError(f"{kernel.__name__} returns {len(results)} tensors, {len(names)} names given")
        self.output_names = names
        self.output_specs = [TensorSpec(name, shape, _arrays.numpy_dtype(dtype)) for name, (_, shape, dtype) in zip(names, results)]
        self.descriptor = types.SimpleNamespace(name=self.function_name, input_specs=self.input_specs, output_specs=self.output_specs)
        self.has_collectives = compiled.has_collectives()
        #: Seconds of the compilation.
        self.mlir_time = seconds

    @property
    def text(self):
        """The program."""
        return self._compiled.text()

    @property
    def inputs(self):
        """The names of the inputs."""
        return self.argument_names

    @property
    def outputs(self):
        """Name, shape and dtype of the results."""
        return self._compiled.outputs()

    @property
    def is_tuple_return(self):
        returned = self._compiled.returned()
        return returned is not None and returned[0] == "tuple"

    @functools.cached_property
    def _outcome(self):
        """One run on the inputs of the compilation, which are not written to."""
        try:
            outcome = self._compiled.run(True)
        except Exception as error:
            leave_out_ours(error)
            raise
        if (found := findings_of(outcome)) is not None:
            warnings.warn(found, KernelWarning, stacklevel=4)
        return outcome

    @functools.cached_property
    def _report(self):
        return Report(self._outcome)

    @property
    def total_time_ns(self):
        """The predicted time of the device in nanoseconds."""
        return self._report.latency_us * 1e3

    @property
    def estimated_utilization(self):
        """By engine: the share of the time for which it is busy, in percent."""
        return {name: engine["active_percent"] for name, engine in self._report.engines.items()}

    @property
    def mac_count(self):
        """Multiplications and additions of the tensor engine."""
        return round(self._report["summary"].get("hardware_flops", 0) / 2)

    @property
    def hbm_bytes(self):
        """Bytes read from and written to HBM."""
        traffic = self._report["traffic"]
        return traffic["hbm_read_bytes"] + traffic["hbm_write_bytes"]

    def build_config(self):
        """What an integration into a framework reads."""
        written = self._compiled.written()
        aliases = {self.argument_names.index(name): i for i, (name, *_) in enumerate(self._compiled.outputs()) if name in written}
        config = {"function": self.function_name, "target": self._options.target, "lnc": self._kernel.lnc, "inputs": self.argument_names, "outputs": self.output_names}
        return types.SimpleNamespace(
            backend_config=config,
            backend_config_b64=base64.b64encode(json.dumps(config).encode()),
            output_specs=tuple(self.output_specs),
            operand_output_aliases=aliases,
            has_collectives=self.has_collectives,
        )

    def _returned(self, outputs):
        """The return value of the kernel, from its results by name."""
        return _shaped(self._compiled.returned(), lambda _how, index, _same: outputs[self.output_names[index]])


@contextlib.contextmanager
def nki_ir_context():
    """The context in which a frontend compiles. There is nothing to set up."""
    yield _Context()


class _Context:
    pass


def compile_to_bir(kernel_func, *, frontend=None, inputs=None, compile_opts=None, output_names=None, enable_cache=True, trace_cache=None):
    """Compiles a kernel for inputs, a dict by parameter: arrays, numbers, or objects with `shape`
    and `dtype`, which stand for zeros.

    :param kernel_func: a kernel or a Python function.
    :raises nki_sim.KernelError: if the kernel has an error.
    """
    options = compile_opts if compile_opts is not None else CompileOptions()
    given = {name.removesuffix(".must_alias_input"): _value(value) for name, value in (inputs or {}).items()}
    made = kernel_func._kernel() if isinstance(kernel_func, CompileKernel) else kernel_func
    made = simulate(made, settings={"kernel.measure": "device", **options._settings()})
    made = made._with(_lnc=made._lnc if made._lnc is not None else options.lnc, target=str(getattr(options.target, "value", options.target)))
    begin = time.perf_counter()
    compiled = made.compile(**given)
    return NirResult(made, compiled, given, options, output_names, time.perf_counter() - begin)


def compile_kernel_to_nir(kernel_func, *, inputs=None, compile_opts=None, frontend=None, enable_cache=True, trace_cache=None):
    """As `compile_to_bir`."""
    return compile_to_bir(kernel_func, inputs=inputs, compile_opts=compile_opts)


def _value(value):
    """An argument that a run may write to."""
    if isinstance(value, np.ndarray):
        return value.copy()
    described = hasattr(value, "shape") and hasattr(value, "dtype")
    if described and getattr(value, "storage", value) is None:
        return np.zeros(tuple(value.shape), _arrays.numpy_dtype(getattr(value.dtype, "name", str(value.dtype))))
    return value


def compile_bir_to_neff(compile_opts, bir, input_arrays=(), argument_names=None, output_arg_names=None, **_others):
    """Writes a compiled kernel to the file of the options.

    :param output_arg_names: names for the results.
    """
    begin = time.perf_counter()
    path, names = compile_opts._neff(), list(output_arg_names) if output_arg_names is not None else bir.output_names
    if len(names) != len(bir.output_names):
        raise ValueError(f"{bir.function_name} returns {len(bir.output_names)} tensors, {len(names)} names given")
    program = {
        "format": _neff.NEFF,
        "nki_sim_version": _native.__version__,
        "kernel": bir.function_name,
        **_neff.program_of(bir._compiled),
        "program": bir.text,
        "output_names": names,
        "settings": compile_opts._settings(),
    }
    for folder in {compile_opts._folder(), os.path.dirname(os.path.abspath(path))}:
        os.makedirs(folder, exist_ok=True)
    _neff.write_json(path, program)
    _neff.write_json(os.path.join(compile_opts._folder(), "info.json"), {"lnc": bir._kernel.lnc, "target": compile_opts.target, "name": bir.function_name})
    compiled = CompiledKernel(path, compile_opts.target, bir._kernel.lnc, compile_opts._folder(), bir)
    if compile_opts.enable_simulation:
        given = dict(zip(argument_names if argument_names is not None else bir.argument_names, input_arrays))
        arrays = {spec.name: given.get(spec.name, _given_to(bir, spec.name)) for spec in bir.input_specs}
        compiled.birsim_outputs = list(compiled.run(**arrays).outputs.values())
    compiled.mlir_time, compiled.neuronx_cc_time = bir.mlir_time, time.perf_counter() - begin
    return compiled


def _given_to(bir, name):
    return next(np.asarray(value) for given, value in zip(bir._compiled.inputs(), bir._compiled.operands()) if given == name)


def _compile_bir_to_neff(bir, compile_opts, inputs=None):
    """As `compile_bir_to_neff`, with the inputs by name."""
    arrays = {name: value for name, value in (inputs or {}).items() if isinstance(value, np.ndarray)}
    return compile_bir_to_neff(compile_opts, bir, list(arrays.values()), list(arrays))


class RunResult:
    """The results of a run by name, and its times in seconds; None if it was not timed."""

    outputs: dict[str, Any]

    def __init__(self, outputs, seconds=None, warmup=0, summary=None):
        self.outputs, self.benchmark_warmup = outputs, warmup
        self.latency = statistics.fmean(seconds) if seconds else None
        self.latency_min, self.latency_max = (min(seconds), max(seconds)) if seconds else (None, None)
        self.latency_std = statistics.pstdev(seconds) if seconds else None
        percent = summary or {}
        self.mbu, self.hfu = (percent[name] / 100 if name in percent else None for name in ("mbu_estimated_percent", "hfu_estimated_percent"))


class CompiledKernel:
    """A compiled kernel in a file, which can be run and timed."""

    #: Bytes of HBM that a core can move in a second, by target.
    _PEAK_HBM_BW = {"trn1": 410e9, "trn2": 1450e9, "trn3": 2450e9}

    def __init__(self, neff_path, target=None, lnc=1, artifacts_dir=None, bir=None, **metadata):
        self.neff_path = self.output_path = os.fspath(neff_path)
        self.target, self.lnc, self.artifacts_dir, self.bir = target, lnc, artifacts_dir, bir
        self.metadata = metadata
        #: The results on the inputs of the compilation, with `enable_simulation`.
        self.birsim_outputs = None
        self.neuronx_cc_error = ""
        #: Seconds.
        self.mlir_time = self.neuronx_cc_time = 0.0
        self._model = None

    @classmethod
    def from_frontend(cls, result, compile_opts, frontend_time=0.0):
        """The compiled kernel of what a frontend compiled."""
        compiled = compile_bir_to_neff(compile_opts, result)
        compiled.mlir_time = frontend_time
        return compiled

    @property
    def compilation_time(self):
        return self.mlir_time + self.neuronx_cc_time

    @property
    def total_time_ns(self):
        """The predicted time in nanoseconds; None if only the file is known."""
        return None if self.bir is None else self.bir.total_time_ns

    @property
    def estimated_utilization(self):
        return None if self.bir is None else self.bir.estimated_utilization

    @property
    def input_specs(self):
        return [TensorSpec(name, info.shape, info.dtype) for name, info in self._ensure_loaded().input_tensors_info.items()]

    @property
    def output_specs(self):
        return [TensorSpec(name, info.shape, info.dtype) for name, info in self._ensure_loaded().output_tensors_info.items()]

    def prepare_inputs(self, inputs):
        """The arrays that the program reads, by name; numbers are part of the program."""
        infos, arrays = self._ensure_loaded().input_tensors_info, {}
        for name, info in infos.items():
            if name not in inputs:
                raise ArgumentError(f"there is no array for the input `{name}`; the program has {', '.join(infos) or 'none'}")
            arrays[name] = np.ascontiguousarray(np.asarray(inputs[name]))
        return arrays

    def prepare_outputs(self):
        """New arrays for the results, by name."""
        return {name: np.zeros(info.shape, info.dtype) for name, info in self._ensure_loaded().output_tensors_info.items()}

    def _ensure_loaded(self, rank_id=0, world_size=1):
        model = self._model
        if model is None or model._runtime.closed:
            model = self._model = _nrtpy.NrtpyModel.load_from_neff(self.neff_path, core_id=rank_id, cc_enabled=world_size > 1, rank_id=rank_id, world_size=world_size)
        return model

    def _tensors(self, arrays):
        return {name: _nrtpy.NrtpyTensor.from_numpy(array, name) for name, array in self.prepare_inputs(arrays).items()}

    def execute(self, inputs, outputs, rank_id=0, world_size=1):
        """Runs the program, and writes its results to the arrays of `outputs`."""
        results = self._ensure_loaded(rank_id, world_size)(self._tensors(inputs))
        for name, array in outputs.items():
            array[...] = results[name].numpy()

    def run(self, profile=False, rank_id=0, world_size=1, **arrays):
        """One run.

        :param profile: whether to time it, too.
        """
        if profile:
            return self.benchmark(rank_id=rank_id, world_size=world_size, **arrays)
        results = self._ensure_loaded(rank_id, world_size)(self._tensors(arrays))
        return RunResult({name: tensor.numpy() for name, tensor in results.items()})

    def benchmark(self, warmup=5, iterations=10, rank_id=0, world_size=1, **arrays):
        """Runs and times the program. The simulator predicts one time, so all iterations are equal."""
        from nrtpy import spike_model

        if iterations < 1:
            raise ValueError(f"iterations={iterations}: at least 1")
        with _nrtpy.SystemTraceSession() as trace:
            report, results = self._ensure_loaded(rank_id, world_size)._timed(self._tensors(arrays), iterations)
        # Harnesses replace this function to see the events.
        milliseconds = spike_model._parse_trace_durations(trace.fetch_events_json())
        return RunResult({name: tensor.numpy() for name, tensor in results.items()}, [ms / 1e3 for ms in milliseconds], warmup, report["summary"])

    def __repr__(self):
        return f"<compiled kernel {self.neff_path}>"


def extract_perf_metrics(neff_path, ntff_path, verbose=False):
    """The summary of a profile, with times in seconds, as `neuron-profile` reports it; None if there is none."""
    try:
        return _neff.read(ntff_path, _neff.NTFF).get("summary")
    except (OSError, ValueError) as error:
        if verbose:
            print(error, file=sys.stderr)
        return None


def run_from_bir(bir, compile_opts, inputs, executor=None):
    """Writes the program, runs it with `executor(compiled, inputs, outputs)`, and returns the return
    value of the kernel. By default the program is simulated."""
    compiled = _compile_bir_to_neff(bir, compile_opts, inputs)
    return _executed(compiled, inputs, executor)


def _executed(compiled, inputs, executor):
    arrays, outputs = compiled.prepare_inputs(inputs), compiled.prepare_outputs()
    (executor or CompiledKernel.execute)(compiled, arrays, outputs)
    return _build_nki_return_value(compiled, outputs)


def _build_nki_return_value(compiled, outputs):
    """The return value of the kernel from its results by name."""
    if compiled.bir is None:
        values = list(outputs.values())
        return values[0] if len(values) == 1 else tuple(values)
    names = list(compiled._ensure_loaded().output_tensors_info)
    return compiled.bir._returned(dict(zip(compiled.bir.output_names, (outputs[name] for name in names))))


@dataclasses.dataclass(frozen=True)
class CompileKernel:
    """A kernel that is compiled to a file when it is called."""

    func: Callable[..., Any]
    lnc: int | None = None
    target: str | None = None
    #: By default a new folder for each call.
    artifacts_dir: str | None = None
    #: `executor(compiled, inputs, outputs)` fills the arrays of `outputs`. By default the program is simulated.
    _executor: Callable[..., Any] | None = None
    _frontend_cls: type | None = None
    _enable_backend_opt: bool = False
    _enable_simulation: bool = False
    _source: Any = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        kernel = self.func if isinstance(self.func, Kernel) else self._source if isinstance(self._source, Kernel) else Kernel(self.func)
        for name, value in (("_source", kernel), ("func", kernel.func), ("lnc", self.lnc or kernel.lnc), ("_frontend_cls", self._frontend_cls or _frontends().resolve_frontend_cls())):
            object.__setattr__(self, name, value)

    def __getitem__(self, grid):
        return dataclasses.replace(self, lnc=self._source[grid].lnc)

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__doc__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "func"), name)

    def _kernel(self):
        return self._source._with(_lnc=self.lnc)

    def _to_subclass(self, cls, **changes):
        """The kernel as one of another class, with other fields."""
        known = {field.name: getattr(self, field.name) for field in dataclasses.fields(CompileKernel)}
        return cls(**{**known, **changes})

    def _bind_args(self, args, kwargs):
        return dict(self._source.bind(*args, **kwargs))

    def _compile_opts(self):
        folder = self.artifacts_dir if self.artifacts_dir is not None else tempfile.mkdtemp(prefix="nki-sim-")
        options = CompileOptions(
            lnc=self.lnc,
            artifacts_dir=os.fspath(folder),
            output_path=os.path.join(os.fspath(folder), "kernel.neff"),
            enable_simulation=self._enable_simulation,
            **({} if self.target is None and self._source.target is None else {"target": self.target or self._source.target}),
        )
        return options if self._enable_backend_opt else options.disable_backend_optimizations()

    def _cached_compile_to_bir(self, frontend=None, inputs=None, compile_opts=None):
        return compile_to_bir(self, inputs=inputs, compile_opts=compile_opts if compile_opts is not None else self._compile_opts())

    def __call__(self, *args, **kwargs):
        inputs, options = self._bind_args(args, kwargs), self._compile_opts()
        bir = compile_to_bir(self, inputs=inputs, compile_opts=options)
        return _executed(_compile_bir_to_neff(bir, options, inputs), inputs, self._executor)


@dataclasses.dataclass(frozen=True)
class StandaloneKernel(CompileKernel):
    """A kernel that is compiled and run without a framework."""


def _frontends():
    from nki.compiler import frontend

    return frontend
