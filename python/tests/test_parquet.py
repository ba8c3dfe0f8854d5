"""Scripts for profiles of hardware query the Parquet tables of a simulated run."""

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
    """Rows of a query; `@NAME` is a table."""
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
