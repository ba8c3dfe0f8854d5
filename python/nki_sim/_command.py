"""The console script `nki-sim`: the same command as the binary."""

import ast
import importlib.util
import inspect
import os
import re
import signal
import sys
import traceback
import types


def main():
    from . import _native, install

    # `nki-sim run script.py` runs scripts with this interpreter.
    os.environ.setdefault("NKI_SIM_PYTHON", sys.executable)
    # With `--frontend python`, kernels import the drop-in `nki`.
    install()
    # Otherwise Python would handle Ctrl-C only after the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command_line([sys.argv[0], *sys.argv[1:]]))


def kernels(path, wanted):
    """The kernels of a file, for the native module: its decorated functions or, if it has none, the
    functions that no other function of the file calls; and also the function named `wanted`. Each
    as (name, function, target, [(parameter, default, annotation)], signature, position)."""
    from . import _source
    from ._kernel import Kernel

    path = os.fspath(path)
    _source.give(path)
    module = _imported(os.path.abspath(path))
    definitions = _definitions(path)
    found, plain = {}, {}
    for name, value in vars(module).items():
        if isinstance(value, Kernel) and value.func.__module__ == module.__name__:
            found[value.__name__] = value
        elif isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            plain[name] = value
    if not found:
        found = {name: Kernel(plain[name]) for name in _uncalled(plain, definitions)}
    if wanted in plain and wanted not in found:
        found[wanted] = Kernel(plain[wanted])
    return [(*_described(name, kernel), _place(kernel.func, definitions)) for name, kernel in found.items()]


def _definitions(path):
    """The functions that a file defines: from (line, name), where the line is that of the first
    decorator, to (syntax, bytes of the line with the name)."""
    with open(path, "rb") as file:
        source = file.read()
    lines = source.splitlines()
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[first, node.name] = (node, lines[node.lineno - 1])
    return found


def _definition(function, definitions):
    return definitions.get((function.__code__.co_firstlineno, function.__code__.co_name))


def _uncalled(functions, definitions):
    """The names of the functions that no other one calls, restricted to those that use the device
    if any does; all names if each function is called."""
    calls, of_device = {}, set()
    for name, function in functions.items():
        definition = _definition(function, definitions)
        nodes = list(ast.walk(definition[0])) if definition else []
        calls[name] = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        named = {node.id for node in nodes if isinstance(node, ast.Name)}
        if any(_is_of_api(function, function.__globals__.get(each)) for each in named):
            of_device.add(name)
    while more := {caller for caller, called in calls.items() if called & of_device} - of_device:
        of_device |= more
    free = [name for name in functions if not any(name in calls[other] for other in functions if other != name)]
    return [name for name in free if name in of_device] or free or list(functions)


def _is_of_api(function, value):
    """Whether a value that a function refers to is `nki.language`, `nki.isa` or a member of them,
    or a function of another file, which may use them."""
    from ._kernel import Kernel

    if isinstance(value, types.ModuleType):
        return "nki" in value.__name__ and value.__name__.rpartition(".")[2] in ("language", "isa")
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename != function.__code__.co_filename
    return type(value).__module__.startswith("nki_sim.") and not isinstance(value, Kernel)


def _place(function, definitions):
    """The position of a function's name: line, and column in bytes; None if the file does not
    define it."""
    definition = _definition(function, definitions)
    if definition is None:
        return None
    node, line = definition
    keyword = re.compile(rb"(?:async\s+)?def\s+").match(line, node.col_offset)
    return keyword and (node.lineno, keyword.end())


def _imported(path):
    """The module of a file. A file with relative imports is imported as a part of its package, or,
    if it is in none, of its folder and as many folders above it as the imports need."""
    directory = os.path.dirname(path)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    packages, top = [], directory
    while True:
        try:
            return _imported_as(path, packages, top)
        except ImportError as error:
            if not str(error).startswith("attempted relative import"):
                raise
            is_first = True
            while is_first or os.path.exists(os.path.join(top, "__init__.py")):
                top, _, last = top.rpartition(os.sep)
                if not last.isidentifier():
                    raise
                packages, is_first = [last, *packages], False


def _imported_as(path, packages, top):
    """The module of a file in these packages, the first of which is in the folder `top`."""
    name = ".".join([*packages, os.path.splitext(os.path.basename(path))[0]])
    if packages and top not in sys.path:
        sys.path.insert(1, top)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    if packages:
        importlib.import_module(".".join(packages))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    # A standard-library module of this name is not replaced.
    if known is None:
        sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if known is None:
            del sys.modules[name]
        raise
    return module


def _described(name, kernel):
    parameters = []
    for parameter in kernel.__signature__.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        annotation = parameter.annotation
        text = None if annotation is parameter.empty else annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        parameters.append((parameter.name, default, text))
    shown = ", ".join(p if default is None else f"{p}={default}" for p, default, _ in parameters)
    return name, kernel.func, kernel.target, parameters, f"{name}({shown})"


def text_of(error, at):
    """An exception as the command reports it: what happened in the user's files, and where."""
    from ._errors import SimError

    if isinstance(error, (SimError, SystemExit)):
        return str(error)
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep
    frames = [f for f in traceback.extract_tb(at) if not f.filename.startswith((package, "<frozen"))]
    lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
    return "Python cannot execute the kernel\n" + "".join(lines).rstrip()
