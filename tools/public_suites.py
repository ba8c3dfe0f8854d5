#!/usr/bin/env python3
"""Runs public test suites at pinned commits and compares the results with the recorded ones.

    python tools/public_suites.py [NAME...] [--checkout DIR] [--update]

tools/public_suites.json names for each suite its repository, the commit, the packages that it needs, the arguments of tools/suites.py and the
recorded figures. Without --checkout the commit is fetched into target/suites/NAME. The exit code is 1 if a suite passes fewer tests or fails
more than recorded; `--update` records the figures of this run. The Python that runs this needs nki_sim and the packages of the suite
(`--packages NAME` prints them).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "public_suites.json"
FIGURES = ("passed", "failed", "skipped", "failed_by_reason")


def fetch(suite: dict, folder: pathlib.Path) -> None:
    """Puts the pinned commit into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for words in (["init", "--quiet"], ["fetch", "--quiet", "--depth", "1", suite["repository"], suite["commit"]], ["checkout", "--quiet", "--force", "FETCH_HEAD"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


def run(suite: dict, folder: pathlib.Path) -> dict:
    """The figures of one suite."""
    for path, text in suite.get("files", {}).items():
        (folder / path).write_text(text)
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch, "results.json")
        words = [sys.executable, str(ROOT / "tools" / "suites.py"), str(folder), *suite["arguments"], "--json", str(out)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **suite.get("environment", {})})
        (entry,) = json.loads(out.read_text())
    return {name: entry[name] for name in FIGURES}


def main() -> int:
    suites = json.loads(RECORD.read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(suites)} (default: all)")
    parser.add_argument("--checkout", type=pathlib.Path, help="folder of a clone at the pinned commit, for one suite")
    parser.add_argument("--update", action="store_true", help="record the figures of this run")
    parser.add_argument("--packages", action="store_true", help="print the packages that the suites need")
    options = parser.parse_args()
    names = options.names or list(suites)
    unknown = [name for name in names if name not in suites]
    if unknown:
        parser.error(f"no suite is called {', '.join(unknown)}; they are {', '.join(suites)}")
    if options.checkout and len(names) != 1:
        parser.error("--checkout is for one suite")
    if options.packages:
        print("\n".join(dict.fromkeys(package for name in names for package in suites[name]["packages"])))
        return 0
    worse = []
    for name in names:
        suite, folder = suites[name], options.checkout or ROOT / "target" / "suites" / name
        if options.checkout is None:
            fetch(suite, folder)
        have, recorded = run(suite, folder.resolve()), suite.get("figures")
        print(f"{name}: {have['passed']} passed, {have['failed']} failed, {have['skipped']} skipped; {have['failed_by_reason']}")
        if options.update:
            suite["figures"] = have
            RECORD.write_text(json.dumps(suites, indent=2) + "\n")
        elif recorded is None or have["passed"] < recorded["passed"] or have["failed"] > recorded["failed"]:
            worse.append(name)
            print(f"{name}: worse than recorded: {recorded}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
