"""The benchmark that accompanies a kernel in its repository: its wrapper of the kernel, and the
tensors that it passes."""

import ast
import re

import accuracy_shapes


def imports(text):
    return set(re.findall(r"^\s*(?:from|import)\s+(?:[\w.]*\.)?(\w+)", text, re.M))


def beside(path, target):
    """The benchmark or test next to `path` that imports it, or None. Benchmarks take precedence
    over tests, files for `target` over others, and files for this kernel alone over comparisons of
    several."""
    chosen = []
    for folder in (path.parent, path.parent.parent):
        for file in folder.glob("*.py"):
            named = re.match(r"bench|test", file.name)
            text = file.read_text(errors="replace") if named and file != path else ""
            modules = imports(text)
            if path.stem in modules:
                override = re.search(r'TARGET_OVERRIDE"\]\s*=\s*"(\w+)"', text)
                other_target = override is None or override.group(1) != target
                neighbours = sum((folder / f"{module}.py").is_file() for module in modules)
                chosen.append((named.group() == "test", other_target, neighbours, len(file.name), file))
    return min(chosen)[-1] if chosen else None


def definitions(bench, folder):
    """Writes a file to `folder` with the imports, functions and constants of a benchmark, without
    its statements, which the host runs. The files and folders that the benchmark could import are
    placed next to it."""
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
        # For example `B, H = 1, X * 2`.
        return all(isinstance(n, (ast.Tuple, ast.List, ast.Name, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.expr_context)) for n in ast.walk(node.value))
    return True


def call(bench, kernel, names):
    """The shape and dtype of each tensor that a benchmark passes to `kernel`, by parameter name;
    None if they cannot be determined from it."""
    called = accuracy_shapes.arguments(bench, kernel)
    if called is None:
        return None
    positional, named = called
    given = {**dict(zip(names, positional)), **named}
    return {name: (list(value.shape), value.dtype) for name, value in given.items() if isinstance(value, accuracy_shapes.Tensor)}
