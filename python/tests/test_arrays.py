"""Arrays of the built-in evaluator, which are not NumPy's own, compared with NumPy's."""

import random
import subprocess
import sys
import textwrap

import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim
import numpy as np
import pytest

PROGRAMS = 60
STEPS = 40
SHAPES = [(4,), (6,), (2, 3), (3, 4), (2, 3, 2)]
DTYPES = ["np.float32", "np.float16", "np.int32", "np.int8", "np.uint8", "np.int64", "np.float64", "np.bool_"]


class Program:
    """Statements that NumPy executed, and the resulting arrays."""

    def __init__(self, seed):
        self.random, self.lines, self.names = random.Random(seed), [], {}
        for _ in range(3):
            shape = self.random.choice(SHAPES)
            self.name(f"np.arange({int(np.prod(shape))}).reshape({shape}).astype({self.random.choice(DTYPES)})")
        for _ in range(STEPS):
            self.step()

    def execute(self, line):
        """Returns whether NumPy accepted the statement."""
        try:
            exec(line, {"np": np}, self.names)
        except (ValueError, IndexError, TypeError, OverflowError):
            return False
        self.lines.append(line)
        return True

    def name(self, expression):
        name = f"a{len(self.names)}"
        if self.execute(f"{name} = {expression}") and not isinstance(self.names[name], np.ndarray):
            # A scalar, which has no NumPy type in the evaluator.
            self.names.pop(name)
            self.lines.pop()

    def index(self, name):
        shape = self.names[name].shape
        extent = self.random.choice(shape)
        keys = [self.key(extent) for extent in shape[: self.random.randint(1, len(shape))]]
        rows = [self.random.randrange(-shape[0], shape[0]) for _ in range(3)]
        return self.random.choice([", ".join(keys)] * 3 + [str(rows), f"{name} > {extent}"])

    def key(self, extent):
        at = self.random.randrange(extent)
        return self.random.choice([str(at), str(at - extent), ":", f"{at}:", f":{at + 1}", "::-1", "::2", "None"])

    def step(self):
        names = [name for name, array in self.names.items() if array.size and array.ndim]
        one, other = self.random.choice(names), self.random.choice(names)
        value = self.random.choice([str(self.random.randint(-3, 9)), self.random.choice(["0.5", "-1.25", "2.0"]), other])
        operator = self.random.choice("+-*")
        shape = self.random.choice(["-1", "2, -1", "-1, 2", "3, -1", "1, -1, 2"])
        index = self.index(one)
        match self.random.randrange(11):
            case 0 | 1:
                self.name(f"{one}[{index}]")
            case 2 | 3:
                self.execute(f"{one}[{index}] = {value}")
            case 4:
                self.execute(f"{one} {operator}= {value}")
            # Not with one element, which is a Python number in the evaluator.
            case 5 if set(index) & set(":[>"):
                self.execute(f"{one}[{index}] {operator}= {value}")
            case 6:
                self.name(f"{one}.reshape({shape})")
            case 7:
                self.name(f"{one}.T")
            case 8:
                self.name(f"{one} {self.random.choice(['+', '-', '*', '>', '<=', '=='])} {value}")
            case 9:
                self.name(f"np.{self.random.choice(['ravel', 'asarray', 'array', 'transpose', 'abs'])}({one})")
            case _:
                self.name(f"{one}.{self.random.choice(['copy', 'flatten', 'ravel'])}()")

    def text(self):
        """The statements, and the arrays after them."""
        asserts = [f"assert {name}.tolist() == {array.tolist()}, '{name}'" for name, array in self.names.items()]
        return "\n".join([*self.lines, *asserts])


def finite(program):
    return all(np.isfinite(array.astype(float)).all() for array in program.names.values())


def test_arrays_share_elements_and_convert_as_those_of_numpy(tmp_path):
    with np.errstate(all="ignore"):
        programs = {seed: program for seed in range(PROGRAMS) if finite(program := Program(seed))}
    assert len(programs) > PROGRAMS / 2
    functions = [f"def f{seed}():\n{textwrap.indent(program.text(), '    ')}\n" for seed, program in programs.items()]
    kernel = f"""
        @nki.jit
        def kernel(x):
            {"; ".join(f"f{seed}()" for seed in programs)}
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=x)
            return out
        """
    imports = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\nimport numpy as np\n\n"
    file = tmp_path / "arrays.py"
    file.write_text(imports + "\n".join(functions) + textwrap.dedent(kernel))
    words = ["check", str(file), "--kernel", "kernel", "--arg", "x=float32[128,4]", "--frontend", "builtin"]
    ran = subprocess.run([sys.executable, "-m", "nki_sim", *words], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


TABLE = np.arange(4, dtype=np.float32)


@nki.jit
def writes_to_the_module(x):
    TABLE[0] = 5
    return x


@nki.jit
def writes_to_a_copy(x):
    own, more = TABLE.copy(), TABLE + 1
    own[0] = 5
    more += 1
    assert own.tolist() == [5, 1, 2, 3] and more.tolist() == [2, 3, 4, 5] and TABLE[0] == 0
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


def test_arrays_of_the_module_are_read_only(monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    x = np.zeros((4, 4), np.float32)
    with pytest.raises(nki_sim.SimError, match="(?s)frozen-object.*array.copy"):
        writes_to_the_module(x)
    writes_to_a_copy(x)
    assert TABLE.tolist() == [0, 1, 2, 3]
