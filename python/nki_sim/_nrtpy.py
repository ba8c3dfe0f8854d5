"""The package `nrtpy`: runs and times compiled programs (`.neff`) as AWS's package of this name does
on a device.

Programs are files of the simulator: those that kernels leave in the folder of NKI_ARTIFACTS_DIR, those
of `nki.compiler.ncc_driver` (`_compiled`), and those of `neuronxcc.nki`. The names, parameters and errors
are those of the documentation of SDK 2.32.
"""

import itertools
import json
import operator
import os
import pathlib
import statistics
import types
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from . import _levels, _native, _neff
from ._arrays import kind_of, numpy_dtype
from ._errors import ArgumentError, KernelError, KernelWarning
from ._inspect import show
from ._kernel import _shape, findings_of
from ._profile import Report


class NrtpyError(RuntimeError):
    """A wrong use of the package: of a tensor that was freed, of the configuration while the runtime is active."""


class NrtError(RuntimeError):
    """A program or a tensor that the runtime rejects. The message has the name and the number of the status."""

    def __init__(self, status, message):
        super().__init__(f"NRT Error {status}: {message}")


#: Status codes of the runtime (documentation of `nrt_execute`).
_FAILURE, _INVALID, _OUT_OF_BOUNDS = "NRT_FAILURE(1)", "NRT_INVALID(2)", "NRT_EXEC_OOB(1006)"


class _Runtime:
    """The state of the process. Tensors and models belong to the runtime in which they were made."""

    def __init__(self):
        self.active = False
        self.closed = False

    def use(self):
        if self.closed:
            raise NrtpyError("the runtime of this object was closed by nrtpy.reset(); make it again")
        self.active = True

    def free_tensor(self, tensor):
        """Frees the memory of a tensor. It cannot be used afterwards."""
        tensor._array = None


_runtime = _Runtime()


def get_nrtpy_singleton():
    """The runtime of this process."""
    return _runtime


def configure(visible_cores=None):
    """Sets NEURON_RT_VISIBLE_CORES, before the runtime is used; cores are not otherwise told apart here.

    :param visible_cores: numbers of cores; None leaves the variable unchanged.
    """
    if _runtime.active:
        raise NrtpyError("the runtime is active: call nrtpy.reset() before nrtpy.configure()")
    if visible_cores is None:
        return
    if not isinstance(visible_cores, Iterable) or isinstance(visible_cores, (str, bytes)):
        raise TypeError(f"visible_cores takes several numbers, such as [0, 1], not {visible_cores!r}")
    cores = [operator.index(core) for core in visible_cores]
    if any(core < 0 for core in cores):
        raise ValueError(f"visible_cores={cores}: a core has a number from 0")
    os.environ["NEURON_RT_VISIBLE_CORES"] = ",".join(map(str, cores))


def reset():
    """Closes the runtime. Its tensors and models cannot be used afterwards."""
    global _runtime
    _runtime.closed = True
    _runtime = _Runtime()


class SystemTraceSession:
    """The executions of programs while it is open, as events of the runtime: one for each physical core."""

    _open: list["SystemTraceSession"] = []
    _numbers, _executions = itertools.count(), itertools.count()
    _clock_ns = 0

    def __init__(self, core_id=None):
        self._events = []

    def __enter__(self):
        SystemTraceSession._open.append(self)
        return self

    def __exit__(self, *_error):
        SystemTraceSession._open.remove(self)

    @classmethod
    def _note(cls, report, core_id):
        """One execution on the logical core `core_id`, for all open sessions. Each physical core's execution has a tracking number of its own."""
        begin, run = cls._clock_ns, next(cls._executions)
        end = cls._clock_ns = begin + round(report.latency_us * 1e3)
        cores = {core_id * report["lnc"] + core: next(cls._numbers) for core in range(report["lnc"])}
        events = [
            {
                "event_type": "nc_exec_running",
                "phase": phase,
                "tracking_id": number,
                "nc_idx": core_id,
                "timestamp_ns": at,
                "data": {"exec_id": run, "device_core_idx": core, "nc_timestamp_ns": at},
            }
            for core, number in cores.items()
            for phase, at in (("start", begin), ("stop", end))
        ]
        for session in cls._open:
            session._events += events

    def fetch_events_json(self):
        """The events since the last call of `drain_events`, as JSON."""
        return json.dumps({"events": self._events})

    def drain_events(self):
        """Drops the events so far."""
        self._events = []


def parse_trace_durations(events):
    """The milliseconds of each execution on each core in the JSON of `SystemTraceSession`."""
    begun, durations = {}, []
    for event in json.loads(events)["events"]:
        if event["event_type"] == "nc_exec_running":
            number = event["tracking_id"]
            if event["phase"] == "start":
                begun[number] = event["timestamp_ns"]
            else:
                durations.append((event["timestamp_ns"] - begun.pop(number)) / 1e6)
    return durations


class TensorMetadata(NamedTuple):
    """An input or output of a model."""

    shape: list
    #: Bytes.
    size: int
    dtype: np.dtype


class NrtpyTensor:
    """An array in the memory of the device."""

    def __init__(self, tensor_ref, shape, dtype, name=None):
        self._array = np.ascontiguousarray(tensor_ref).view(dtype).reshape((shape,) if isinstance(shape, int) else tuple(shape))
        self._runtime = _runtime
        self.name = name
        _runtime.use()

    @classmethod
    def from_numpy(cls, array, name=None, core_id=0):
        """A tensor with a copy of an array."""
        _core(core_id)
        array = np.array(array, order="C")
        return cls(array, array.shape, array.dtype, name)

    @property
    def shape(self):
        return self._values().shape

    @property
    def dtype(self):
        return self._values().dtype

    def write_from_numpy(self, array):
        """Writes the bytes of an array, of which there are as many as in the tensor."""
        array, own = np.ascontiguousarray(array), self._values()
        if array.nbytes != own.nbytes:
            raise ValueError(f"the array has {array.nbytes} bytes, the tensor {own.nbytes}")
        own[...] = array.reshape(-1).view(own.dtype).reshape(own.shape)

    def numpy(self):
        """A copy as a NumPy array."""
        return self._values().copy()

    def _values(self):
        self._runtime.use()
        if self._array is None:
            raise NrtpyError(f"the tensor {self.name!r} was freed")
        return self._array

    def __repr__(self):
        state = f"{self._array.shape} {self._array.dtype}" if self._array is not None else "freed"
        return f"<NrtpyTensor {self.name or ''} {state}>"


class BenchmarkResult:
    """Times of a model in milliseconds."""

    def __init__(self, durations_ms, warmup_iterations):
        self.durations_ms = list(durations_ms)
        self.warmup_iterations = warmup_iterations

    @property
    def iterations(self):
        return len(self.durations_ms)

    @property
    def mean_ms(self):
        return statistics.fmean(self.durations_ms)

    @property
    def min_ms(self):
        return min(self.durations_ms)

    @property
    def max_ms(self):
        return max(self.durations_ms)

    @property
    def std_dev_ms(self):
        return statistics.pstdev(self.durations_ms)

    def __repr__(self):
        return f"BenchmarkResult(mean_ms={self.mean_ms:.4f}, iterations={self.iterations})"


class NrtpyModel:
    """A compiled program."""

    def __init__(self, path, program, name=None, core_id=0):
        _runtime.use()
        self._runtime = _runtime
        self._path, self._program = os.fsdecode(path), program
        self.name = name if name is not None else pathlib.Path(self._path).stem
        self._loaded = {}
        loaded = self._as("profile")
        self.input_tensors_info = {name: _metadata(shape, dtype) for name, shape, dtype in loaded.inputs()}
        # Results are numbered, as in the files of NKI's compiler, unless it was given names for them.
        outputs = loaded.outputs()
        names = program.get("output_names") or [f"output_{i}" for i in range(len(outputs))]
        self.output_tensors_info = {name: _metadata(shape, dtype) for name, (_, shape, dtype) in zip(names, outputs, strict=True)}
        #: Results that share their memory with an input: none, each has its own here.
        self.alias_info = {}
        self.model_ref = types.SimpleNamespace(core_id=core_id)
        #: Names of the inputs that the program writes.
        self._written = loaded.written()

    @classmethod
    def load_from_neff(cls, neff_path, name=None, core_id=0, cc_enabled=False, rank_id=0, world_size=1):
        """The program of a file.

        :param name: a name for the model, by default that of the file.
        """
        _core(core_id)
        if cc_enabled and world_size > 1:
            raise NrtpyError("collectives of several processes are not simulated: run all ranks in one, with nki_sim.simulate_ranks")
        try:
            program = _neff.read(neff_path, _neff.NEFF)
            if not {"program", "outputs", "older_compiler"} <= program.keys():
                raise ValueError(f"{neff_path}: this file is of another version of the simulator; compile the kernel again")
            return cls(neff_path, program, name, core_id)
        except (OSError, ValueError, TypeError) as error:
            raise NrtError(_FAILURE, f"Failed to load model: {error}") from error

    def __call__(self, inputs, outputs=None, save_trace=False, ntff_name=None):
        """Runs the program once.

        :param inputs: tensors by name.
        :param outputs: tensors for the results, by name; by default they are made and returned.
        :param save_trace: whether to write the profile of the run, to `ntff_name`, by default beside the file of the program.
        """
        targets = self._targets(outputs)
        path = ntff_name if ntff_name is not None else pathlib.Path(self._path).with_suffix(".ntff")
        if save_trace and os.path.exists(path) and os.path.samefile(path, self._path):
            raise ValueError(f"{path}: the profile would overwrite the program")
        traced = bool(SystemTraceSession._open)
        if traced and save_trace:
            # A profile is another measure. The program may write to its inputs.
            copies = {name: NrtpyTensor.from_numpy(tensor.numpy()) for name, tensor in inputs.items()}
            self._timed(copies, 1)
        elif traced:
            return self._deliver(self._timed(inputs, 1)[1], targets)
        compiled, outcome = self._run(inputs, "profile", timed=save_trace)
        if save_trace:
            _neff.write_ntff(path, _neff.profile_of(Report(outcome), outcome, compiled))
        return self._deliver(outcome, targets)

    def allocate_output_tensors(self):
        """New tensors for the results, as a list."""
        infos = self.output_tensors_info
        return [NrtpyTensor(np.zeros(info.shape, info.dtype), info.shape, info.dtype, name) for name, info in infos.items()]

    def _allocate_outputs_with_aliases(self, _inputs):
        return {tensor.name: tensor for tensor in self.allocate_output_tensors()}

    def _timed(self, inputs, iterations):
        """One run, timed as a device benchmark: its report and outcome. Open trace sessions note it as many times."""
        _, outcome = self._run(inputs, "device", timed=True)
        report = Report(outcome)
        for _ in range(iterations if SystemTraceSession._open else 0):
            SystemTraceSession._note(report, self.model_ref.core_id)
        return report, outcome

    def benchmark(self, inputs, outputs=None, warmup_iter=5, benchmark_iter=5, mode="device"):
        """Times the program. The simulator predicts one time, of the device, so all iterations are equal.

        :param mode: "device", or "host", which is also the time of the device: the host is not simulated.
        """
        if mode not in ("device", "host"):
            raise ValueError(f'mode={mode!r}: "device" or "host"')
        if benchmark_iter < 1:
            raise ValueError(f"benchmark_iter={benchmark_iter}: at least 1")
        if mode == "host":
            warnings.warn("the host is not simulated: these are the times of the device", KernelWarning, stacklevel=2)
        targets = self._targets(outputs)
        report, outcome = self._timed(inputs, warmup_iter + benchmark_iter)
        self._deliver(outcome, targets)
        return BenchmarkResult([report.latency_us / 1000] * benchmark_iter, warmup_iter)

    def _as(self, measure):
        """The program, to be timed as a profiler or a benchmark does."""
        if measure not in self._loaded:
            program = self._program
            settings = [*program.get("settings", {}).items(), ("kernel.measure", measure)]
            self._loaded[measure] = _native.Loaded(
                self._path, program["program"], program["outputs"], program["older_compiler"], settings, _levels.of_program()
            )
        return self._loaded[measure]

    def _run(self, inputs, measure, timed):
        self._runtime.use()
        if inputs.keys() != self.input_tensors_info.keys():
            raise NrtError(_INVALID, f"the inputs are {_names(self.input_tensors_info)}, not {_names(inputs)}")
        arrays = [(name, _as_input(name, tensor, self.input_tensors_info[name])) for name, tensor in inputs.items()]
        compiled = self._as(measure).with_arrays(arrays, _levels.of_program())
        try:
            outcome = compiled.run(timed)
        except KernelError as error:
            status = _OUT_OF_BOUNDS if error.slug in ("index-out-of-bounds", "out-of-bounds") else _FAILURE
            raise NrtError(status, f"Failed to execute model\n{error}") from error
        except ArgumentError as error:
            raise NrtError(_INVALID, str(error)) from error
        show(outcome.prints)
        if (found := findings_of(outcome)) is not None:
            warnings.warn(found, KernelWarning, stacklevel=3)
        return compiled, outcome

    def _targets(self, outputs):
        """The given tensors for the results, checked before the run."""
        if outputs is None:
            return None
        infos = self.output_tensors_info
        if outputs.keys() != infos.keys():
            raise NrtError(_INVALID, f"the outputs are {_names(infos)}, not {_names(outputs)}")
        for name, tensor in outputs.items():
            if tensor._values().nbytes != infos[name].size:
                raise NrtError(_INVALID, f"the tensor for {name} has {tensor._values().nbytes} bytes, not {infos[name].size}")
        return outputs

    def _deliver(self, outcome, targets):
        results = dict(zip(self.output_tensors_info, _shape(outcome.result, kind_of([]))))
        if targets is None:
            return {name: NrtpyTensor(array, array.shape, array.dtype, name) for name, array in results.items()}
        for name, tensor in targets.items():
            tensor.write_from_numpy(results[name])
        return None


def profile_on_zeros(path, program):
    """The profile of a program that has not run yet, as `neuron-profile` runs it: on zeros."""
    model = NrtpyModel(path, program)
    inputs = {
        name: NrtpyTensor(np.zeros(info.size, np.uint8), info.shape, info.dtype, name) for name, info in model.input_tensors_info.items()
    }
    compiled, outcome = model._run(inputs, "profile", timed=True)
    profile = _neff.profile_of(Report(outcome), outcome, compiled)
    return {key: value for key, value in profile.items() if key != "kernel"}


def _metadata(shape, dtype):
    dtype = numpy_dtype(dtype)
    return TensorMetadata(list(shape), int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, dtype)


def _core(number):
    if operator.index(number) < 0:
        raise ValueError(f"core_id={number}: a core has a number from 0")


def _names(tensors):
    return ", ".join(map(str, tensors)) or "none"


def _is_raw(dtype):
    """Whether values of this type may stand for the bits of others."""
    return dtype.kind == "u" or dtype.kind == "V" and "float" not in dtype.name


def _as_input(name, tensor, info):
    """The array of a tensor as the program reads it: the device has bytes, and no dtypes."""
    if not hasattr(tensor, "_values"):
        raise TypeError(f"the input {name} is a {type(tensor).__name__}, not a tensor of the runtime: NrtpyTensor.from_numpy(array)")
    array = tensor._values()
    if array.nbytes != info.size:
        raise NrtError(_INVALID, f"the tensor for {name} has {array.nbytes} bytes, not {info.size}: {info.shape} {info.dtype}")
    if array.dtype != info.dtype and not any(_is_raw(dtype) for dtype in (array.dtype, info.dtype)):
        warnings.warn(f"the program reads {name}, which is {array.dtype}, as {info.dtype}", KernelWarning, stacklevel=5)
    return array.reshape(-1).view(info.dtype).reshape(info.shape)
