"""Rows of measured runs: which kernel a row names, its arguments, and how it was timed.

Everything here is derived from the row and from the sources in the checkouts. The tool copies
nothing from them.
"""

import ast
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import textwrap
import threading

import accuracy_bench
import accuracy_inputs
import accuracy_neuronxcc
import accuracy_ports

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORTS = ROOT / "tests" / "ports"
FILE = re.compile(r"[\w.+/-]+\.(?:py|rst|md)\b")
# Packages that kernels import from another checkout: name, path in any checkout.
PACKAGES = {"nkilib": "src/nkilib_src/nkilib"}


class CannotRun(Exception):
    """The reason why a row is omitted."""


def read(path):
    """The rows of a JSONL file, except those of quality D, which are recorded but unusable."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as e:
                sys.exit(f"{path}:{number}: {e}")
    return [r for r in rows if not str(r.get("quality")).startswith("D")]


def target_of(row):
    return str(row.get("hw") or "trn2").split()[0]


def measure_of(row):
    """How the latency was measured: `device` for the duration of an execution, `profile` for the
    total time of a profile, which includes the start and the end of the profiler."""
    stat = str(row.get("stat"))
    if re.search(r"device benchmark|nc_latency|\bNCL\b|\b[pP]\d\d\b|nccom", stat):
        return "device"
    return "profile" if re.search(r"explorer|profile|total_time|device_time|capture", stat, re.I) else "device"


# --- source of a row's kernel


def checkouts(sources):
    """Checkout directories by repository name, without the owner."""
    found = {}
    for child in sorted(p for p in sources.iterdir() if p.is_dir()):
        found.setdefault(re.split(r"[+]|__", child.name)[-1], child)
        # DIR/owner/name
        if not (child / ".git").exists():
            for inner in sorted(p for p in child.iterdir() if p.is_dir() and (p / ".git").exists()):
                found.setdefault(inner.name, inner)
    return found


class Workspace:
    """The checkouts by name, linked into a folder next to the packages that their kernels import."""

    def __init__(self, sources, folder):
        self.folder, self.roots, self.lock = folder, {}, threading.Lock()
        for name, path in checkouts(sources).items():
            if not (folder / name).exists():
                (folder / name).symlink_to(path.resolve())
            self.roots[name] = folder / name
            for package, inside in PACKAGES.items():
                if (path / inside).is_dir() and not (folder / package).exists():
                    (folder / package).symlink_to((path / inside).resolve())

    def find(self, repository, path, commit):
        """The file in a checkout (in any, if `repository` is None); if the work tree lacks it, the
        file in the commit that the row names."""
        names = list(self.roots) if repository is None else [repository] if repository in self.roots else []
        for name in names:
            if (self.roots[name] / path).is_file():
                return self.roots[name] / path
        found = (self.at(name, commit) / path for name in names if commit and self.has(name, f"{commit}:{path}"))
        return next((file for file in found if file.is_file()), None)

    def has(self, name, thing):
        return subprocess.run(["git", "-C", self.roots[name], "cat-file", "-e", thing], capture_output=True).returncode == 0

    def at(self, name, commit):
        """The files of a commit, extracted outside the checkout."""
        out = self.folder / f"{name}-{commit}"
        with self.lock:
            if not out.exists():
                packed = subprocess.run(["git", "-C", self.roots[name], "archive", commit], capture_output=True, check=True).stdout
                with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                    tar.extractall(out, filter="data")
        return out


def candidates(row):
    """(repository or None, path, function or None) for each file that `kernel` of the row names, as
    written."""
    text = row.get("kernel") or ""
    named = [re.split(r"[:@]", row.get(key) or "")[0].rstrip("/").split("/")[-1] for key in ("url", "source")]
    url = re.search(r"github\.com/[\w.-]+/([\w.-]+)", row.get("url") or "")
    for match in FILE.finditer(text):
        path, before, after = match.group(), text[: match.start()], text[match.end() :]
        function = re.match(r"(?:@\w+)?:(\w+)", after)
        repository = re.search(r"(?:^|\s|/)([\w.-]+):$", before)
        if repository:
            yield repository.group(1), path, function and function.group(1)
        else:
            for name in [*(url.groups() if url else ()), *named]:
                yield name, path, function and function.group(1)
            # `aws-neuron-sdk/nki/...`, or `nki/...` without a repository
            first, _, rest = path.partition("/")
            yield first, rest, function and function.group(1)
            yield None, path, function and function.group(1)


def locate(row, workspace):
    """The file of a row's kernel, and the function if the row names it with the file."""
    tried = []
    commit = re.search(r"@(?:HEAD )?([0-9a-f]{7,40})\b", row.get("kernel") or "")
    for repository, path, function in candidates(row):
        file = workspace.find(repository, path, commit and commit.group(1))
        if file:
            return file, function
        tried.append(f"{repository}/{path}" if repository else path)
    wanted = row.get("kernel_fn")
    raise CannotRun(f"no source: {', '.join(dict.fromkeys(tried)) or wanted or 'the row names no file'} is not in --sources")


def code_block(path, row, function):
    """The code block of a document that defines the function. Of several, the last one before the
    document shows the row's variant."""
    text = path.read_text()
    label = re.search(r"code block for (v\d+)", row["kernel"])
    end = text.find(f"/{label.group(1)}-") if label else len(text)
    blocks = re.finditer(r"^( *)\.\. code-block:: python\n((?:\1 +.*\n|\s*\n)+)", text[: end if end > 0 else len(text)], re.M)
    with_it = [textwrap.dedent(b.group(2)) for b in blocks if re.search(rf"def {function}\b", b.group(2))]
    if not with_it:
        raise CannotRun(f"no code block in {path.name} defines {function}")
    return with_it[-1]


def functions_of(text):
    """Functions of a file: name -> its definition."""
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise CannotRun(f"not Python: {e}") from None
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_kernel(definition):
    return any("jit" in ast.unparse(d) for d in definition.decorator_list)


def entry(path, wanted, target, folder):
    """(file to run, kernel name, its definition, the source of the definition, the benchmark or
    None) for a row's kernel.

    If `wanted` is a pattern or the name of a function without @nki.jit, the kernel is the wrapper
    in the benchmark next to the file.
    """
    text = path.read_text()
    functions = functions_of(text)
    kernels = [name for name, node in functions.items() if is_kernel(node)]
    bench = accuracy_bench.beside(path, target)
    if wanted in functions and (is_kernel(functions[wanted]) or bench is None):
        return path, wanted, functions[wanted], text, bench
    if len(kernels) == 1:
        return path, kernels[0], functions[kernels[0]], text, bench
    if bench:
        own = functions_of(bench.read_text())
        wrappers = [name for name, node in own.items() if is_kernel(node)]
        if len(wrappers) == 1:
            return accuracy_bench.definitions(bench, folder), wrappers[0], own[wrappers[0]], bench.read_text(), bench
    raise CannotRun(f"{path.name} has no kernel {wanted}, and no benchmark next to it has one")


def cores_of(row, path, kernel, bench):
    """The number of physical cores that run the kernel: the grid of the launch. Without a grid a
    kernel runs on one core, even on a logical core of two."""
    grid = (row.get("params") or {}).get("grid")
    if grid:
        return int(grid)
    if not str(row.get("lnc", 1)).startswith("2"):
        return 1
    for source in [bench] if bench else [path]:
        grid = re.search(rf"\b{kernel}\s*\[\s*\(?(\d)", source.read_text())
        if grid:
            return int(grid.group(1))
    return 1


# --- one run


def commands(row, workspace, folder):
    """The words after `nki-sim run` for each launch of a row. Files that it needs are written to `folder`."""
    common = ["--no-numerics", "--target", target_of(row)]
    port = accuracy_ports.words(row, PORTS)
    if port:
        return [[*port, *common]]
    if accuracy_neuronxcc.is_older(row):
        return [[*words, *common] for words in older_launches(row, workspace, folder)]
    path, function = locate(row, workspace)
    function = function or row.get("kernel_fn") or ""
    if path.suffix != ".py":
        text = code_block(path, row, function)
        path = folder / (re.sub(r"\W", "_", row["id"]) + ".py")
        path.write_text(text)
    path, kernel, definition, source, bench = entry(path, function, target_of(row), folder)
    words = [str(path), "--kernel", kernel, *common]
    if cores_of(row, path, kernel, bench) > 1:
        words += ["--lnc", "2"]
    try:
        arguments = accuracy_inputs.arguments(row, definition, source, bench or path, folder)
    except accuracy_inputs.Unknown as e:
        raise CannotRun(str(e)) from None
    return [words + [w for a in arguments for w in ("--arg", a)]]


def older_launches(row, workspace, folder):
    """The words for each launch of a kernel for neuronxcc.nki."""
    block = accuracy_neuronxcc.traced_block(row)
    if block:
        file = workspace.find(None, block[0], None)
        path = file and accuracy_neuronxcc.code_block(file, block[1], folder)
        if path is None:
            raise CannotRun(f"no source: {block[0]} is not in --sources")
    else:
        path, _ = locate(row, workspace)
    functions = functions_of(path.read_text())
    found = accuracy_neuronxcc.launches(row, path, [name for name, node in functions.items() if is_kernel(node)], folder)
    if found is None:
        raise CannotRun(f"{path.name} has no kernel {row.get('kernel_fn')}")
    flags = accuracy_neuronxcc.compiler_flags(row)
    for file, kernel, tensors in found:
        try:
            arguments = accuracy_neuronxcc.arguments(row, functions[kernel], tensors, path, workspace.folder, folder)
        except accuracy_inputs.Unknown as e:
            raise CannotRun(str(e)) from None
        yield [str(file), "--kernel", kernel, *flags, *(w for a in arguments for w in ("--arg", a))]
