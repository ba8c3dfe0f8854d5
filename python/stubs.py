"""Writes the type stubs of the drop-in package from the registry: `python python/stubs.py`.

With `--check` it writes nothing, and the exit code reports whether the stubs are up to date.
"""

import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
# Use the installed package: the sources next to this file lack the native module.
sys.path[:] = [p for p in sys.path if pathlib.Path(p).resolve() != HERE]

from nki.language import buffers  # noqa: E402
from nki_sim import _errors, _native, _objects  # noqa: E402

TREE = HERE / "nki_sim" / "tree" / "nki"
HEAD = '"""The names of `{module}`. Written by python/stubs.py from the registry of the simulator; do not edit."""\n'

#: Types of the operands of instructions by kind; names of enums stand for themselves.
TYPES = {
    "tensor": "NkiTensor",
    "number": "float",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "register": "VirtualRegister | NkiScalar",
    "ints": "int | Sequence[int]",
    "pattern": "Sequence[Sequence[int]]",
    "tensors": "Sequence[NkiTensor]",
    "numbers": "Sequence[float]",
    "dtype": "Dtype",
    "None": "None",
}

IMPORTS = {
    "nki.language": """
import builtins
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from nki.isa import NkiScalar, VirtualRegister
from nki_sim._objects import DType as DType, NKIObject as NKIObject
from typing_extensions import Self

from . import dtypes as dtypes

Shape: TypeAlias = Sequence[int]
Dtype: TypeAlias = DType | np.dtype[Any] | type[Any] | str
Operand: TypeAlias = NkiTensor | float
Index: TypeAlias = int | VirtualRegister | NkiScalar | NkiTensor
Operator: TypeAlias = Callable[..., Any]
Grid = TypeVar("Grid", NkiTensor, NkiTileGrid, NkiBlockGrid)
#: For annotations of a kernel's parameters: the kernel gets a tensor, its caller passes an array.
tensor: TypeAlias = NkiTensor | Any
""",
    "nki.isa": """
import enum
from collections.abc import Sequence
from typing import Any

import nki.language as nl
from nki.language import Dtype, DType, NKIObject, NkiTensor, Operator

from . import constants as constants
""",
    "nki.collectives": """
import enum
from collections.abc import Sequence
from typing import Any

import nki.language as nl
from nki.isa import NkiInstruction, NkiScalar, VirtualRegister
from nki.language import NkiTensor, Operator
from nki_sim._objects import ReplicaGroup as ReplicaGroup
""",
}


def docstring(text, indent="    "):
    text = text.replace("\\", "\\\\").replace('"""', "'''").strip()
    body = "\n".join(
        "\n".join(textwrap.wrap(line, 110, subsequent_indent="    " if line.startswith(":") else "")) for line in text.splitlines()
    )
    return textwrap.indent(f'"""{body}\n"""' if "\n" in body else f'"""{body}"""', indent)


class Module:
    """The stub of one module."""

    def __init__(self, name):
        self.name = name
        self.schemas = {s["name"]: s for s in _native.instructions()}
        self.names = [n[1:] for n in _native.api_names() if n[0] == name]
        self.functions = {f[0]: f[1:] for f in _native.api_functions(name)}
        self.classes = {c[1]: c for c in _native.api_classes() if c[0] == name}
        self.enums = {name for _, name, kind, _ in _native.api_names() if kind == "enum"}

    def text(self):
        out = [HEAD.format(module=self.name), IMPORTS[self.name].strip(), ""]
        done = {"tensor"}
        order = {"class": 0, "enum": 1, "member": 2, "dtype": 3, "tile_size": 4, "operator": 5, "function": 6}
        for name, kind, details in sorted(self.names, key=lambda n: order[n[1]]):
            if name not in done:
                done.add(name)
                out.append(getattr(self, kind)(name, details))
        return "\n".join(out).rstrip() + "\n"

    def type(self, text):
        """A type in this module, where names of the API may hide those of Python."""
        return re.sub(r"\bbool\b", "builtins.bool", text) if self.name == "nki.language" else text

    def signature(self, parameters):
        parts = []
        for name, annotation, default in parameters:
            part = f"{name}: {self.type(annotation)}" if annotation else name
            parts.append(f"{part} = {default}" if default else part)
        return ", ".join(parts)

    def define(self, name, parameters, result, doc, indent=""):
        text = f"def {name}({self.signature(parameters)}) -> {self.type(result)}:\n{docstring(doc)}\n    ...\n"
        return textwrap.indent(text, indent)

    def class_(self, name, _details):
        error = getattr(_errors, name, None)
        if error is not None:
            return f"class {name}(Exception):\n{docstring(error.__doc__)}\n"
        _, _, base, doc, members = self.classes[name]
        out = [f"class {name}{f'({base})' if base else ''}:", docstring(doc), ""]
        for member, parameters, result, about in members:
            if parameters is None:
                out += ["    @property", self.define(member, [("self", "", "")], result, about, "    ")]
            else:
                out.append(self.define(member, [("self", "", ""), *parameters], result, about, "    "))
        return "\n".join(out)

    def enum(self, name, members):
        # Members of an enum may have names of Python, such as `none`.
        body = "".join(f"    {m} = {repr(m) if name == 'MemoryRegion' else v}\n" for m, v in members)
        return f"class {name}(enum.Enum):\n{body}"

    def member(self, name, details):
        return f"{name} = {details[0]}.{details[1]}"

    def dtype(self, name, _details):
        return f"{name}: DType"

    def tile_size(self, name, names):
        body = "".join(f"    {n}: int\n" for n in names)
        return f"class _TileSize:\n{docstring('Limits of the target.')}\n\n{body}\n{name}: _TileSize\n"

    def operator(self, name, _details):
        return self.function(name, None)

    def function(self, name, _details):
        if name in self.functions:
            return self.define(name, *self.functions[name])
        schema = self.schemas[name]
        parameters, keywords = [], False
        for operand in schema["operands"]:
            default = operand["default"]
            if default is None and any(default for *_, default in parameters) and not keywords:
                parameters.append(("*", "", ""))
                keywords = True
            kind = self.kind(operand["kind"])
            # A list of tensors for each channel.
            kind = f"Sequence[{kind}]" if operand["name"].endswith("_by_channel") else kind
            parameters.append((operand["name"], kind, self.default(operand)))
        if not any(name == "name" for name, *_ in parameters):
            parameters.append(("name", "str | None", "None"))
        result = {"scalar_load": "NkiScalar", "scalar_store": "None"}.get(name, "NkiInstruction")
        return self.define(name, parameters, result, _objects.document(schema))

    def kind(self, kind):
        parts = [TYPES.get(part) or (part if part in self.enums else self.named(part)) for part in kind.split(" | ")]
        return " | ".join(dict.fromkeys(" | ".join(parts).split(" | ")))

    def named(self, kind):
        return {"object": "Any", "replica group": "ReplicaGroup"}.get(kind, "Operator")

    def default(self, operand):
        default = operand["default"]
        if default is None or not default.startswith("'"):
            return default or ""
        names = [part for part in operand["kind"].split(" | ") if part in self.enums]
        if names:
            return f"{names[0]}.{default[1:-1]}"
        return f"nl.{default[1:-1]}" if "Operator" in self.kind(operand["kind"]) else default


setattr(Module, "class", Module.class_)


def again(module, source, names):
    """The stub of a module that has names of another one."""
    imports = "".join(f"from {source} import {name} as {name}\n" for name in names)
    return f"{HEAD.format(module=module)}\n{imports}"


def of_kind(source, wanted):
    """The names of a module that have this kind in the registry."""
    return dict.fromkeys(name for where, name, kind, _ in _native.api_names() if where == source and kind == wanted)


def stubs():
    """Path and text of each stub."""
    return {
        TREE / "language" / "__init__.pyi": Module("nki.language").text(),
        TREE / "isa" / "__init__.pyi": Module("nki.isa").text(),
        TREE / "collectives.pyi": Module("nki.collectives").text(),
        TREE / "language" / "dtypes.pyi": again("nki.language.dtypes", "nki.language", of_kind("nki.language", "dtype")),
        TREE / "language" / "buffers.pyi": again("nki.language.buffers", "nki.language", buffers.__all__),
        TREE / "language" / "tensor.pyi": again("nki.language.tensor", "nki.language", ["NkiTensor"]),
        TREE / "dtype.pyi": again("nki.dtype", "nki.language", of_kind("nki.language", "dtype")),
        TREE / "isa" / "constants.pyi": again("nki.isa.constants", "nki.isa", of_kind("nki.isa", "enum")),
        TREE / "tensor.pyi": again("nki.tensor", "nki.language", ["NkiTensor"]),
        TREE / "typing.pyi": again("nki.typing", "nki.language", ["NkiTensor", "tensor"]),
    }


def main():
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(map(str, stale))}; run python python/stubs.py" if stale else 0)
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
