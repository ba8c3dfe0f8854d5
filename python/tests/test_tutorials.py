"""The tutorials, the guides and the pages below run as they stand: their files are written, their commands executed, and what the page shows is printed.

- ```python title="NAME" (or toml) is a file.
- ```console holds commands (lines that begin with `$`) and below each one lines of what it prints, in this order; lines that the page
  leaves out do not matter. ```console fails: the last command has an exit code that is not 0.

`BLESS=1` writes the nearest line that was printed over one that was not.
"""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ["../README.md", "cli.md", "workbench.md", *sorted(p.relative_to(DOCS).as_posix() for folder in ("tutorials", "how_to") for p in (DOCS / folder).glob("*.md"))]
BLOCK = re.compile(r'^```((?:python|toml) title="(?P<file>[^"]+)"|console(?P<fails> fails)?)\n(?P<text>.*?)^```$', re.M | re.S)


@pytest.fixture
def shell(tmp_path):
    """Executes a command in a separate folder, with the `nki-sim` and `python` of this environment."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("nki-sim", "nki_sim"), ("pytest", "pytest"), ("python", None)):
        words = [sys.executable, *(["-m", module] if module else [])]
        (programs / name).write_text("#!/bin/sh\nexec " + " ".join(f"'{w}'" for w in words) + ' "$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "examples").symlink_to(DOCS.parent / "examples")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(command):
        return subprocess.run(
            command, shell=True, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )

    run.folder = folder
    return run


def commands(text):
    """The commands of a block, each with the output lines below it."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out and not out[-1][1] and out[-1][0].endswith("\\"):
            out[-1] = (out[-1][0][:-1] + line.strip(), [])
        else:
            out[-1][1].append(line)
    return out


def missing(shown, printed):
    """The first line that the output does not contain after the lines before it."""
    lines = iter(printed.splitlines())
    for line in shown:
        if line.strip() and not any(line.strip() in p for p in lines):
            return line
    return None


@pytest.mark.skipif(os.name == "nt" or shutil.which("sed") is None, reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize("page", PAGES)
def test_page(page, shell):
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    if "import duckdb" in text:
        pytest.importorskip("duckdb", reason="the page queries tables: pip install duckdb")
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{page} shows nothing that runs"
    blessed = text
    for block in blocks:
        if block["file"]:
            file = shell.folder / block["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block["text"], encoding="utf-8")
            continue
        list_of = commands(block["text"])
        for n, (command, shown) in enumerate(list_of):
            done = shell(command)
            fails = bool(block["fails"]) and n == len(list_of) - 1
            assert (done.returncode != 0) == fails, f"{page}: {command}: exit code {done.returncode}\n{done.stdout}"
            if os.environ.get("BLESS"):
                for line in shown:
                    if missing([line], done.stdout) is not None:
                        near = difflib.get_close_matches(line, done.stdout.splitlines(), 1, 0)
                        blessed = blessed.replace(line + "\n", near[0] + "\n")
                continue
            line = missing(shown, done.stdout)
            assert line is None, f"{page}: {command} does not print\n  {line}\nbut\n{done.stdout}"
    if blessed != text:
        path.write_text(blessed, encoding="utf-8")


def test_every_page_is_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    assert pages == set(re.findall(r": (\S+\.md)$", navigation, re.M))
