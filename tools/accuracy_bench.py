"""The benchmark that a repository has next to a kernel: its wrapper of the kernel, and the tensors that it passes."""

import ast
import re


def beside(path, target):
    """The benchmark or test next to `path` that imports it, or None. A benchmark comes before a test, one for `target` before others."""
    imported = re.compile(rf"^\s*(?:from|import)\s+(?:[\w.]*\.)?{re.escape(path.stem)}\b", re.M)
    chosen = []
    for folder in (path.parent, path.parent.parent):
        for file in folder.glob("*.py"):
            named = re.match(r"bench|test", file.name)
            text = file.read_text(errors="replace") if named and file != path else ""
            if imported.search(text):
                override = re.search(r'TARGET_OVERRIDE"\]\s*=\s*"(\w+)"', text)
                other_target = override is None or override.group(1) != target
                chosen.append((named.group() == "test", other_target, path.stem not in file.stem, len(file.name), file))
    return min(chosen)[-1] if chosen else None


def definitions(bench, folder):
    """A file in `folder` with the imports, functions and constants of a benchmark, without its statements: the host runs those. The
    files and folders that the benchmark could import lie next to it."""
    tree = ast.parse(bench.read_text())
    kept = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) or is_constant(node)]
    out = folder / f"definitions_of_{bench.stem}.py"
    out.write_text("\n".join(ast.unparse(node) for node in kept) + "\n")
    at = bench.parent
    for _ in range(6):
        for entry in at.iterdir():
            link = folder / entry.name
            if not entry.name.startswith(".") and not link.exists() and not link.is_symlink():
                link.symlink_to(entry.resolve())
        if at.is_symlink():
            break
        at = at.parent
    return out


def is_constant(node):
    if not isinstance(node, ast.Assign):
        return False
    try:
        ast.literal_eval(node.value)
    except ValueError:
        # B, H = 1, X * 2
        return all(isinstance(n, (ast.Tuple, ast.List, ast.Name, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.expr_context)) for n in ast.walk(node.value))
    return True


def call(bench, kernel, names):
    return None
