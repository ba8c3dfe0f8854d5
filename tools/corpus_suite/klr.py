"""KLR's language tests. Each names a function that a compiler of the language must accept or
reject."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NEEDS = ["numpy", "pytest", "nki_sim"]
TOOLS = pathlib.Path(__file__).resolve().parent.parent


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Runs the test with the function as its parameter. Its module `klr` is tools/shims/klr, which
    calls the simulator."""
    file = (sources / one["file"]).resolve()
    with tempfile.TemporaryDirectory(prefix="nki-corpus-") as folder:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(TOOLS / "shims"), str(TOOLS), str(file.parent)])
        environment["NKI_SIM_RESULTS"] = str(pathlib.Path(folder) / "results.json")
        environment["NKI_SIM_FUNCTION"] = one["kernel"]
        # The language is KLR's, not Python.
        environment["NKI_COMPILER_FRONTEND"] = "parser"
        if re.search("negative|must fail", one.get("reference") or "", re.IGNORECASE):
            environment["NKI_SIM_REFUSED"] = "1"
        # Use a separate configuration: KLR's would find its real package before the shim.
        configuration = pathlib.Path(folder) / "pytest.ini"
        configuration.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(configuration), "--rootdir", folder, "--tb=short", "-p", "no:cacheprovider", "-p", "corpus_suite.klr_plugin", str(file)]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return "failed", f"took more than {timeout:.0f} s"
        try:
            outcomes = json.loads(pathlib.Path(environment["NKI_SIM_RESULTS"]).read_text())
        except (OSError, json.JSONDecodeError):
            return "failed", (done.stdout + done.stderr).strip().splitlines()[-1][:300]
    if not outcomes:
        return "failed", f"no test of {file.name} takes {one['kernel']}"
    failed = [reason for status, reason in outcomes.values() if status != "passed"]
    return ("failed", failed[0]) if failed else ("passed", "")
