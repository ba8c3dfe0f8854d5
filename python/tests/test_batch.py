"""`nki_sim.batch`: jobs with arrays, their order, and errors of the iterable that produces them."""

import numpy as np
import pytest

import nki_sim
from test_sweep import SOURCE

X = np.arange(128 * 256, dtype=np.float32).reshape(128, 256)


def job(width, **more):
    return {"source": SOURCE, "args": {"x": X, "width": width}, **more}


def test_results_come_in_order_and_are_compared():
    wrong = X.copy()
    wrong[3, 4] += 1
    jobs = [
        job(64, expect={"out": X}, id="a"),
        job(256, expect={"out": wrong}),
        job(100),
        {"source": SOURCE, "args": {"x": nki_sim.TensorSpec((128, 128), "float32"), "width": 128}, "no_numerics": True},
        job(64, point={"SCALE": 2.0}, expect={"out": 2 * X}),
    ]
    results = list(nki_sim.batch(jobs, workers=2))
    assert [r["line"] for r in results] == [1, 2, 3, 4, 5]
    assert [r["status"] for r in results] == ["passed", "differs", "failed", "passed", "passed"]
    assert results[0]["id"] == "a" and results[0]["latency_us"] > results[1]["latency_us"]
    assert "512" not in results[2]["error"] and "256 columns are not tiles of 100" in results[2]["error"]
    assert results[1]["expected"][0]["mismatches"] == 1


def test_narrow_types_and_containers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = X.astype(ml_dtypes.bfloat16)
    results = list(nki_sim.batch([{"source": SOURCE, "args": {"x": x, "width": 64}, "expect": {"out": x}}]))
    assert results[0]["status"] == "passed" and results[0]["outputs"][0]["dtype"] == "bfloat16"


def test_numbers_of_numpy_and_numbers_that_json_lacks():
    source = SOURCE.replace("scaled(x, width)", "scaled(x, width, scales)").replace("operand0=SCALE", "operand0=scales[0]")
    x = X + 1
    scales = [(np.float32(2), 1), [float("inf")], (float("-inf"), np.int64(3)), (np.float64("inf"), 1), [float("nan")]]
    jobs = [{"source": source, "args": {"x": x, "width": np.int64(64), "scales": s}, "expect": {"out": x * np.float32(s[0])}} for s in scales]
    results = list(nki_sim.batch(jobs))
    assert [(r["status"], r["error"]) for r in results] == [("passed", None)] * 5


def test_jobs_may_be_endless_and_wrong():
    def jobs():
        while True:
            yield job(64, no_numerics=True)

    results = nki_sim.batch(jobs(), workers=1)
    assert [next(results)["status"] for _ in range(3)] == ["passed"] * 3
    results.close()

    def failing():
        yield job(64)
        raise KeyError("from the jobs")

    with pytest.raises(KeyError, match="from the jobs"):
        list(nki_sim.batch(failing()))
    with pytest.raises(ValueError, match="not a size"):
        list(nki_sim.batch([], max_memory="much"))
    assert list(nki_sim.batch([])) == []
    results = list(nki_sim.batch([job(64), 5, "k.py", None, [job(64)], {"source": SOURCE, "args": [1]}, job(64)]))
    assert [r["status"] for r in results] == ["passed"] + ["refused"] * 5 + ["passed"]
    assert "unknown field `fiel`" in next(nki_sim.batch([{"fiel": "k.py"}]))["error"]
    assert "`x`: a object is neither" in next(nki_sim.batch([{"source": SOURCE, "args": {"x": object()}}]))["error"]


def test_what_is_no_list_of_jobs():
    for one in ("abc", b"abc", {"file": "k.py"}):
        with pytest.raises(TypeError, match="jobs must be a list of dicts"):
            nki_sim.batch(one)


def test_an_error_names_no_temporary_file():
    (result,) = nki_sim.batch([{"source": SOURCE, "args": {"x": np.ones((128, 64)), "width": 64}}])
    assert result["status"] == "refused" and result["error"].startswith("argument `x`: float64 is not a device type")
    (result,) = nki_sim.batch([{"source": SOURCE, "args": {"x": np.ones((128, 64), np.float32)}}])
    assert result["status"] == "refused" and result["error"] == "kernel `scaled` needs argument `width`; its signature is scaled(x, width)"


@pytest.mark.parametrize("value", [{1, 2}, object(), [object()], {"a": {1}}])
def test_a_job_that_cannot_be_sent_is_refused(value):
    results = list(nki_sim.batch([job(64, no_numerics=True), {**job(value), "id": "x"}, job(64, no_numerics=True)]))
    assert [r["status"] for r in results] == ["passed", "refused", "passed"]
    assert results[1]["id"] == "x" and ("`width`" in results[1]["error"] or "JSON" in results[1]["error"])


def test_ids_are_numbers_or_text():
    jobs = [job(64, id=np.int64(3)), job(64, id=[1]), job(64, id="b", expect={"out": 2.0})]
    right, refused, number = nki_sim.batch(jobs)
    assert right["id"] == 3 and right["status"] == "passed"
    assert "`id` must be a string or a number, not a list" in refused["error"]
    assert number["id"] == "b" and "pass np.full(shape, 2.0)" in number["error"]
