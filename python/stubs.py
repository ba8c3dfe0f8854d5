"""Writes the type stubs of the drop-in package from the registry: `python python/stubs.py`.

With `--check` it writes nothing, and the exit code reports whether the stubs are up to date.
"""

import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
# Use the installed package: the sources next to this file lack the native module.
sys.path[:] = [p for p in sys.path if pathlib.Path(p).resolve() != HERE]

from nki_sim import _errors, _language, _native, _objects  # noqa: E402

TREE = HERE / "nki_sim" / "tree" / "nki"
HEAD = '"""The names of `{module}`. Written by python/stubs.py from the registry of the simulator; do not edit."""\n'
TYPES = {
    "tensor": "NkiTensor",
    "number": "float",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "register": "VirtualRegister",
    "ints": "Sequence[int]",
    "pattern": "Sequence[Sequence[int]]",
    "tensors": "Sequence[NkiTensor]",
    "numbers": "Sequence[float]",
    "None": "None",
}


def annotation(kind):
    return " | ".join(TYPES.get(part, "Any") for part in kind.split(" | "))


def docstring(text, indent="    "):
    text = text.replace("\\", "\\\\").replace('"""', "'''").strip()
    body = "\n".join(
        "\n".join(textwrap.wrap(line, 110, subsequent_indent="    " if line.startswith(":") else "")) for line in text.splitlines()
    )
    return textwrap.indent(f'"""{body}\n"""' if "\n" in body else f'"""{body}"""', indent)


def function(name, signature, doc, result="Any"):
    return f"def {name}({signature}) -> {result}:\n{docstring(doc)}\n    ...\n"


def instruction(schema):
    parts, star = [], False
    optional = False
    for operand in schema["operands"]:
        default = operand["default"]
        optional = optional or default is not None
        if optional and default is None and not star:
            parts.append("*")
            star = True
        text = f"{operand['name']}: {annotation(operand['kind'])}"
        parts.append(text if default is None else f"{text} = ...")
    if not any(p.startswith("name:") for p in parts):
        parts += ([] if star else ["*"]) + ["name: str = ..."]
    return function(schema["name"], ", ".join(parts), _objects.document(schema), "NkiInstruction")


def class_stub(name):
    if name == "tensor":
        return "tensor = NkiTensor\n"
    error = getattr(_errors, name, None)
    return f"class {name}: ...\n" if error is None else f"class {name}(Exception):\n{docstring(error.__doc__)}\n"


def stub(module):
    schemas = {s["name"]: s for s in _native.instructions()}
    out = [HEAD.format(module=module), "import enum", "from collections.abc import Sequence", "from typing import Any", ""]
    if module == "nki.isa":
        out.append("from nki.language import NkiTensor\n")
    elif module == "nki.collectives":
        out += ["from nki.isa import NkiInstruction", "from nki.language import NkiTensor"]
        out += ["from nki_sim._objects import ReplicaGroup as ReplicaGroup", ""]
    else:
        out += ["from nki_sim._objects import DType, NKIObject as NKIObject, NkiTensor as NkiTensor, TileSize", ""]
    done = {"NKIObject", "NkiTensor"}
    names = [n for n in _native.api_names() if n[0] == module]
    order = {"class": 0, "enum": 1, "member": 2, "dtype": 3, "tile_size": 4, "operator": 5, "function": 6}
    for _, name, kind, details in sorted(names, key=lambda n: order[n[2]]):
        if name in done:
            continue
        done.add(name)
        if kind == "class":
            out.append(class_stub(name))
        elif kind == "enum":
            members = "".join(f"    {m} = {repr(m) if name == 'MemoryRegion' else v}\n" for m, v in details)
            out.append(f"class {name}(enum.Enum):\n{members}")
        elif kind == "member":
            out.append(f"{name} = {details[0]}.{details[1]}")
        elif kind == "dtype":
            out.append(f"{name}: DType")
        elif kind == "tile_size":
            out.append(f"{name}: TileSize\n")
        elif name in schemas and module != "nki.language":
            out.append(instruction(schemas[name]))
        else:
            signature, doc = _language.about(module, name, kind)
            out.append(function(name, signature.replace("buffer=sbuf", "buffer=...").replace("dtype=uint8", "dtype=..."), doc))
    return "\n".join(out).rstrip() + "\n"


def stubs():
    """Path and text of each stub."""
    return {
        TREE / "language" / "__init__.pyi": stub("nki.language"),
        TREE / "isa" / "__init__.pyi": stub("nki.isa"),
        TREE / "collectives.pyi": stub("nki.collectives"),
    }


def main():
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(map(str, stale))}; run python python/stubs.py" if stale else 0)
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
