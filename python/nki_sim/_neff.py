"""Files of other tools: programs (`.neff`), profiles (`.ntff`) and reports (`json_reports`).

The format is nki-sim's own: JSON with the program, its predicted profile if it has run, and the
version of the simulator. `neuron-profile` (`_neuron_profile`) and `nrtpy` (`_nrtpy`) read them.
"""

import csv
import io
import json
import os

from . import _files, _native

#: The value of a file's first key.
NEFF, NTFF = "nki-sim neff 1", "nki-sim ntff 1"


def profile_of(report, outcome, compiled):
    """The profile of a timed run: summary, program text and instruction table. Text and table are
    computed when written."""
    return {
        "kernel": report["kernel"],
        "target": report["target"],
        "lnc": report["lnc"],
        "latency_valid": report.latency_valid,
        "summary": summary_of(report["summary"]),
        "instructions": outcome.csv,
        **program_of(compiled),
    }


def program_of(compiled):
    """What runs the program again. The text is computed when written."""
    return {"program": compiled.text, "outputs": len(compiled.outputs()), "older_compiler": compiled.older_compiler()}


def save_artifact(kernel, compiled):
    """Writes the program to `kernel.neff` in the folder that NKI_ARTIFACTS_DIR names, as the
    compiler of NKI does. Without the variable nothing is written."""
    (folder,) = _native.variables("NKI_ARTIFACTS_DIR")
    if folder:
        try:
            os.makedirs(folder, exist_ok=True)
            write_program(os.path.join(folder, "kernel.neff"), kernel, compiled)
        except OSError as error:
            raise type(error)(error.errno, f"NKI_ARTIFACTS_DIR: {error.strerror}", error.filename) from None


def write_program(path, kernel, compiled, **more):
    """Writes a program that has not run, with further entries."""
    head = {"format": NEFF, "nki_sim_version": _native.__version__, "kernel": kernel.__name__}
    write_json(path, {**head, **program_of(compiled), "program": compiled.text(), **more})


def summary_of(fields):
    """The summary with fractions instead of percentages, as `neuron-profile` reports them."""
    return {name: value / 100 if name.endswith("_percent") else value for name, value in sorted(fields.items())}


def full(profile):
    """The profile as the JSON that `neuron-profile view --output-format json` writes."""
    return {
        "summary": [profile["summary"]],
        "metadata": [{"is_simulation": True, "nki_sim_version": _native.__version__, "last_hw_timestamp": _last(profile), "first_hw_timestamp": 0}],
        "profile_info": [{"profile_name": profile["kernel"], "profile_type": "simulated"}],
        "instruction": _instructions(profile),
    }


def _last(profile):
    return round(profile["summary"]["total_time"] * 1e9)


def _instructions(profile):
    text = profile["instructions"]
    rows = csv.DictReader(io.StringIO(text() if callable(text) else text))
    return [
        {
            "id": int(row["id"]),
            "timestamp": int(row["start_ts"]),
            "duration": int(row["duration_ns"]),
            "label": row["engine"].capitalize() if row["engine"] != "gpsimd" else "GpSimd",
            "opcode": row["opcode"],
            "operands": row["operands"],
            "pc": int(row["pc"]),
            "nki_source_location": row["nki_source_location"],
            "evt_wait_time": int(row["evt_wait_time_ns"] or 0),
            "pcore_idx": int(row["pcore_idx"]),
        }
        for row in rows
    ]


def write_neff(path, profile):
    """Writes the program, with the profile that `neuron-profile capture` extracts."""
    text = profile["program"]
    program = {"program": text() if callable(text) else text, "outputs": profile["outputs"], "older_compiler": profile["older_compiler"]}
    write_json(path, {"format": NEFF, **_stored(profile), **program})


def write_ntff(path, profile):
    """Writes the profile."""
    write_json(path, {"format": NTFF, **_stored(profile)})


def write_json(path, value):
    """Writes JSON atomically."""
    _files.write(path, json.dumps(value))


def read(path, kind):
    """The contents of a file.

    :raises ValueError: if it is not a file of this kind that the simulator wrote.
    """
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (UnicodeDecodeError, json.JSONDecodeError):
        data = None
    if not isinstance(data, dict) or data.get("format") != kind:
        what = "program (NEFF)" if kind == NEFF else "profile (NTFF)"
        raise ValueError(f"{path}: this is not a {what} of the simulator; files of the hardware tools cannot be read")
    return data


def _stored(profile):
    text = profile["instructions"]
    return {
        "nki_sim_version": _native.__version__,
        **{name: profile[name] for name in ("kernel", "target", "lnc", "latency_valid", "summary")},
        "instructions": text() if callable(text) else text,
    }
