"""`nki.framework.compiled`, `nki.compiler.ncc_driver`, `nki.compiler.driver` and `nki.runtime`: kernels that harnesses compile to a file, run and
time step by step."""

import dataclasses
import json
import os
import pathlib
import shutil

import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from nki.compiler import driver, frontend, ncc_driver
from nki.framework import compiled as framework
from nki.framework.kernel import Kernel
from nki.runtime import SpikeModel, SpikeTensor, get_spike_singleton, reset
from nrtpy import spike_model
from nrtpy._nrtpy import SystemTraceSession

import nki_sim


@nki.jit
def scaled_sum(a, b, factor: float = 1.0):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=factor)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


@nki.jit
def both(a):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    doubled = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    squared = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=y, data1=x, data2=x, op=nl.add)
    nisa.dma_copy(dst=doubled, src=y)
    nisa.tensor_tensor(dst=y, data1=x, data2=x, op=nl.multiply)
    nisa.dma_copy(dst=squared, src=y)
    return doubled, squared


@nki.jit
def writes_half(total, pair):
    """Writes to an argument without returning it."""
    x = nl.ndarray(pair[1].shape, dtype=pair[1].dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=pair[1])
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=total, src=x)


@nki.jit
def takes_more(a, b, factor: float = 1.0):
    """Does not use its other arguments."""
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


A = np.arange(12, dtype=np.float32).reshape(4, 3)
B = np.full((4, 3), 0.5, np.float32)
INPUTS = {"a": A, "b": B, "factor": 2.0}


@pytest.fixture(autouse=True)
def runtime():
    yield
    reset()


def options(folder, **more):
    return ncc_driver.CompileOptions(target="trn2", artifacts_dir=str(folder), **more)


def built(folder, kernel=scaled_sum, inputs=INPUTS, **more):
    chosen = options(folder, **more)
    bir = framework.compile_kernel_to_nir(kernel, inputs=inputs, compile_opts=chosen, frontend=frontend.ParserFrontend(), enable_cache=False)
    return driver._compile_bir_to_neff(bir, chosen, inputs)


def test_the_time_is_predicted_without_a_file(tmp_path):
    chosen = options(tmp_path / "none", emit_predicted_latency=True)
    bir = framework.compile_kernel_to_nir(scaled_sum, inputs=INPUTS, compile_opts=chosen)
    _, report = nki_sim.profile(scaled_sum, settings={"kernel.measure": "device"})(A, B, 2.0)
    assert bir.total_time_ns == pytest.approx(report.latency_us * 1e3)
    assert bir.estimated_utilization["vector"] == report.engines["vector"]["active_percent"] > 0
    assert bir.hbm_bytes == 3 * A.nbytes and bir.mac_count == 0
    assert [(spec.name, spec.shape, np.dtype(spec.dtype)) for spec in bir.descriptor.input_specs] == [("a", (4, 3), A.dtype), ("b", (4, 3), A.dtype)]
    assert not (tmp_path / "none").exists()
    two = framework.compile_kernel_to_nir(scaled_sum[2], inputs=INPUTS, compile_opts=chosen)
    assert two.total_time_ns > bir.total_time_ns and two.hbm_bytes == 2 * bir.hbm_bytes


def test_a_file_is_run_and_timed_on_other_values(tmp_path):
    program = built(tmp_path)
    assert program.neff_path == str(tmp_path / "kernel.neff") and program.neff_path in vars(program).values()
    assert json.loads((tmp_path / "info.json").read_text())["lnc"] == 1
    for a in (A, -A, np.full_like(A, np.nan)):
        result = program.run(a=a, b=B)
        assert result.latency is None
        np.testing.assert_array_equal(result.outputs["output_0"], 2 * a + B)
    result = program.benchmark(warmup=1, iterations=4, **program.prepare_inputs(INPUTS))
    assert result.latency == result.latency_min == result.latency_max and result.latency_std == 0 and result.benchmark_warmup == 1
    assert result.latency == pytest.approx(program.total_time_ns / 1e9, rel=1e-4)
    np.testing.assert_array_equal(result.outputs["output_0"], 2 * A + B)
    assert 0 < result.mbu < 1 and result.hfu == 0
    assert program.run(profile=True, a=A, b=B).latency == pytest.approx(result.latency)


def test_a_file_is_a_program_for_the_runtime(tmp_path):
    path = tmp_path / "built" / "file.neff"
    chosen = options(tmp_path / "artifacts", output_path=str(path))
    bir = driver.compile_to_bir(kernel_func=scaled_sum.func, frontend=frontend.TracerFrontend(), inputs=INPUTS, compile_opts=chosen, output_names=["sum"])
    ncc_driver.compile_bir_to_neff(chosen, bir, [], bir.argument_names, bir.output_names)
    model = SpikeModel.load_from_neff(str(path), core_id=1)
    assert model.model_ref.core_id == 1 and not model.alias_info and list(model.output_tensors_info) == ["sum"]
    tensors = {name: SpikeTensor.from_numpy(array, name, core_id=1) for name, array in (("a", A), ("b", B))}
    (target,) = model.allocate_output_tensors()
    model(tensors, {target.name: target}, save_trace=True, ntff_name=str(tmp_path / "run.ntff"))
    np.testing.assert_array_equal(target.numpy(), 2 * A + B)
    summary = ncc_driver.extract_perf_metrics(str(path), str(tmp_path / "run.ntff"))
    assert 0 < summary["total_time"] < 1e-3 and summary["hbm_read_bytes"] == 2 * A.nbytes
    assert ncc_driver.extract_perf_metrics(str(path), str(tmp_path / "none.ntff")) is None
    # A program of the file alone.
    alone = ncc_driver.CompiledKernel(neff_path=path, target="trn2", lnc=1, artifacts_dir=str(tmp_path), bir=None)
    np.testing.assert_array_equal(alone.run(a=A, b=B).outputs["sum"], 2 * A + B)
    assert alone.total_time_ns is None and [spec.name for spec in alone.output_specs] == ["sum"]


@pytest.mark.parametrize("lnc", [1, 2])
def test_each_core_has_its_events(tmp_path, lnc, monkeypatch):
    program = built(tmp_path, scaled_sum[lnc])
    seen = []
    parse = spike_model._parse_trace_durations
    monkeypatch.setattr(spike_model, "_parse_trace_durations", lambda text: seen.append(text) or parse(text))
    assert program.benchmark(iterations=3, a=A, b=B).latency > 0
    starts = [event for event in json.loads(seen[0])["events"] if event["phase"] == "start"]
    assert sorted(event["data"]["device_core_idx"] for event in starts) == sorted(list(range(lnc)) * 3)
    assert len({event["data"]["exec_id"] for event in starts}) == 3
    # The logical core, and a number for each execution of a physical one.
    assert {event["nc_idx"] for event in starts} == {0} and len({event["tracking_id"] for event in starts}) == 3 * lnc
    model = program._ensure_loaded(0, 1)
    tensors = {name: SpikeTensor.from_numpy(array, name) for name, array in (("a", A), ("b", B))}
    with SystemTraceSession(0) as trace:
        model(tensors)
        trace.drain_events()
        model(tensors)
        durations = parse(trace.fetch_events_json())
    model(tensors)
    assert durations == pytest.approx([program.total_time_ns / 1e6] * lnc, rel=1e-4) and parse(trace.fetch_events_json()) == durations


def test_executors_replace_the_run(tmp_path):
    seen = []

    def executor(program, inputs, outputs):
        seen.append((program, sorted(inputs)))
        program.execute(inputs, outputs)

    kernel = scaled_sum._to_subclass(framework.StandaloneKernel, _executor=executor, target="trn2", artifacts_dir=str(tmp_path / "new"))
    for call in (lambda: kernel(A, B, factor=2.0), lambda: kernel(b=B, a=A, factor=2.0)):
        np.testing.assert_array_equal(call(), 2 * A + B)
    assert [names for _, names in seen] == [["a", "b"]] * 2 and pathlib.Path(seen[0][0].neff_path).parent == tmp_path / "new"
    # An executor that does nothing leaves zeros.
    idle = dataclasses.replace(kernel, _executor=lambda *_: None)
    np.testing.assert_array_equal(idle(A, B), np.zeros_like(A))
    doubled, squared = framework.CompileKernel(func=both.func)(A)
    np.testing.assert_array_equal(doubled, 2 * A)
    np.testing.assert_array_equal(squared, A * A)
    kept = []
    value = framework.run_from_bir(
        framework.compile_kernel_to_nir(both, inputs={"a": A}, compile_opts=options(tmp_path)), options(tmp_path), {"a": A}, executor=lambda c, i, o: kept.append(c)
    )
    assert isinstance(value, tuple) and len(kept[0].output_specs) == 2 and kept[0].bir.is_tuple_return


def test_inputs_that_a_kernel_writes(tmp_path):
    total = B.copy()
    program = built(tmp_path, kernels.adds_in_place, {"total": total, "x": A})
    assert program.total_time_ns > 0
    np.testing.assert_array_equal(total, B)
    np.testing.assert_array_equal(program.run(total=total, x=A).outputs["output_0"], A + B)
    np.testing.assert_array_equal(total, A + B)
    assert program.bir.build_config().operand_output_aliases == {0: 0}
    # A session times the run; with a profile, it times another one, of copies.
    for save_trace in (False, True):
        tensors = {"total": SpikeTensor.from_numpy(B), "x": SpikeTensor.from_numpy(A)}
        with SystemTraceSession() as trace:
            outputs = program._ensure_loaded()(tensors, save_trace=save_trace)
        np.testing.assert_array_equal(outputs["output_0"].numpy(), A + B)
        assert len(spike_model._parse_trace_durations(trace.fetch_events_json())) == 1
    total.flags.writeable = False
    with pytest.raises(nki_sim.ArgumentError, match="`total`, and its array cannot be written"):
        program.run(total=total, x=A)


def test_parts_of_arguments_and_results_that_are_not_returned(tmp_path):
    inputs = {"total": np.zeros((4, 6), np.float32)[:, ::2], "pair": (B, A)}
    program = built(tmp_path, writes_half, inputs)
    assert [spec.name for spec in program.bir.input_specs] == ["total", "pair.0", "pair.1"] and not program.bir.output_specs
    assert program.total_time_ns > 0 and not inputs["total"].any()
    assert program.run(**inputs).outputs == {}
    np.testing.assert_array_equal(inputs["total"], A / 2)
    inputs["total"][...] = 0
    assert writes_half._to_subclass(framework.StandaloneKernel, artifacts_dir=str(tmp_path / "called"))(**inputs) is None
    np.testing.assert_array_equal(inputs["total"], A / 2)


def test_results_of_the_simulation_in_the_compiler(tmp_path):
    program = built(tmp_path, enable_simulation=True)
    np.testing.assert_array_equal(program.birsim_outputs[0], 2 * A + B)
    assert built(tmp_path).birsim_outputs is None
    kernel = scaled_sum._to_subclass(framework.StandaloneKernel, _enable_simulation=True, artifacts_dir=str(tmp_path / "called"))
    np.testing.assert_array_equal(kernel(A, B), A + B)
    assert (tmp_path / "called" / "kernel.neff").is_file()


def chain(x):
    """Two chains, one after the other: whether they overlap depends on the order of the engine's queue."""
    out = nl.ndarray((2, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        for _ in range(12):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, engine=nisa.engine.vector)
        nisa.dma_copy(dst=out[i], src=tile)
    return out


def test_the_order_of_the_source_is_that_of_jit(tmp_path):
    times = {}
    for optimised in (False, True):
        kernel = nki.jit(chain)._to_subclass(framework.StandaloneKernel, _enable_backend_opt=optimised, artifacts_dir=str(tmp_path / str(optimised)))
        chosen = kernel._compile_opts()
        assert chosen.backend_optimizations == optimised
        program = driver._compile_bir_to_neff(framework.compile_kernel_to_nir(kernel, inputs={"x": A}, compile_opts=chosen), chosen, {"x": A})
        times[optimised] = program.total_time_ns
        assert program.benchmark(x=A).latency * 1e9 == pytest.approx(program.total_time_ns, rel=1e-4)
    assert times[True] < times[False]


def test_options(tmp_path):
    chosen = options(tmp_path, neuronx_cc_args=("--jobs=8",))
    assert shutil.which(chosen.neuronx_cc_path) and dataclasses.replace(chosen, lnc=2).lnc == 2
    assert chosen.backend_optimizations and not chosen.disable_backend_optimizations().backend_optimizations
    assert not chosen.set_pipeline_options("enable-instruction-scheduling=false").backend_optimizations
    with pytest.raises(dataclasses.FrozenInstanceError):
        chosen.lnc = 2
    with pytest.raises(nki_sim.ArgumentError, match="artifacts_dir"):
        driver._compile_bir_to_neff(framework.compile_kernel_to_nir(both, inputs={"a": A}), ncc_driver.CompileOptions(), {})
    assert scaled_sum[2]._to_subclass(framework.CompileKernel)._compile_opts().lnc == 2
    assert isinstance(Kernel(both.func), type(both)) and list(scaled_sum._bind_args((A,), {"b": B})) == ["a", "b"]


def test_frontends_compile_in_a_context(tmp_path):
    context = driver.compile_to_bir.__globals__["nki_ir_context"]
    chosen = options(tmp_path)
    with context() as ir:
        result = frontend.resolve_frontend_cls()(enable_backend_opt=False).compile(ir, both, inputs={"a": A}, target="trn2", lnc=1, artifacts_dir=str(tmp_path))
    program = ncc_driver.CompiledKernel.from_frontend(result, chosen, frontend_time=0.25)
    assert result.function_name == "both" and program.mlir_time == 0.25 and program.compilation_time > 0.25
    np.testing.assert_array_equal(program.run(a=A).outputs["output_1"], A * A)


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(nki_sim.KernelError):
        framework.compile_kernel_to_nir(nki.jit(lambda a: missing(a)), inputs={"a": A}, compile_opts=options(tmp_path))  # noqa: F821
    program = built(tmp_path)
    with pytest.raises(nki_sim.ArgumentError, match="no array for the input `b`"):
        program.run(a=A)
    with pytest.raises(nki_sim.ArgumentError, match="no input `c`; it has a, b"):
        program.run(a=A, b=B, c=B)
    np.testing.assert_array_equal(built(tmp_path / "more", takes_more).run(a=A, b=B).outputs["output_0"], A)
    with pytest.raises(ValueError, match="at least 1"):
        program.benchmark(iterations=0, a=A, b=B)
    with pytest.raises(ValueError, match="returns 1 tensors, 2 names given"):
        ncc_driver.compile_bir_to_neff(options(tmp_path), program.bir, output_arg_names=["x", "y"])
    with pytest.raises(RuntimeError, match="bytes"):
        program.run(a=A[:2], b=B)
    with pytest.warns(nki_sim.KernelWarning, match="reads a, which is int32, as float32"):
        program.run(a=A.astype(np.int32), b=B)
    with pytest.raises(ValueError, match="1 or 2 physical cores"):
        framework.compile_kernel_to_nir(both, inputs={"a": A}, compile_opts=options(tmp_path, lnc=3))
    get_spike_singleton()
    reset()
    np.testing.assert_array_equal(program.run(a=A, b=B).outputs["output_0"], 2 * A + B)
    os.remove(program.neff_path)
    reset()
    with pytest.raises(RuntimeError, match="Failed to load model"):
        program.run(a=A, b=B)
