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

    def __init__(self, kernel, compiled, options, output_names=None, seconds=0.0):
        self._kernel, self._compiled, self._options = kernel, compiled, options
        self.function_name = kernel.__name__
        self.argument_names = compiled.inputs()
        #: The arrays of the compilation, by name.
        self._arrays = {name: np.asarray(value) for name, value in zip(self.argument_names, compiled.operands())}
        self.input_specs = [TensorSpec(name, array.shape, array.dtype) for name, array in self._arrays.items()]
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
    :param frontend: without effect, as are `enable_cache` and `trace_cache`: all frontends build the same program.
    :raises nki_sim.KernelError: if the kernel has an error.
    """
    options = compile_opts if compile_opts is not None else CompileOptions()
    given = {name.removesuffix(".must_alias_input"): _value(value) for name, value in (inputs or {}).items()}
    made = kernel_func._kernel() if isinstance(kernel_func, CompileKernel) else kernel_func
    made = simulate(made, settings={"kernel.measure": "device", **options._settings()})
    made = (made if made._lnc is not None else made[options.lnc])._with(target=str(getattr(options.target, "value", options.target)))
    begin = time.perf_counter()
    compiled = made.compile(**given)
    return NirResult(made, compiled, options, output_names, time.perf_counter() - begin)


compile_kernel_to_nir = compile_to_bir


def _value(value):
    """An argument that a run may write to."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if hasattr(value, "clone"):  # torch
        return value.clone()
    described = hasattr(value, "shape") and hasattr(value, "dtype")
    if described and getattr(value, "storage", value) is None:
        return np.zeros(tuple(value.shape), _arrays.numpy_dtype(getattr(value.dtype, "name", str(value.dtype))))
    return value


def compile_bir_to_neff(compile_opts, bir, input_arrays=(), argument_names=None, output_arg_names=None, input_output_aliases=None):
    """Writes a compiled kernel to the file of the options.

    :param output_arg_names: names for the results.
    :param input_output_aliases: without effect: the program knows which inputs it writes.
    """
    begin = time.perf_counter()
    path, names = compile_opts._neff(), list(output_arg_names) if output_arg_names is not None else bir.output_names
    if len(names) != len(bir.output_names):
        raise ValueError(f"{bir.function_name} returns {len(bir.output_names)} tensors, {len(names)} names given")
    for folder in {compile_opts._folder(), os.path.dirname(os.path.abspath(path))}:
        os.makedirs(folder, exist_ok=True)
    _neff.write_program(path, bir._kernel, bir._compiled, output_names=names, settings=compile_opts._settings())
    _neff.write_json(os.path.join(compile_opts._folder(), "info.json"), {"lnc": bir._kernel.lnc, "target": compile_opts.target, "name": bir.function_name})
    compiled = CompiledKernel(path, compile_opts.target, bir._kernel.lnc, compile_opts._folder(), bir)
    if compile_opts.enable_simulation:
        given = dict(zip(argument_names if argument_names is not None else bir.argument_names, input_arrays))
        arrays = {name: np.array(given.get(name, array)) for name, array in bir._arrays.items()}
        compiled.birsim_outputs = list(compiled.run(**arrays).outputs.values())
    compiled.mlir_time, compiled.neuronx_cc_time = bir.mlir_time, time.perf_counter() - begin
    return compiled


def _compile_bir_to_neff(bir, compile_opts, inputs=None):
    """As `compile_bir_to_neff`, with the inputs by name."""
    arrays = {name: value for name, value in (inputs or {}).items() if isinstance(value, np.ndarray)}
    return compile_bir_to_neff(compile_opts, bir, list(arrays.values()), list(arrays))


class RunResult:
    """The results of a run by name, and its times in seconds; None if it was not timed."""

    outputs: dict[str, Any]

    def __init__(self, outputs, times=None, summary=None):
        self.outputs, self.benchmark_warmup = outputs, times.warmup_iterations if times else 0
        of = lambda milliseconds: None if times is None else getattr(times, milliseconds) / 1e3
        self.latency, self.latency_std = of("mean_ms"), of("std_dev_ms")
        self.latency_min, self.latency_max = of("min_ms"), of("max_ms")
        fractions = _neff.summary_of(summary or {})
        self.mbu, self.hfu = fractions.get("mbu_estimated_percent"), fractions.get("hfu_estimated_percent")


class CompiledKernel:
    """A compiled kernel in a file, which can be run and timed."""

    def __init__(self, neff_path, target=None, lnc=1, artifacts_dir=None, bir=None):
        self.neff_path = self.output_path = os.fspath(neff_path)
        self.target, self.lnc, self.artifacts_dir, self.bir = target, lnc, artifacts_dir, bir
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
        infos = self._ensure_loaded().input_tensors_info
        try:
            return {name: np.ascontiguousarray(_leaf(inputs, name)) for name in infos}
        except _Missing as error:
            raise ArgumentError(f"there is no array for the input `{error}`; the program has {', '.join(infos) or 'none'}") from None

    def prepare_outputs(self):
        """New arrays for the results, by name."""
        return {name: np.zeros(info.shape, info.dtype) for name, info in self._ensure_loaded().output_tensors_info.items()}

    def _ensure_loaded(self, rank_id=0, world_size=1):
        model = self._model
        if model is None or model._runtime.closed:
            model = self._model = _nrtpy.NrtpyModel.load_from_neff(self.neff_path, core_id=rank_id, cc_enabled=world_size > 1, rank_id=rank_id, world_size=world_size)
        return model

    @contextlib.contextmanager
    def _loaded(self, arrays, rank_id, world_size):
        """The program and tensors of the inputs. Afterwards the arrays have what the program wrote to them."""
        model = self._ensure_loaded(rank_id, world_size)
        known = {part for name in model.input_tensors_info for part in (name, name.split(".")[0])}
        for name, value in arrays.items():
            if name not in known and hasattr(value, "shape"):
                raise ArgumentError(f"the program has no input `{name}`; it has {', '.join(model.input_tensors_info) or 'none'}")
        tensors = {name: _nrtpy.NrtpyTensor.from_numpy(array, name) for name, array in self.prepare_inputs(arrays).items()}
        written = {name: _leaf(arrays, name) for name in model._written}
        for name, array in written.items():
            if not array.flags.writeable:
                raise ArgumentError(f"the kernel writes to `{name}`, and its array cannot be written")
        yield model, tensors
        for name, array in written.items():
            array[...] = tensors[name].numpy()

    def execute(self, inputs, outputs, rank_id=0, world_size=1):
        """Runs the program, and writes its results to the arrays of `outputs`."""
        with self._loaded(inputs, rank_id, world_size) as (model, tensors):
            results = model(tensors)
        for name, array in outputs.items():
            array[...] = results[name].numpy()

    def run(self, profile=False, rank_id=0, world_size=1, **arrays):
        """One run.

        :param profile: whether to time it, too.
        """
        if profile:
            return self.benchmark(rank_id=rank_id, world_size=world_size, **arrays)
        with self._loaded(arrays, rank_id, world_size) as (model, tensors):
            results = model(tensors)
        return RunResult(_numpy(results))

    def benchmark(self, warmup=5, iterations=10, rank_id=0, world_size=1, **arrays):
        """Runs and times the program. The simulator predicts one time, so all iterations are equal."""
        from nrtpy import spike_model

        if iterations < 1:
            raise ValueError(f"iterations={iterations}: at least 1")
        with self._loaded(arrays, rank_id, world_size) as (model, tensors), _nrtpy.SystemTraceSession() as trace:
            report, outcome = model._timed(tensors, iterations)
        # Harnesses replace this function to see the events.
        milliseconds = spike_model._parse_trace_durations(trace.fetch_events_json())
        return RunResult(_numpy(model._deliver(outcome, None)), _nrtpy.BenchmarkResult(milliseconds, warmup), report["summary"])

    def __repr__(self):
        return f"<compiled kernel {self.neff_path}>"


def _numpy(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


class _Missing(Exception):
    """There is no argument for an input."""


def _leaf(inputs, name):
    """The array of an input; `pair.0` and `config.scale` are parts of an argument."""
    found, path = inputs, [name] if name in inputs else name.split(".")
    for part in path:
        try:
            found = found[part] if isinstance(found, dict) else found[int(part)] if isinstance(found, (list, tuple)) and part.isdigit() else getattr(found, part)
        except (KeyError, IndexError, AttributeError):
            raise _Missing(name) from None
    return np.asarray(found)


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
    for name in compiled._ensure_loaded()._written:
        # A copy if the argument is not contiguous.
        _leaf(inputs, name)[...] = arrays[name]
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
        from nki.compiler.frontend import resolve_frontend_cls

        kernel = self.func if isinstance(self.func, Kernel) else self._source if isinstance(self._source, Kernel) else Kernel(self.func)
        for name, value in (("_source", kernel), ("func", kernel.func), ("lnc", self.lnc or kernel.lnc), ("_frontend_cls", self._frontend_cls or resolve_frontend_cls())):
            object.__setattr__(self, name, value)

    def __getitem__(self, grid):
        return dataclasses.replace(self, lnc=self._source[grid].lnc)

    @property
    def __name__(self):
        return self._source.__name__

    def _kernel(self):
        return self._source._with(_lnc=self.lnc)

    def _to_subclass(self, cls, **changes):
        """The kernel as one of another class, with other fields."""
        known = {field.name: getattr(self, field.name) for field in dataclasses.fields(CompileKernel)}
        return cls(**{**known, **changes})

    def _bind_args(self, args, kwargs):
        return self._source._bind_args(args, kwargs)

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
