"""Queries on the Parquet tables of a simulated run by scripts for hardware profiles."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb and pyarrow query the tables: pip install duckdb pyarrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="duckdb and pyarrow query the tables: pip install duckdb pyarrow")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """The tables and the report of one run."""
    folder = tmp_path_factory.mktemp("profile")
    words = ["run", EXAMPLES / "flash_attention.py", "--parquet", folder / "tables", "--json", folder / "run.json"]
    subprocess.run([sys.executable, "-m", "nki_sim", *map(str, words)], check=True, capture_output=True)
    return folder / "tables", json.loads((folder / "run.json").read_text())


def query(folder, text):
    """The rows of a query; `@NAME` is a table."""
    for table in folder.glob("*.parquet"):
        text = text.replace(f"@{table.stem} ", f"'{table}' ")
    return duckdb.sql(text).fetchall()


def test_time_and_traffic_are_those_of_the_report(profile):
    folder, report = profile
    [(total, transfers, moved)] = query(
        folder, "select total_time, dma_transfer_count, dma_transfer_total_bytes from @Summary "
    )
    assert total == pytest.approx(report["latency_us"] / 1e6)
    assert (transfers, moved) == (report["dma"]["transfers"], report["dma"]["bytes"])
    # Packets add up to transfers.
    assert query(folder, "select sum(transfer_bytes), count(distinct packet_aggregation_id) from @DmaPacket ") == [
        (moved, transfers)
    ]
    assert query(folder, "select sum(transfer_bytes) from @DmaPacketAggregated ") == [(moved,)]
    necessary = query(folder, "select sum(size) from @TensorInfo where type in ('IN', 'OUT')")
    assert necessary == [(report["traffic"]["minimum_read_bytes"] + report["traffic"]["minimum_write_bytes"],)]


def test_engines_are_as_active_as_the_report_says(profile):
    folder, report = profile
    active = dict(query(folder, "select engine, sum(duration_ns) from @ActiveTime group by engine"))
    for engine, ns in active.items():
        assert ns / 1e3 == pytest.approx(report["engines"][engine]["active_us"], rel=0.01)
    counts = dict(query(folder, "select lower(engine), count(*) from @Instruction group by engine"))
    assert all(report["engines"][engine]["instructions"] == count for engine, count in counts.items())
    flops = query(folder, "select sum(raw_flops) from @Instruction where engine = 'Tensor' and opcode = 'MATMUL'")
    assert flops == [(report["summary"]["hardware_flops"],)]


def test_tables_join_by_their_ids(profile):
    folder, _ = profile
    lost = """
        select count(*) from @Instruction i left join @KernelInstructions k
        on i.kernel_instruction_name = k.kernel_instruction_name and i.pcore_idx = k.pcore_idx
        where k.line_number is null or i.bir_debug_info_source_location not like '%:' || k.line_number"""
    assert query(folder, lost) == [(0,)]
    triggers = """
        select count(*) from @Flow f join @Instruction i on f.in_id = i.id join @DmaPacketAggregated d on f.out_id = d.id
        where f.dependency_type = 'DMA_TRIGGER' and i.end_ts <= d.start_ts and d.trigger = i.start_ts"""
    assert query(folder, triggers) == query(folder, "select count(*) from @DmaPacketAggregated ")
    loops = "select distinct variable_name from @KernelIterationVariables order by 1"
    assert query(folder, loops) == [("ik",), ("iq",), ("p",)]


def test_pyarrow_reads_every_table_and_the_schema_describes_it(profile):
    folder, _ = profile
    fields = set(query(folder, "select table_name, field_name from @SchemaFields "))
    known = {(path.stem, name) for path in folder.glob("*.parquet") for name in parquet.read_table(path).column_names}
    assert known == fields and len(known) > 250
    assert query(folder, "select is_simulation, profile_schema_version from @Metadata ") == [(True, "7.4.0")]
    full = "select max(avg_util_percent), min(avg_util_percent) from @SbufUsage "
    [(most, least)] = query(folder, full)
    assert 0 == least < most <= 100


def test_pandas_reads_a_table(profile):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(profile[0] / "Instruction.parquet")
    by_opcode = frame.groupby(["engine", "opcode"])["duration_ns"].sum()
    assert by_opcode["Tensor", "MATMUL"] > 0


def test_traffic_over_time_adds_up(profile):
    folder, report = profile
    traffic = report["traffic"]
    for table, moved in (("DmaUsage", report["dma"]["bytes"]), ("HbmUsage", traffic["hbm_read_bytes"] + traffic["hbm_write_bytes"])):
        last = f"select last(total_transfer_bytes), last(current_throughput), max(current_throughput) from @{table} "
        [(total, end, most)] = query(folder, last)
        assert total == moved and end == 0 < most
        # The rate of each step times its duration is the increase of the total; timestamps are whole nanoseconds.
        steps = f"""
            with s as (select *, lead(timestamp) over w as until, lead(total_transfer_bytes) over w as after
                       from @{table} window w as (order by timestamp))
            select max(abs(after - total_transfer_bytes - current_throughput * (until - timestamp) / 1e9) - current_throughput * 2e-9)
            from s where until is not null"""
        [(off,)] = query(folder, steps)
        assert off < 1.5 * most * 1e-9 + 2
    pending = "select min(value), max(value), last(value), min(timestamp) >= 0 from @PendingDma "
    [(least, most, last, fine)] = query(folder, pending)
    assert (least, last, fine) == (0, 0, True) and most >= 1


def test_semaphores_queues_and_the_header(profile):
    folder, report = profile
    # There is a completion for each instruction and transfer; each row counts its own.
    [(rows, events)] = query(folder, "select (select count(*) from @SemaphoreUpdate ), (select count(*) from @Instruction )")
    assert rows == events > 0
    gaps = """
        select count(*) from (select value - lag(value, 1, 0) over (partition by pcore_idx, id order by value) as step,
                              timestamp - lag(timestamp, 1, 0) over (partition by pcore_idx, id order by value) as time
                              from @SemaphoreUpdate ) where step <> 1 or time < 0"""
    assert query(folder, gaps) == [(0,)]
    by_source = dict(query(folder, "select update_source, count(*) from @SemaphoreUpdate group by 1"))
    assert by_source["AXI"] == report["dma"]["transfers"]
    waits = """
        select count(*) from @Flow f join @Instruction i on f.out_id = i.id
        where f.dependency_type = 'FLOW_DEPENDENCE' and i.start_ts not in (select timestamp from @SemaphoreUpdate )
          and not exists (select 1 from @SemaphoreUpdate s where s.timestamp <= i.start_ts)"""
    assert query(folder, waits) == [(0,)]
    # Every packet is in a listed queue.
    lost = """
        select count(*) from @DmaPacket p left join @DmaQueuesInfo q on p.queue_name = q.name and p.queue_idx = q.idx
        and p.engine_idx = q.engine_idx and p.queue_type = q.type and p.pcore_idx = q.pcore_idx where q.name is null"""
    assert query(folder, lost) == [(0,)]
    [(queues, distinct)] = query(folder, "select count(*), count(distinct (pcore_idx, idx, engine_idx, type)) from @DmaQueuesInfo ")
    assert queues == distinct > 0
    assert query(folder, "select network_name, pcore_count_per_lnc from @NeffHeader ") == [("flash_attention", 1)]
    [(index, start, end)] = query(folder, "select execution_index, execution_start_ts, execution_end_ts from @ExecutionInfo ")
    assert (index, start) == (0, 0) and end == round(report["latency_us"] * 1e3)


def test_the_power_limiter_is_a_throttle(profile):
    folder, report = profile
    stalled = sum(s["us"] for s in report["stalls"] if s["kind"] == "limiter")
    [(rows, total, rate)] = query(folder, "select count(*), sum(duration), max(k / n) from @Throttle where type = 'activity_0'")
    # At the lower rate k/n, the limiter takes the fraction 1 - k/n of the time, except for the shortest matmuls.
    assert rows > 0 and 0 < rate < 1 and stalled > 0
    assert total / 1e3 * (1 - rate) == pytest.approx(stalled, rel=0.25)
    [(time, percent, most)] = query(
        folder,
        "select throttle_active_time_ns, throttle_active_time_percent, max_achievable_util_with_throttling_percent from @ThrottleSummary ",
    )
    assert time == pytest.approx(total, abs=rows) and percent == pytest.approx(time / report["latency_us"] / 10, rel=1e-3)
    assert most == rate


def run(folder, *words):
    done = subprocess.run([sys.executable, "-m", "nki_sim", "run", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


BARRIER = """\
import nki
import nki.isa as nisa
import nki.language as nl

# nki-sim: x=float32[128,64]
@nki.jit
def swapped(x):
    core = nl.program_id(0)
    both = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=both[core * 128 : core * 128 + 128, :], src=t)
    nisa.core_barrier(both, cores=(0, 1))
    other = 1 - core
    nisa.dma_copy(dst=t, src=both[other * 128 : other * 128 + 128, :])
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=t)
    return out
"""


def test_barriers_of_two_cores(tmp_path):
    (tmp_path / "k.py").write_text(BARRIER)
    folder = run(tmp_path, tmp_path / "k.py", "--lnc", 2, "--parquet", tmp_path)
    rows = query(folder, "select pcore_idx, count(*), min(duration_ns) from @CoreBarriers group by 1 order by 1")
    assert [row[:2] for row in rows] == [(0, 1), (1, 1)]
    joined = "select count(*) from @CoreBarriers b join @Instruction i on b.id = i.id where b.start_ts = i.start_ts and b.compiler_opcode = i.compiler_opcode"
    assert query(folder, joined) == query(folder, "select count(*) from @CoreBarriers ")


def test_collectives_of_a_rank(tmp_path):
    run(tmp_path, EXAMPLES / "collectives.py", "--kernel", "tensor_parallel_matmul", "--ranks", 4, "--parquet", tmp_path)
    for rank in range(4):
        [(count, time)] = query(tmp_path / f"rank{rank}", "select cc_op_count, cc_op_time from @Summary ")
        sums = query(tmp_path / f"rank{rank}", "select count(*), sum(duration_ns) from @CcOp ")
        assert count == sums[0][0] and time * 1e9 == pytest.approx(sums[0][1], abs=2)
        rows = query(tmp_path / f"rank{rank}", "select operation, dtype, duration_ns, input_size, output_size, replica_group, op_id from @CcOp ")
        assert rows
        for operation, dtype, duration, sent, received, group, _ in rows:
            assert operation[0].isupper() and dtype == "float32" and duration > 0 and sent > 0 and received > 0
            assert json.loads(group)
    assert query(tmp_path / "rank0", "select count(*) from @CcOp c join @Instruction i on c.op_id = i.id where c.start_ts >= i.start_ts") == [
        (len(rows),)
    ]


def test_a_report_writes_the_tables_of_the_command(profile, tmp_path):
    """The same run through Python."""
    import sys

    sys.path.insert(0, str(EXAMPLES))
    import numpy as np
    from softmax import softmax_rows

    import nki_sim

    x = np.zeros((256, 512), np.float32)
    _, report = nki_sim.profile(softmax_rows)(x)
    report.parquet(tmp_path / "python")
    run(tmp_path, EXAMPLES / "softmax.py", "--arg", "x=float32[256,512]", "--parquet", tmp_path / "command")
    names = sorted(path.name for path in (tmp_path / "command").iterdir())
    assert len(names) == 28 and names == sorted(path.name for path in (tmp_path / "python").iterdir())
    for name in names:
        one, other = (parquet.read_table(tmp_path / side / name).to_pylist() for side in ("python", "command"))
        assert one == other, name
    # Again into the same directory, but never over a foreign profile.
    report.parquet(tmp_path / "python")
    (tmp_path / "python" / "Other.parquet").write_bytes(b"")
    with pytest.raises(OSError, match="Other.parquet, which nki-sim does not write"):
        report.parquet(tmp_path / "python")
