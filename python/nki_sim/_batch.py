"""Many kernels in warm processes: `nki_sim.batch`."""

import atexit
import hashlib
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping

import numpy as np

from ._arrays import TensorSpec, packed_name
from ._errors import ArgumentTypeError

#: Idle worker processes, by their command-line options. They end with this process.
_idle = {}
_lock = threading.Lock()


def batch(jobs, *, workers=None, max_seconds=None, max_memory=None):
    """Runs, times and compares many kernels in warm processes, within limits. Yields a dict for
    each job, in the order of the jobs, as soon as it and those before it are known.

    :param jobs: dicts with the fields of a job of `nki-sim batch` (docs/cli.md). Arguments and
        expected outputs may also be arrays or `TensorSpec`s, and `file` a path.
    :param workers: processes; by default one for each CPU.
    :param max_seconds: limit of a job; 60 by default.
    :param max_memory: limit of a job: "512MiB" or a number of bytes.
    :raises TypeError: if `jobs` is a single job or a string.
    :raises ValueError: for an invalid limit.
    """
    if isinstance(jobs, (str, bytes, Mapping, os.PathLike)):
        raise ArgumentTypeError(f"batch(jobs): jobs must be a list of dicts, not a {type(jobs).__name__}")
    words = []
    for option, value in (("--jobs", workers), ("--max-seconds", max_seconds), ("--max-memory", max_memory)):
        if value is not None:
            words += [option, str(value)]
    return _results(jobs, words)


def _results(jobs, words):
    """The results of jobs, from a process with these options."""
    # Messages go to a file: nothing reads a pipe before the results end, and a full one would block the process.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as messages:
        process = _start(words, stderr=messages)
        failed, unsendable = [], {}

        def send():
            try:
                with process.stdin:
                    for number, job in enumerate(jobs, 1):
                        try:
                            line = json.dumps(written(job, folder))
                        except (TypeError, ValueError, OverflowError) as error:
                            # The command rejects a job without a kernel; the real reason is this
                            # error.
                            unsendable[number] = str(error)
                            known = plain(job.get("id"))
                            line = json.dumps({"id": known} if isinstance(known, (str, int, float)) else {})
                        process.stdin.write(line + "\n")
                        process.stdin.flush()
            except BrokenPipeError:
                pass
            except BaseException as error:
                failed.append(error)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        try:
            for line in process.stdout:
                row = json.loads(line)
                row["error"] = unsendable.get(row["line"], row.get("error"))
                if row.get("error"):
                    row["error"] = _without_files(row["error"], folder)
                yield row
            code = process.wait()
            messages.seek(0)
            said = messages.read().decode(errors="replace").strip()
            if not failed and code not in (0, 1):
                raise ValueError(said.removeprefix("error: ") or f"nki-sim batch: exit code {code}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            sender.join(1)
        if failed:
            raise failed[0]


def _without_files(text, folder):
    """An error without the names of the files that arrays were written to, which the caller does
    not know."""
    file = re.escape(os.path.join(folder, "")) + r"\w+\.npy"
    return re.sub(file, "FILE.npy", re.sub(rf"`{file}(:\w+)?`: ", "", text))


def written(job, folder):
    """A job with its arrays written to files in the folder. Other values than dicts are left for
    the command to reject."""
    if not isinstance(job, Mapping):
        return job if isinstance(job, (bool, int, float, str, type(None))) else repr(job)
    job = dict(job)
    if "file" in job:
        job["file"] = os.fspath(job["file"])
    if "id" in job:
        job["id"] = plain(job["id"])
        if not isinstance(job["id"], (str, int, float, type(None))):
            raise ValueError(f"`id` must be a string or a number, not a {type(job['id']).__name__}")
    for name, value in dict(job["expect"]).items() if isinstance(job.get("expect"), Mapping) else ():
        if isinstance(plain(value), (bool, int, float)):
            raise ValueError(f"`expect`, {name}: {value} is a number, and an output is an array: pass np.full(shape, {value})")
    for field in ("args", "expect"):
        if isinstance(job.get(field), Mapping):
            job[field] = {name: value_of(name, value, folder) for name, value in job[field].items()}
    return job


def plain(value):
    """A NumPy number as a Python number, also inside tuples and lists; other values unchanged."""
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        return value.item()
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def value_of(name, value, folder):
    """An argument in the form that a job uses."""
    value = plain(value)
    if isinstance(value, TensorSpec) or (folder is None and hasattr(value, "shape") and hasattr(value, "dtype")):
        return spec(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.ascontiguousarray(value)
        kind = packed_name(array.dtype) or array.dtype.name
        data = io.BytesIO()
        # For dtypes that NumPy lacks, save raw bytes; the path names the dtype.
        np.save(data, array.view(f"V{array.itemsize}") if array.dtype.kind == "V" else array)
        path = pathlib.Path(folder, hashlib.sha256(data.getvalue()).hexdigest() + ".npy")
        if not path.exists():
            path.write_bytes(data.getvalue())
        return f"{path}:{kind}" if array.dtype.kind == "V" else str(path)
    if isinstance(value, list):
        return [value_of(name, v, folder) for v in value]
    if isinstance(value, tuple):
        # JSON has no tuples.
        items = [value_of(name, v, folder) for v in value]
        return "(" + "".join(f"{v if isinstance(v, str) else repr(v)}, " for v in items) + ")"
    if isinstance(value, float) and not math.isfinite(value):
        # JSON cannot represent this number; the syntax of arguments can.
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str, dict)):
        return value
    raise ValueError(f"`{name}`: a {type(value).__name__} is neither a tensor nor a literal")


def spec(value):
    """The shape and dtype of a tensor in the syntax of the command line."""
    dtype = value.dtype
    kind = (packed_name(dtype) or dtype.name) if isinstance(dtype, np.dtype) else str(dtype).rsplit(".", 1)[-1]
    return f"{kind}[{','.join(str(n) for n in value.shape)}]"


def _start(words, stderr=subprocess.DEVNULL):
    return subprocess.Popen(
        [sys.executable, "-m", "nki_sim", "batch", "-", "--parent", str(os.getpid()), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
    )


def ask(job, max_seconds):
    """The result of one job, from a process that stays warm after its first job. Safe to call from
    any number of threads."""
    words = ["--jobs", "1", "--max-seconds", str(max_seconds)]
    if "max_memory" in job:
        # The process runs one job at a time, so the job may use all of its memory.
        words += ["--max-memory", str(job["max_memory"])]
    kind = tuple(words)
    with _lock:
        waiting = _idle.setdefault(kind, [])
        process = waiting.pop() if waiting else None
    if process is None or process.poll() is not None:
        process = _start(words)
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the process of the workers ended: exit code {process.wait()}")
    with _lock:
        _idle.setdefault(kind, []).append(process)
    return json.loads(line)


def end_idle():
    """Ends the idle worker processes."""
    with _lock:
        processes = [process for waiting in _idle.values() for process in waiting]
        _idle.clear()
    for process in processes:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def _forget():
    global _lock
    _lock = threading.Lock()
    # After a fork, these processes belong to the parent.
    for waiting in _idle.values():
        for process in waiting:
            process.returncode = 0
    _idle.clear()


atexit.register(end_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
