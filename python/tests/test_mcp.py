"""`nki-sim mcp` with the official client of the Model Context Protocol."""

import asyncio
import json
import os
import sys

import pytest

mcp = pytest.importorskip("mcp", reason="pip install mcp")
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from test_sweep import SOURCE  # noqa: E402

ENDLESS = """
import nki


@nki.jit
def endless(x):
    n = 0
    for i in range(10**15):
        n += i
    return x
"""


def talk(conversation, *words):
    """Runs `conversation(session)` against a separate server."""

    async def run():
        server = StdioServerParameters(command=sys.executable, args=["-m", "nki_sim", "mcp", *words], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            async with mcp.ClientSession(read, write) as session:
                await session.initialize()
                return await conversation(session)

    return asyncio.run(asyncio.wait_for(run(), 120))


def structured(result):
    """The structured result of a call, which must equal its text."""
    value = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    assert json.loads(result.content[0].text) == value
    return value


def is_error(result):
    return bool(getattr(result, "isError", None) or getattr(result, "is_error", None))


def test_the_tools_and_their_schemas():
    async def conversation(session):
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in talk(conversation)}
    assert set(tools) == {"check", "run", "sweep", "compare", "explain"}
    for tool in tools.values():
        schema = getattr(tool, "inputSchema", None) or tool.input_schema
        assert tool.description and schema["type"] == "object" and schema["additionalProperties"] is False
        assert all(field.get("description") for field in schema["properties"].values()), tool.name
    schema = getattr(tools["run"], "inputSchema", None) or tools["run"].input_schema
    assert {"file", "source", "args", "expect", "max_seconds"} <= set(schema["properties"])


def test_each_tool_has_a_structured_result():
    # With a seed: the protocol's library sorts names, and the position of an argument would be its seed.
    args = {"x": "float32[128,512]:3", "width": 512}

    async def conversation(session):
        call = lambda tool, **more: session.call_tool(tool, more)
        checked = structured(await call("check", source=SOURCE, args=args))
        assert (checked["status"], checked["kernel"], checked["findings"]) == ("passed", "scaled", [])

        ran = structured(await call("run", source=SOURCE, args=args, expect={"out": "float32[128,512]:3"}))
        assert ran["status"] == "passed" and ran["latency_us"] > 0 and ran["bound"] and ran["expected"][0]["passed"]

        swept = structured(await call("sweep", source=SOURCE, args={"x": "float32[128,512]"}, grid={"width": [64, 100, 512]}))
        assert [row["point"][0][1] for row in swept["rows"]] == ["512", "64", "100"] and swept["front"][0] == 0

        run = {"source": SOURCE, "args": args}
        slow = {"source": SOURCE, "args": {**args, "width": 64}}
        compared = structured(await call("compare", before=run, after=slow, fail_if=["latency > +2%"]))
        assert compared["status"] == "failed" and compared["fail_if"][0]["failed"] and compared["files"] == ["kernel.py", "kernel.py"]
        compared = structured(await call("compare", before=run, after={**run, "target": "trn1"}))
        assert compared["notes"] == ["the target differs: trn2 in `before`, trn1 in `after`"]

        page = structured(await call("explain", name="uninitialized-read"))
        assert page["text"].startswith("# uninitialized-read")

    talk(conversation)


def test_errors_are_results_and_the_server_lives_on():
    args = {"x": "float32[128,512]", "width": 512}

    async def conversation(session):
        wrong = await session.call_tool("run", {"source": SOURCE.replace("nl.multiply", "nl.multiplied"), "args": args})
        found = structured(wrong)
        assert not is_error(wrong) and found["status"] == "failed"
        assert found["findings"][0]["line"] == 17 and "nl.multiplied" in found["diagnostics"]

        for tool, arguments, why in [
            ("run", {"fiel": "k.py"}, "unknown field `fiel`; did you mean `file`?"),
            ("check", {}, "`file` or `source`"),
            ("run", {"file": "none.py"}, "cannot read `none.py`"),
            ("sweep", {"source": SOURCE, "grid": {"width": 3}}, "not a list"),
            ("compare", {"before": "none.json", "after": "none.json"}, "none.json"),
            ("explain", {"name": "uninitialised-read"}, "did you mean `uninitialized-read`"),
            ("run", {"source": SOURCE, "args": args, "max_seconds": 100}, "more than the 2 of the run"),
        ]:
            refused = await session.call_tool(tool, arguments)
            assert is_error(refused) and why in structured(refused)["error"], structured(refused)

        endless = {"source": ENDLESS, "args": {"x": "float32[4,4]"}, "max_steps": 10**15}
        for tool in ("run", "check"):
            ended = await session.call_tool(tool, endless)
            assert is_error(ended) and structured(ended)["error"] == "not finished within 2 seconds"
        with pytest.raises(Exception, match="no tool `fly`"):
            unknown = await session.call_tool("fly", {})
            raise ValueError(unknown.content[0].text)
        assert structured(await session.call_tool("run", {"source": SOURCE, "args": args}))["status"] == "passed"

    talk(conversation, "--max-seconds", "2", "--jobs", "1")
