"""The code on the documentation's page about custom operators, if a copy is available; none of it is in this repository."""

import ast
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find():
    """The page's text: among the files of the directory `NKI_DOCUMENTS`, or of `shared/seeds` next to the repository; None without one."""
    places = [os.environ.get("NKI_DOCUMENTS"), ROOT.parent / "shared" / "seeds"]
    for place in filter(None, places):
        for path in sorted(pathlib.Path(place).glob("*.txt")):
            text = path.read_text(encoding="utf-8")
            if text.startswith("NKI Kernel as a Framework Custom Operator"):
                return text
    return None


def without_numbers(text):
    """The text without the line numbers of listings."""
    out, number = [], 0
    for line in text.splitlines():
        found = re.match(rf" ?{number + 1}(?!\d)", line) or re.match(r" ?1(?=\S)", line)
        if found:
            number = int(found[0])
            line = line[found.end() :]
        out.append(line)
    return "\n".join(out)


def blocks(text):
    """The paragraphs that are Python code, with the indented text below them."""
    joined = re.sub(r"\n\n+(?=[ \t]+\S)", "\n", without_numbers(text))
    for paragraph in re.split(r"\n\s*\n", joined):
        try:
            body = ast.parse(paragraph).body
        except SyntaxError:
            continue
        # A heading such as `JAX#` parses as a name and a comment.
        if body and not (len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Name)):
            yield paragraph


def section(text, framework, number):
    """The blocks of the `number`th section (from 0) of a framework."""
    parts = re.split(r"^(PyTorch|JAX|Using NKI in training graphs|Using NKI kernels)#$", text, flags=re.M)
    found = [body for title, body in zip(parts[1::2], parts[2::2]) if title == framework]
    return list(blocks(found[number]))


def kernel(text):
    """The page's kernel."""
    head = text.split("\nPyTorch#")[0]
    listing = without_numbers(head)
    return listing[listing.index("import nki as nki") :]
