"""The console programs `neuron-profile` and `neuron-explorer`, one program: reads programs and profiles of the simulator, with those
options of the real programs that scripts use."""

import argparse
import json
import os
import sys

from . import _files, _native, _neff

#: Options of the real programs without effect here: `capture` runs a program on no device, and `view` has no pages or database.
_CAPTURE = ("--enable-dge-notifs", "--ignore-exec-errors")
_VIEW = ("--disable-ui", "--ignore-event-trace", "--ingest-only")

#: Formats of the real programs that only the command `nki-sim` writes.
_ELSEWHERE = {"parquet": "--parquet DIR", "perfetto": "--trace FILE"}


def main(words=None):
    """Runs the program; returns its exit status."""
    options = _parser().parse_args(words)
    try:
        return options.run(options)
    except (OSError, ValueError) as error:
        named = isinstance(error, OSError) and error.filename is not None
        text = f"cannot open `{error.filename}`: {error.strerror}" if named else error
        print(f"{_name()}: {text}", file=sys.stderr)
        return 1


def _name():
    """The name by which the program was called."""
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    return name if name == "neuron-explorer" else "neuron-profile"


def _parser():
    parser = argparse.ArgumentParser(
        prog=_name(), description="Profiles of simulated kernels: the files that neuronxcc.nki and nrtpy of nki-sim write."
    )
    parser.add_argument("--version", action="version", version=f"nki-sim {_native.__version__}")
    commands = parser.add_subparsers(required=True, metavar="capture | view")
    capture = commands.add_parser("capture", help="write the profile of a program")
    capture.add_argument("-n", "--neff-path", "--neff", default="file.neff", help="program")
    capture.add_argument("-s", "--session-file", default="profile.ntff", help="profile to write")
    capture.add_argument("--profile-nth-exec", type=int, default=1, help="execution that is profiled; all are equal here")
    capture.add_argument("--num-exec", type=int, default=1, help="number of executions; all are equal here")
    _without_effect(capture, _CAPTURE)
    capture.set_defaults(run=_capture)
    view = commands.add_parser("view", help="print a profile")
    view.add_argument("-n", "--neff-path", "--neff", required=True, help="program")
    view.add_argument("-s", "--session-file", required=True, help="profile")
    view.add_argument(
        "--output-format", default="summary-text", choices=["summary-text", "summary-json", "json", *_ELSEWHERE], help="by default summary-text"
    )
    view.add_argument("--output-file", help="file for the output; by default it is printed")
    view.add_argument("-d", "--data-path", help=argparse.SUPPRESS)
    _without_effect(view, _VIEW)
    view.set_defaults(run=_view)
    return parser


def _without_effect(parser, options):
    for option in options:
        parser.add_argument(option, action="store_true", help="no effect")


def _capture(options):
    neff, nth, number = options.neff_path, options.profile_nth_exec, options.num_exec
    if nth < 1:
        raise ValueError(f"--profile-nth-exec {nth}: the first execution is number 1")
    if number < 1:
        raise ValueError(f"--num-exec {number}: at least one execution")
    profile = _profiled(neff)
    if os.path.exists(options.session_file) and os.path.samefile(neff, options.session_file):
        raise ValueError(f"{options.session_file}: the profile would overwrite the program")
    _neff.write_ntff(options.session_file, profile)
    if nth > 1:
        # The file of the n-th execution has n in its name.
        stem, ending = os.path.splitext(options.session_file)
        _neff.write_ntff(f"{stem}_exec_{nth}{ending}", profile)
    return 0


def _profiled(path):
    """The program of a file with its profile. One that NKI_ARTIFACTS_DIR has left has none: it is
    run on zeros."""
    program = _neff.read(path, _neff.NEFF)
    if "summary" not in program:
        from . import _nrtpy

        program = {**program, **_nrtpy.profile_on_zeros(path, program)}
    return program


def _view(options):
    if options.output_format in _ELSEWHERE:
        raise ValueError(
            f"--output-format {options.output_format}: `nki-sim run kernel.py {_ELSEWHERE[options.output_format]}` writes this format, from the kernel"
        )
    program = _neff.read(options.neff_path, _neff.NEFF)
    profile = _neff.read(options.session_file, _neff.NTFF)
    if program["kernel"] != profile["kernel"] or program.get("summary", profile["summary"]) != profile["summary"]:
        raise ValueError(
            f"{options.session_file} is a profile of `{profile['kernel']}`, and not of the program in {options.neff_path} (`{program['kernel']}`)"
        )
    text = {"summary-text": _summary_text, "summary-json": _summary_json, "json": _full_json}[options.output_format](profile)
    if options.output_file is None:
        print(text)
        return 0
    for source in (options.neff_path, options.session_file):
        if os.path.exists(options.output_file) and os.path.samefile(source, options.output_file):
            raise ValueError(f"--output-file {options.output_file}: this is an input")
    _files.write(options.output_file, text + "\n")
    return 0


def _summary_json(profile):
    return json.dumps({profile["kernel"]: profile["summary"]}, indent=2)


def _summary_text(profile):
    width = max(map(len, profile["summary"]))
    lines = [f"{name:<{width}}  {value}" for name, value in profile["summary"].items()]
    return "\n".join([f"{profile['kernel']} (simulated, {profile['target']})", *lines])


def _full_json(profile):
    return json.dumps(_neff.full(profile))


if __name__ == "__main__":
    sys.exit(main())
