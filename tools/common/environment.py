"""The Python packages that a tool needs: found, or installed into an environment of its own under target/."""

import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / "target" / "tools-venv"

# Distributions whose module has another name.
MODULES = {"aws-embedded-metrics": "aws_embedded_metrics", "pytest-html": "pytest_html", "pytest-metadata": "pytest_metadata", "attrs": "attr"}


def missing(packages: list[str]) -> list[str]:
    """Those of `packages` that this interpreter cannot import."""
    return [name for name in packages if importlib.util.find_spec(MODULES.get(name, name)) is None]


def need(packages: list[str]) -> None:
    """Returns when every package can be imported.

    What is missing is installed into target/tools-venv, and the tool starts again inside of it. `nki_sim` is built from this
    repository. Exits with 2 when the packages cannot be installed.
    """
    lacking = missing(packages)
    if not lacking:
        return
    if os.environ.get("NKI_SIM_TOOLS_VENV"):
        print(f"error: {', '.join(lacking)} cannot be imported even in {VENV}", file=sys.stderr)
        sys.exit(2)
    print(f"Installing {', '.join(lacking)} into {VENV} (once)", flush=True)
    python = VENV / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(VENV)], check=True)
        wanted = [str(ROOT) if name == "nki_sim" else name for name in lacking]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    os.environ["NKI_SIM_TOOLS_VENV"] = "1"
    os.execv(str(python), [str(python), *sys.argv])
