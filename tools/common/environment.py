"""The Python packages that a tool needs: already importable, or installed into an environment under
target/."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / "target" / "tools-venv"

# Distributions whose module has a different name.
MODULES = {"aws-embedded-metrics": "aws_embedded_metrics", "pytest-html": "pytest_html", "pytest-metadata": "pytest_metadata", "pytest-xdist": "xdist", "attrs": "attr"}

# Sources of nki_sim.
SOURCES = ["Cargo.lock", "Cargo.toml", "pyproject.toml", "diag", "frontend", "isa", "python", "sim", "src"]


def missing(packages: list[str]) -> list[str]:
    """The members of `packages` that this interpreter cannot import."""
    return [name for name in packages if importlib.util.find_spec(MODULES.get(name, name)) is None]


def need(packages: list[str]) -> None:
    """Returns when every package can be imported.

    Missing packages are installed into target/tools-venv, once, and the tool restarts there.
    `nki_sim` is built from this repository, and again when the repository has changed. Exits with 2
    if the packages cannot be installed.
    """
    inside = pathlib.Path(sys.prefix) == VENV
    if not inside and not missing(packages):
        return
    python = VENV / "bin" / "python"
    try:
        if not python.exists():
            make()
        lacking = missing_there(python, packages)
        if lacking:
            print(f"Installing {', '.join(lacking)} into {VENV}", flush=True)
            if "torch" in lacking:
                install_torch(python)
            wanted = [str(ROOT) if name == "nki_sim" else name for name in lacking if name != "torch"]
            if wanted:
                install(python, *wanted)
            # Sources that change during the build of nki_sim make it stale, not missing; the next
            # run builds it again.
            lacking = missing_there(python, packages, stale=False)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    if lacking:
        print(f"error: {', '.join(lacking)} cannot be imported even in {VENV}", file=sys.stderr)
        sys.exit(2)
    if not inside:
        os.execv(str(python), [str(python), *sys.argv])


def make() -> None:
    """Creates the environment. It includes the packages of this interpreter."""
    command = [sys.executable, "-m", "venv", "--system-site-packages"]
    # Without Debian's python3-venv a new environment has no pip; the pip of this interpreter is
    # used then.
    if subprocess.run([*command, str(VENV)], capture_output=True).returncode != 0:
        subprocess.run([*command, "--clear", "--without-pip", str(VENV)], check=True)


def install(python: pathlib.Path, *packages: str) -> None:
    """Like `pip install` in the environment."""
    inside = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True).returncode == 0
    pip = [str(python), "-m", "pip"] if inside else [sys.executable, "-m", "pip", "--python", str(python)]
    done = subprocess.run([*pip, "install", "--quiet", *packages], capture_output=True, text=True)
    # pip's warnings concern torch without CUDA, or other environments.
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()


def install_torch(python: pathlib.Path) -> None:
    """torch for the CPU.

    On Linux its wheel requires 4 GB of CUDA libraries that these tools never call;
    tests/cpu_torch.py makes it work without them.
    """
    if sys.platform != "linux":
        return install(python, "torch")
    install(python, "--no-deps", "torch")
    install(python, "filelock", "fsspec", "jinja2", "networkx", "sympy", "typing-extensions", "setuptools")
    site = subprocess.run([str(python), "-c", "import site; print(site.getsitepackages()[0])"], check=True, capture_output=True, text=True)
    works = [str(python), "-c", "import torch"]
    if subprocess.run(works, capture_output=True).returncode != 0:
        subprocess.run([sys.executable, str(ROOT / "tests" / "cpu_torch.py"), site.stdout.strip()], capture_output=True)
    if subprocess.run(works, capture_output=True).returncode != 0:
        install(python, "torch")


def missing_there(python: pathlib.Path, packages: list[str], stale: bool = True) -> list[str]:
    """The members of `packages` that the environment lacks; with `stale`, also nki_sim if it is
    older than its sources."""
    code = (
        "import importlib.util, json, sys\n"
        "found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}\n"
        "print(json.dumps({name: spec and spec.origin for name, spec in found.items()}))\n"
    )
    modules = [MODULES.get(name, name) for name in packages]
    asked = subprocess.run([str(python), "-c", code, *modules], check=True, capture_output=True, text=True, cwd=VENV)
    origin = json.loads(asked.stdout)
    lacking = [name for name, module in zip(packages, modules) if origin[module] is None]
    if stale and origin.get("nki_sim") and is_stale(pathlib.Path(origin["nki_sim"]).parent):
        lacking.append("nki_sim")
    return lacking


def is_stale(package: pathlib.Path) -> bool:
    """Whether the package was installed into the tools' environment before its sources changed.

    A package that is installed elsewhere belongs to the user and is never stale.
    """
    if VENV not in package.parents:
        return False
    built = max(file.stat().st_ctime for file in package.glob("_native*"))
    files = [path for name in SOURCES for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))]
    return any(path.is_file() and "__pycache__" not in path.parts and path.stat().st_mtime > built for path in files)
