#!/usr/bin/env python3
"""Writes the licences of the crates that the command and the Python package contain.

    tools/third_party.py [FILE]

The file (LICENSE-THIRD-PARTY.txt unless named) lists each crate with its version, its licence and its source, then each licence text once with
the crates that it belongs to. A crate whose archive has no text gets that of the MIT licence with its authors, if MIT is its licence; else it is
an error. tools/release runs this; the file is not part of the repository.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("nki-sim", "nki-sim-python")
NAMES = ("LICENSE", "LICENCE", "UNLICENSE", "COPYING", "COPYRIGHT", "NOTICE")


def cargo(*words):
    return subprocess.run(["cargo", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked():
    """Name and version of each crate that is linked in: no macros, no build scripts, no tests."""
    packages = [word for name in PACKAGES for word in ("-p", name)]
    tree = cargo("tree", "--locked", *packages, "-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}")
    return {tuple(line.split()[:2]) for line in tree.splitlines() if line}


def texts(folder):
    """Licence texts of a crate, and of the C library that it may bring in a folder."""
    files = [p for p in sorted(folder.iterdir()) if p.name.upper().startswith(NAMES)]
    files += sorted(folder.glob("*/LICENSE*"))
    return [p for p in files if p.is_file()]


def mit(known, package):
    """The text of the MIT licence, as other crates have it, with the authors of this one."""
    begin = "Permission is hereby granted, free of charge"
    body = min((text[text.index(begin) :] for text in known if begin in text), key=len)
    authors = ", ".join(a.split(" <")[0] for a in package["authors"]) or f"the authors of {package['repository']}"
    return f"Copyright (c) {authors}\n\n{body}"


def main(file="LICENSE-THIRD-PARTY.txt"):
    used = linked()
    packages = json.loads(cargo("metadata", "--locked", "--format-version=1"))["packages"]
    foreign = [p for p in packages if p["source"] and (p["name"], "v" + p["version"]) in used]
    crates, by_text, missing = [], {}, []
    for package in sorted(foreign, key=lambda p: (p["name"], p["version"])):
        name = f"{package['name']} {package['version']}"
        crates.append(f"{name}: {package['license']}; {package['repository'] or package['homepage'] or ''}")
        found = texts(pathlib.Path(package["manifest_path"]).parent)
        for path in found:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            by_text.setdefault(text, []).append(name)
        if not found:
            missing.append((name, package))
    for name, package in missing:
        if "MIT" not in package["license"]:
            sys.exit(f"{name} ({package['license']}) has no licence text")
        by_text.setdefault(mit(by_text, package), []).append(name)
    parts = [
        "nki-sim contains the crates below and Rust's standard library (MIT OR Apache-2.0).",
        "\n".join(crates),
        *("\n".join(["=" * 100, ", ".join(dict.fromkeys(names)), "=" * 100, text]) for text, names in by_text.items()),
    ]
    (ROOT / file).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{file}: {len(crates)} crates, {len(by_text)} texts")


if __name__ == "__main__":
    main(*sys.argv[1:])
