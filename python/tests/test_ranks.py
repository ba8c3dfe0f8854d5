"""Several ranks: `nki_sim.simulate_ranks`."""

import json
import warnings

import collectives
import numpy as np
import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import nki_sim
from nki.collectives import ReplicaGroup

RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@nki.jit
def summed(x, scale, group):
    """The sum over the ranks of scale * x, written to shared HBM."""
    p, n = x.shape
    tile = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=scale)
    total = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
    ncc.all_reduce(srcs=[tile], dsts=[total], replica_group=group, op=nl.add)
    out = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    print("compiled for", scale)
    return out


@nki.jit
def pick(tables, whose):
    """Row `rank` of the first table, plus the value in `whose`."""
    n = tables[0].shape[1]
    row = nl.ndarray((1, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=tables[0].ap(pattern=[[n, 1], [1, n]], scalar_offset=ncc.rank_id(), indirect_dim=0))
    more = nl.ndarray((1, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=more, src=whose)
    nisa.tensor_tensor(dst=row, data1=row, data2=more, op=nl.add)
    out = nl.ndarray((1, n), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=row)
    return out


@nki.jit
def mark(x):
    """A kernel that writes its argument."""
    nisa.dma_copy(dst=x[0:1, :], src=x[1:2, :])
    return x


def test_each_rank_has_its_array_and_the_group_is_an_object():
    xs = [floats(4, 8) for _ in range(3)]
    outs = nki_sim.simulate_ranks(summed, 3)(xs, 2.0, ReplicaGroup([[0, 1, 2]]))
    assert len(outs) == 3
    for out in outs:
        np.testing.assert_array_equal(out, 2 * xs[0] + 2 * xs[1] + 2 * xs[2])


def test_two_groups_two_cores():
    xs = [floats(4, 8) for _ in range(4)]
    outs = nki_sim.simulate_ranks(summed[2], 4)(x=xs, scale=1.0, group=ReplicaGroup([[0, 2], [1, 3]]))
    for rank, out in enumerate(outs):
        np.testing.assert_array_equal(out, xs[rank % 2] + xs[rank % 2 + 2])


def test_one_array_and_a_tuple_are_for_all_ranks():
    table, whose = floats(3, 5), [floats(1, 5) for _ in range(3)]
    outs = nki_sim.simulate_ranks(pick, 3)((table,), whose)
    for rank, out in enumerate(outs):
        np.testing.assert_array_equal(out, table[rank : rank + 1] + whose[rank])
    # A tuple of arrays for each rank.
    outs = nki_sim.simulate_ranks(pick, 3)([(table,), (2 * table,), (3 * table,)], whose[0])
    for rank, out in enumerate(outs):
        np.testing.assert_array_equal(out, (rank + 1) * table[rank : rank + 1] + whose[0])


def test_values_that_are_no_arrays(capsys):
    x = floats(2, 4)
    outs = nki_sim.simulate_ranks(summed, 2)(x, nki_sim.PerRank([1.0, 3.0]), ReplicaGroup([[0, 1]]))
    np.testing.assert_allclose(outs[0], 4 * x, rtol=1e-6)
    assert capsys.readouterr().out.splitlines() == ["compiled for 1.0", "compiled for 3.0"]


def test_the_examples_against_numpy():
    ranks = 4
    xs = [floats(4, 6) for _ in range(ranks)]
    for rank, (gathered, scattered, transposed, swapped) in enumerate(nki_sim.simulate_ranks(collectives.exchange, ranks)(xs, ranks)):
        np.testing.assert_array_equal(gathered, np.concatenate(xs))
        np.testing.assert_allclose(scattered, sum(xs)[rank : rank + 1], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(transposed, np.stack([x[rank] for x in xs]))
        np.testing.assert_array_equal(swapped, xs[rank ^ 1])


def test_other_kinds_of_arrays():
    torch = pytest.importorskip("torch")
    xs = [torch.from_numpy(floats(2, 4)) for _ in range(2)]
    outs = nki_sim.simulate_ranks(summed, 2)(xs, 1.0, ReplicaGroup([[0, 1]]))
    assert all(torch.equal(out, xs[0] + xs[1]) for out in outs)


def test_written_arguments():
    xs = [floats(2, 4) for _ in range(2)]
    want = [np.stack([x[1], x[1]]) for x in xs]
    outs = nki_sim.simulate_ranks(mark, 2)(xs)
    for x, out, expected in zip(xs, outs, want):
        assert out is x
        np.testing.assert_array_equal(x, expected)
    with pytest.raises(nki_sim.ArgumentError, match="argument `x`, and rank 0's array shares memory with `x` of rank 1"):
        nki_sim.simulate_ranks(mark, 2)(xs[0])


def test_report(tmp_path):
    xs = [floats(4, 8) for _ in range(2)]
    outs, report = nki_sim.profile(nki_sim.simulate_ranks(summed, 2))(xs, 1.0, ReplicaGroup([[0, 1]]))
    np.testing.assert_array_equal(outs[1], xs[0] + xs[1])
    assert len(report) == 2 and report.latency_us == max(r.latency_us for r in report.ranks) > 1
    assert report[1].engines["sync"]["instructions"] > 0 and report.findings == []
    assert json.loads(report.to_json()) == report.to_dict()
    assert [r["rank"] for r in report.to_dict()["ranks"]] == [0, 1]
    assert "rank 1" in str(report) and "<table>" in report._repr_html_() and "on 2 ranks" in repr(report)
    report.save(tmp_path / "t.perfetto-trace")
    trace = (tmp_path / "t.perfetto-trace").read_bytes()
    assert b"summed on NeuronCore 0 of rank 0" in trace and b"summed on NeuronCore 0 of rank 1" in trace


@nki.jit
def gathers(x, count, group):
    """Gathers the argument `count` times; no gather needs another one."""
    p, n = x.shape
    tile = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray((count, p, 2 * n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(count):
        gathered = nl.ndarray((p, 2 * n), dtype=x.dtype, buffer=nl.sbuf)
        ncc.all_gather(srcs=[tile], dsts=[gathered], replica_group=group, collective_dim=1)
        nisa.dma_copy(dst=out[i], src=gathered)
    return out


def test_the_collectives_of_a_rank_run_one_after_the_other():
    xs = [floats(2, 4) for _ in range(2)]
    ranks = nki_sim.simulate_ranks(gathers, 2)
    one, two, three = (nki_sim.profile(ranks)(xs, n, ReplicaGroup([[0, 1]]))[1].latency_us for n in (1, 2, 3))
    # Two steps of a mesh each.
    assert 4.7 < two - one < 5.0 and 4.7 < three - two < 5.0


def test_wrong_calls():
    x, group = floats(2, 4), ReplicaGroup([[0, 1]])
    with pytest.raises(nki_sim.ArgumentError, match="argument `x` has 3 items for 2 ranks"):
        nki_sim.simulate_ranks(summed, 2)(x=[x] * 3, scale=1.0, group=group)
    with pytest.raises(nki_sim.ArgumentError, match="number of ranks"):
        nki_sim.simulate_ranks(summed, 0)
    with pytest.raises(nki_sim.ArgumentError, match="at most 1024 ranks"):
        nki_sim.simulate_ranks(summed, 100_000)
    with pytest.raises(nki_sim.KernelError, match="waits for rank 1, but there is none") as caught:
        nki_sim.simulate_ranks(summed, 1)(x, 1.0, group)
    assert caught.value.slug == "deadlock"
    with pytest.raises(nki_sim.KernelError, match="are incompatible"):
        nki_sim.simulate_ranks(summed, 2)([x, floats(3, 4)], 1.0, group)


def test_ranks_get_the_same_arguments():
    @nki.jit
    def added(x, numbers):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=numbers.pop() if isinstance(numbers, list) else next(numbers))
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x, ranks = floats(4, 8), nki_sim.simulate_ranks(added, 2)
    with pytest.warns(nki_sim.KernelWarning, match="added changes its argument `numbers`: .* rank 1"):
        ranks(x, [1.0, 2.0])
    with pytest.raises(nki_sim.ArgumentTypeError, match="argument `numbers` .* iterator, .* rank 1"):
        ranks(x, iter([1.0, 2.0]))
    first, second = ranks(x, nki_sim.PerRank([iter([1.0]), iter([2.0])]))
    np.testing.assert_array_equal(second - first, (x + 2) - (x + 1))


@nki.jit
def send_rows(x, counts, rows, group):
    """Sends the first two written rows to each rank; the other half of the buffer is never written and never sent."""
    n, h = x.shape
    sent = nl.ndarray((2 * n, h), dtype=x.dtype, buffer=nl.shared_hbm)
    received = nl.ndarray((2 * n, h), dtype=x.dtype, buffer=nl.shared_hbm)
    metadata = nl.ndarray((rows, 2), dtype=nl.uint32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=sent[0:n], src=x)
    nisa.dma_copy(dst=metadata, src=counts[0:rows])
    ncc.all_to_all_v(srcs=[sent], dsts=[received], replica_group=group, metadata_tensor=metadata)
    out = nl.ndarray((2, 2, h), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0], src=received[0:2])
    nisa.dma_copy(dst=out[1], src=received[n : n + 2])
    return out


@pytest.mark.parametrize("rows", [3, 4])
def test_what_is_not_sent_need_not_be_written_and_row_3_is_ignored(rows):
    xs = [np.full((4, 8), rank, np.float32) for rank in range(2)]
    counts = np.array([[16, 16], [0, 16], [0, 0], [99, 99]], np.uint32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outs = nki_sim.simulate_ranks(send_rows[2], 2)(xs, counts, rows, ReplicaGroup([[0, 1]]))
    for out in outs:
        np.testing.assert_array_equal(out[:, :, 0], [[0, 0], [1, 1]])
