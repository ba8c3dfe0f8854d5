"""`nki-sim check --format`: the formats that other programs read."""

import json
import pathlib
import re
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree

import pytest

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl

# nki-sim: x=float32[128,64]
@nki.jit
def kernel(x):
    print("said by the kernel")
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    {body}
    return out
"""
FINE = "nisa.dma_copy(dst=out, src=t)"
WRONG = "nisa.dma_copy(dst=out, src=t[0:64, :])"
#: A warning: the last copy is never read.
WARNED = "nisa.dma_copy(dst=out, src=t); nisa.memset(dst=t, value=0)"
#: A finding that can be denied: a tile that was never written.
UNWRITTEN = "u = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(dst=out, src=u)"
SAID = "said by the kernel"
FORMATS = ["text", "json", "sarif", "github", "junit"]


def check(folder, body, *words, name="k<&>.py"):
    (folder / name).write_text(KERNEL.format(body=body))
    command = [sys.executable, "-m", "nki_sim", "check", name, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def documents(folder, body, code, *words):
    """The output in each format, with this exit code, and the same text on standard error as without a format."""
    plain = check(folder, body, *words)
    assert plain.returncode == code, plain.stderr
    out = {}
    for form in FORMATS:
        done = check(folder, body, *words, "--format", form)
        assert done.returncode == code, done.stderr
        assert [line for line in plain.stderr.splitlines() if line not in done.stderr] == []
        if form != "text":
            assert SAID in done.stderr and SAID not in done.stdout
        out[form] = done.stdout
    assert out["text"] == plain.stdout
    return out


def results(text):
    """The results of a log, whose contents must conform to SARIF 2.1.0."""
    log = json.loads(text)
    assert set(log) == {"$schema", "version", "runs"} and log["version"] == "2.1.0" and log["$schema"].startswith("https://")
    [run] = log["runs"]
    assert set(run) == {"tool", "automationDetails", "columnKind", "results"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert driver["name"] == "nki-sim" and re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"] and rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        assert len(set(rule["properties"]["tags"])) == len(rule["properties"]["tags"])
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            place = location["physicalLocation"]
            parsed = urllib.parse.urlsplit(place["artifactLocation"]["uri"])
            assert parsed.path and not re.search(r'[\s<>"\\^`{|}#]', parsed.path)
            assert all(n >= 1 and isinstance(n, int) for n in place.get("region", {"startLine": 1}).values())
            assert "startLine" in place.get("region", {"startLine": 1})
    return run["results"]


def cases(text):
    """The cases of the only suite, whose counts must be correct."""
    suites = xml.etree.ElementTree.fromstring(text)
    [suite] = suites
    found = list(suite)
    for element in (suites, suite):
        assert int(element.get("tests")) == len(found)
        assert int(element.get("failures")) == sum(case.find("failure") is not None for case in found)
    assert suite.get("name") == "nki-sim check kernel"
    return found


def test_a_wrong_kernel(tmp_path):
    out = documents(tmp_path, WRONG, 1)
    assert out["text"] == f"{SAID}\n"
    [found] = [f for f in json.loads(out["json"])["findings"] if f["severity"] == "error"]
    line = found["line"]
    assert KERNEL.splitlines()[line - 1].strip() == "{body}" and found["file"] == "k<&>.py"
    [result] = results(out["sarif"])
    assert (result["ruleId"], result["level"]) == (found["id"], "error") and found["message"] in result["message"]["text"]
    [at] = [location["physicalLocation"] for location in result["locations"]]
    assert urllib.parse.unquote(at["artifactLocation"]["uri"]) == "k<&>.py"
    assert at["region"] == {"startLine": line, "startColumn": found["column"]}
    [annotation] = out["github"].splitlines()
    assert annotation.startswith(f"::error file=k<&>.py,line={line},col={found['column']},title=nki-sim%3A {found['id']}::")
    [case] = cases(out["junit"])
    assert case.get("name") == f"{found['id']} at k<&>.py:{line}" and case.find("failure").get("message") == found["message"]


def test_a_warning(tmp_path):
    out = documents(tmp_path, WARNED, 0)
    found = json.loads(out["json"])["findings"]
    assert found and all(f["severity"] == "warning" for f in found)
    assert [r["level"] for r in results(out["sarif"])] == ["warning"] * len(found)
    assert all(line.startswith("::warning file=") for line in out["github"].splitlines())
    assert [case.find("failure") for case in cases(out["junit"])] == [None] * len(found)


def test_a_denied_finding(tmp_path):
    out = documents(tmp_path, UNWRITTEN, 1, "--deny", "uninitialized-read")
    assert [r["level"] for r in results(out["sarif"]) if r["ruleId"] == "uninitialized-read"] == ["error"]
    assert "::error " in out["github"] and any(case.find("failure") is not None for case in cases(out["junit"]))
    assert json.loads(out["json"])["denied"]


def test_nothing_found(tmp_path):
    out = documents(tmp_path, FINE, 0)
    assert "no errors" in out["text"] and json.loads(out["json"])["findings"] == []
    assert results(out["sarif"]) == []
    assert out["github"].startswith("::notice title=nki-sim check kernel::no findings")
    [case] = cases(out["junit"])
    assert case.get("name") == "no findings" and len(case) == 0


def test_a_syntax_error_and_a_wrong_run_line(tmp_path):
    for body, replaced in (("nisa.dma_copy(", None), (FINE, ("x=float32[128,64]", "y=float32[128,64]"))):
        text = KERNEL.format(body=body)
        (tmp_path / "s.py").write_text(text.replace(*replaced) if replaced else text)
        for form in FORMATS[1:]:
            command = [sys.executable, "-m", "nki_sim", "check", "s.py", "--format", form]
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
            assert done.returncode == 1, done.stderr
            if form == "sarif":
                assert [r["level"] for r in results(done.stdout)] == ["error"]
            elif form == "junit":
                assert 'failures="1"' in done.stdout
            else:
                assert "error" in done.stdout


@pytest.mark.parametrize("words", [["none.py"], ["k.py", "--arg", "x=float32[0"]])
def test_the_document_of_a_wrong_call_says_so(tmp_path, words):
    (tmp_path / "k.py").write_text(KERNEL.format(body=FINE))
    command = [sys.executable, "-m", "nki_sim", "check", "--format", "sarif", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    [run] = json.loads(done.stdout)["runs"]
    [invocation] = run["invocations"]
    assert done.returncode == invocation["exitCode"] == 2 and not invocation["executionSuccessful"] and not run["results"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] in done.stderr


def test_an_unknown_format_has_no_document(tmp_path):
    command = [sys.executable, "-m", "nki_sim", "check", "--format", "yaml", "k.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""


def test_absolute_paths_and_json_files(tmp_path):
    done = check(tmp_path, WRONG, "--format", "sarif", "--json", "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["findings"] and results(done.stdout)
    command = [sys.executable, "-m", "nki_sim", "check", str(tmp_path / "k<&>.py"), "--format", "sarif"]
    done = subprocess.run(command, capture_output=True, text=True)
    [result] = results(done.stdout)
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(uri).path)) == tmp_path / "k<&>.py"


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_output_twice(tmp_path, form):
    assert check(tmp_path, UNWRITTEN, "--format", form).stdout == check(tmp_path, UNWRITTEN, "--format", form).stdout
