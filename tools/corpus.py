#!/usr/bin/env python3
"""Runs public kernels against their references.

    python tools/corpus.py CORPUS.jsonl --sources DIR [--json FILE]

Each line of CORPUS.jsonl names a kernel: id, repo, file, kernel, api, target. DIR holds the
checkouts by name (DIR/nki-library, DIR/aws-neuron-sdk, ...). An entry without a checkout is
skipped.

- Kernels of nki-library run through that library's own tests.
- KLR's language tests run as they are.
- Other kernels run from their file against a NumPy reference in tools/corpus_suite/references.py,
  or without a reference through the repository's own check.

The JSON file is a list of {id, api, status: passed|failed|skipped, reason, seconds}.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import environment, files  # noqa: E402
from corpus_suite import entry  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path, help="one entry a line, as JSON")
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="folder that holds the checkouts by name")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    parser.add_argument("--frontend", choices=["tracer", "parser"], help="who executes kernels, as NKI_COMPILER_FRONTEND says (default tracer: Python)")
    parser.add_argument("-k", dest="filter", default="", help="only entries whose id contains this")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one entry may take (default 600)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="entries run at once (default: one a core)")
    return parser.parse_args()


def read(path: pathlib.Path) -> list[dict]:
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            one["id"], one["repo"], one["file"], one["kernel"], one["api"]
        except (json.JSONDecodeError, KeyError) as error:
            print(f"error: {path}:{number}: not an entry of a corpus: {error!r}", file=sys.stderr)
            sys.exit(2)
        entries.append(one)
    return entries


def main() -> int:
    options = arguments()
    if options.frontend:
        os.environ["NKI_COMPILER_FRONTEND"] = options.frontend
    try:
        entries = [one for one in read(options.corpus) if options.filter in one["id"]]
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    # Install only the packages that the selected entries need: torch alone takes several GB.
    environment.need(sorted({package for one in entries for package in entry.needs(one, options.sources)}))

    results = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        running = {pool.submit(timed, one, options): one["id"] for one in entries}
        for done in concurrent.futures.as_completed(running):
            result = done.result()
            results[running[done]] = result
            print(f"{result['status']:8} {result['seconds']:7.1f} s  {result['id']}  {result['reason'][:160]}", flush=True)
    ordered = [results[one["id"]] for one in entries]
    for api in sorted({result["api"] for result in ordered}):
        count = collections.Counter(result["status"] for result in ordered if result["api"] == api)
        print(f"{api}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    if options.json:
        files.write_whole(options.json, json.dumps(ordered, indent=1))
    return 0


def timed(one: dict, options: argparse.Namespace) -> dict:
    start = time.monotonic()
    status, reason = entry.run(one, options.sources, options.timeout)
    return {"id": one["id"], "api": one["api"], "status": status, "reason": reason, "seconds": round(time.monotonic() - start, 1)}


if __name__ == "__main__":
    sys.exit(main())
