"""Stepping through kernels: values at each instruction, debuggers, breakpoints."""

import concurrent.futures
import io
import os
import pdb
import pickle
import subprocess
import sys
import textwrap
import warnings

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import nki_sim
import numpy as np
import pytest

X = np.arange(32, dtype=np.float32).reshape(4, 8)

#: The values that a kernel saw while it was stepped through.
seen = []


def loaded(x, dtype=None):
    tile = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def see(*values):
    """Records values while the kernel is stepped through."""
    try:
        seen.append(tuple(np.array(value) for value in values))
    except (TypeError, ValueError):
        # The kernel is only specialised, or its values are no longer known.
        pass


@pytest.fixture(autouse=True)
def fresh():
    seen.clear()


def plain(kernel):
    return nki.simulate(kernel, eager=False)


def eager(kernel):
    return nki.simulate(kernel, eager=True)


def test_loads_that_the_compiler_drops_can_be_stepped_through():
    @nki.jit
    def kernel(x):
        first, second = loaded(x), loaded(x)
        see(first, second)
        third = loaded(x)
        nisa.tensor_tensor(first, second, third, nl.add)
        see(first)
        return stored(first)

    assert np.array_equal(eager(kernel)(X), 2 * X)
    (first, second), (total,) = seen
    assert np.array_equal(first, X) and np.array_equal(second, X)
    assert np.array_equal(total, 2 * X)
    assert np.array_equal(plain(kernel)(X), 2 * X)


def test_loads_are_kept_on_request():
    @nki.jit
    def kernel(x):
        first, second = loaded(x), loaded(x)
        total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(total, first, second, nl.add)
        return stored(total)

    for given, transfers in ((None, 2), (False, 2), (True, 3)):
        for options in ({}, {"settings": {"kernel.measure": "device"}}):
            result, report = nki_sim.profile(kernel, as_written=given, **options)(X)
            assert np.array_equal(result, 2 * X)
            assert report["summary"]["dma_transfer_count"] == transfers
            assert ("compiler_changes" in report) == (transfers == 2)
    kept = nki.simulate(kernel, as_written=True)
    assert np.array_equal(nki.simulate(kept, eager=True)(X), 2 * X)
    assert pickle.loads(pickle.dumps(named)).as_written is False
    assert pickle.loads(pickle.dumps(nki.simulate(named, as_written=True))).as_written is True
    with pytest.raises(TypeError, match="as_written='yes' is neither True nor False"):
        nki.simulate(kernel, as_written="yes")


@nki.jit
def named(x):
    return stored(loaded(x))


def test_values_follow_each_instruction():
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        see(tile)
        nisa.tensor_scalar(tile, tile, nl.multiply, 3.0)
        see(tile, tile[1:2, 2:4])
        return stored(tile)

    result = eager(kernel)(X)
    assert np.array_equal(result, plain(kernel)(X))
    (first,), (second, part) = seen
    assert np.array_equal(first, X)
    assert np.array_equal(second, 3 * X)
    assert np.array_equal(part, 3 * X[1:2, 2:4])
    # Again, with different values and another shape.
    seen.clear()
    assert np.array_equal(eager(kernel)(X + 1), 3 * (X + 1))
    assert np.array_equal(seen[0][0], X + 1)
    seen.clear()
    eager(kernel)(X[:2])
    assert seen[0][0].shape == (2, 8)


def test_program_is_that_of_a_normal_call():
    def body_of(tile, other):
        def body(i):
            scratch = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
            for j in range(2):
                nisa.tensor_tensor(scratch, tile, other, nl.add)
                nisa.tensor_copy(tile, scratch)
            see(tile[0:1, 0:1])

        return body

    @nki.jit
    def kernel(x, n):
        tile, other = loaded(x), loaded(x)
        nl.fori_loop(0, 3, body_of(tile, other))
        count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=count, src=n)
        bound = nisa.register_alloc(count)
        for i in nl.dynamic_range(bound):
            nl.fori_loop(0, 2, body_of(tile, other))
        nl.fori_loop(0, 0, body_of(tile, other))
        return stored(tile)

    n = np.array([[2]], np.int32)
    compiled, stepping = eager(kernel)._prepare(eager(kernel).bind(X + 1, n))
    assert stepping
    assert not seen
    again = kernel._step(compiled, kernel.bind(X + 1, n))
    assert again.text() == compiled.text()
    # Three iterations, two of two, and the body of a loop without iterations, which changes nothing.
    values = [value.item() for (value,) in seen]
    assert values == [3, 5, 7, 9, 11, 13, 15, 15]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nki_sim.KernelWarning)
        assert np.array_equal(eager(kernel)(X, n), plain(kernel)(X, n))


def test_while_loop_and_registers():
    shown = []

    @nki.jit
    def kernel(x):
        tile, one = loaded(x), loaded(x)
        number = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.memset(number, 3)
        register = nisa.register_alloc(number)
        shown.append(repr(register))

        def body(condition):
            nisa.tensor_tensor(tile, tile, one, nl.add)
            nisa.tensor_scalar(number, number, nl.subtract, 1)
            nisa.register_load(register, number)
            shown.append(repr(register))
            see(tile)
            return register

        nl.while_loop(register, body)
        return stored(tile)

    assert np.array_equal(eager(kernel)(X), 4 * X)
    assert [np.array_equal(value, k * X) for (value,), k in zip(seen, (2, 3, 4))] == [True] * 3
    assert [text.rpartition(": ")[2] for text in shown[-4:]] == ["3", "2", "1", "0"]


def test_unwritten_and_nan():
    shown = []

    @nki.jit
    def kernel(x):
        tile = nl.ndarray((4, 8), dtype=nl.bfloat16, buffer=nl.sbuf)
        shown.append((repr(tile), tile))
        nisa.memset(tile[:, 0:4], float("nan"))
        shown.append((repr(tile), tile))
        see(tile)
        nisa.memset(tile, 0)
        shown.append((repr(tile), tile))
        return stored(tile)

    eager(kernel)(X)
    texts = [text for text, _ in shown[-3:]]
    assert texts[0].endswith("nothing has written it")
    assert "[nan nan nan nan ? ? ? ?]" in texts[1] and "(?: nothing has written it)" in texts[1]
    assert "?" not in texts[2]


def test_value_marks_what_is_unwritten():
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((4, 8), dtype=nl.int32, buffer=nl.sbuf)
        nisa.memset(tile[:, 0:4], 7)
        if getattr(tile, "value", None) is not None:
            seen.append(tile.value)
        nisa.memset(tile, 0)
        return stored(tile)

    eager(kernel)(X)
    (value,) = seen
    assert isinstance(value, np.ma.MaskedArray)
    assert not value.mask[:, :4].any() and value.mask[:, 4:].all()
    assert (value[:, :4] == 7).all()


def test_error_in_an_instruction_is_at_the_line_of_the_user():
    reached = []

    @nki.jit
    def kernel(x, n):
        tile = loaded(x)
        count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=count, src=n)
        at = nisa.register_alloc(count)
        target = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
        try:
            nisa.tensor_copy(target, tile.ap(pattern=[[8, 4], [1, 8]], scalar_offset=at, indirect_dim=1))  # faults
        except nki_sim.KernelError as error:
            reached.append((error, repr(tile)))
            raise
        return stored(target)

    line = next(i for i, text in enumerate(open(__file__), 1) if text.rstrip().endswith("# faults"))
    bad = np.array([[1000]], np.int32)
    with pytest.raises(nki_sim.KernelError) as normal:
        plain(kernel)(X, bad)
    assert not reached
    with pytest.raises(nki_sim.KernelError) as stepped:
        eager(kernel)(X, bad)
    # The exception leaves the statement that faults.
    ((error, text),) = reached
    assert error is stepped.value and "the run has ended" in text
    assert stepped.value.line == normal.value.line == line
    assert stepped.value.text == normal.value.text
    frames = [entry.lineno for entry in stepped.traceback if entry.path.name == "test_debug.py"]
    assert line in [n + 1 for n in frames]


def test_two_cores_meet():
    @nki.jit
    def kernel(x):
        core = nl.program_id(0)
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.add, float(core * 100))
        other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        see(tile)
        nisa.sendrecv(src=tile, dst=other, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
        see(other)
        out = nl.ndarray((2, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out[core], src=other)
        return out

    result = eager(kernel)[2](X)
    assert np.array_equal(result, plain(kernel)[2](X))
    mine, theirs, mine_of_1, theirs_of_1 = (value for (value,) in seen)
    assert np.array_equal(mine, X) and np.array_equal(theirs, X + 100)
    assert np.array_equal(mine_of_1, X + 100) and np.array_equal(theirs_of_1, X)


def test_ranks_meet():
    group = ncc.ReplicaGroup([[0, 1]])

    @nki.jit
    def kernel(x):
        source = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=source, src=x)
        ncc.all_reduce(dsts=[total], srcs=[source], replica_group=group, op=nl.add)
        see(total)
        return total

    results = nki_sim.simulate_ranks(eager(kernel), 2)([X, X + 1])
    expected = nki_sim.simulate_ranks(plain(kernel), 2)([X, X + 1])
    for rank in range(2):
        assert np.array_equal(results[rank], expected[rank])
        assert np.array_equal(seen[rank][0], 2 * X + 1)


def test_a_kernel_that_does_something_else_says_so():
    calls = []

    @nki.jit
    def kernel(x):
        calls.append(1)
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.multiply, float(len(calls)))
        see(tile)
        return stored(tile)

    with pytest.warns(nki_sim.KernelWarning, match="called a different instruction"):
        result = eager(kernel)(X)
    assert np.array_equal(result, 2 * X)
    assert not seen


def test_profile_is_that_of_a_normal_call():
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.multiply, 3.0)
        return stored(tile)

    (one, stepped), (two, normal) = nki_sim.profile(eager(kernel))(X), nki_sim.profile(plain(kernel))(X)
    assert np.array_equal(one, two)
    assert stepped.latency_us == normal.latency_us


def test_inputs_are_written_once():
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nisa.dma_copy(dst=x, src=tile)
        see(x)
        return x

    array = X.copy()
    eager(kernel)(array)
    assert np.array_equal(array, X + 1)
    assert np.array_equal(seen[0][0], X + 1)


def test_tracing_without_a_debugger_does_not_step():
    sys_trace = sys.gettrace()

    @nki.jit
    def kernel(x):
        tile = loaded(x)
        see(tile)
        return stored(tile)

    try:
        # Like tools that measure coverage.
        sys.settrace(lambda *_: None)
        nki.simulate(kernel)(X)
    finally:
        sys.settrace(sys_trace)
    assert not seen


def test_parser_is_refused(monkeypatch):
    @nki.jit
    def kernel(x):
        return stored(loaded(x))

    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    with pytest.raises(nki_sim.ArgumentError, match="tracer"):
        eager(kernel)(X)


SESSION = '''
import nki, nki.isa as nisa, nki.language as nl, numpy as np

@nki.jit
def kernel(x):
    tile = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.sbuf)
    out = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    {stop}
    for i in range(2):
        nisa.tensor_scalar(tile, tile, nl.add, 10.0)
    nisa.dma_copy(dst=out, src=tile)
    print("stored")
    return out

x = np.arange(8, dtype=np.float32).reshape(2, 4)
print("result", kernel(x).tolist())
'''


def transcript(tmp_path, stop, commands, *options):
    """The output of a pdb session on a kernel."""
    file = tmp_path / "session.py"
    file.write_text(SESSION.format(stop=stop))
    words = [sys.executable, *options, str(file)]
    ran = subprocess.run(words, input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_transcript_of_a_session_at_a_breakpoint(tmp_path):
    text = transcript(tmp_path, "breakpoint()", ["p tile", "next", "next", "p tile[0:1]", "p i", "p out", "p tile.value.sum()", "continue"])
    where, *shown = (part.strip() for part in text.split("(Pdb) "))
    assert where.endswith("for i in range(2):")
    assert shown[0] == "<tensor tile (2, 4) float32 sbuf>\n[[0. 1. 2. 3.]\n [4. 5. 6. 7.]]"
    assert shown[1].endswith("nisa.tensor_scalar(tile, tile, nl.add, 10.0)")
    assert shown[3] == "<tensor tile (1, 4) float32 sbuf>\n[[10. 11. 12. 13.]]"
    assert shown[4] == "0"
    assert shown[5] == "<tensor out (2, 4) float32 shared_hbm>: nothing has written it"
    assert shown[6].endswith("108.0") or shown[6].endswith("108.0)")
    # The kernel prints once, and its result is that of a normal run.
    assert shown[7] == "stored\nresult [[20.0, 21.0, 22.0, 23.0], [24.0, 25.0, 26.0, 27.0]]"


def test_transcript_of_a_debugger_that_is_attached(tmp_path):
    file = tmp_path / "session.py"
    text = transcript(tmp_path, "pass", [f"break {file}:11", "continue", "p tile[0:1]", "clear 1", "continue", "quit"], "-m", "pdb")
    assert "<tensor tile (1, 4) float32 sbuf>\n[[0. 1. 2. 3.]]" in text
    assert text.count("stored") == 1
    assert "result [[20.0, 21.0" in text


def test_breakpoint_in_a_function_that_the_kernel_calls(tmp_path):
    file = tmp_path / "helper.py"
    file.write_text(
        textwrap.dedent(
            """
            import nki, nki.isa as nisa, nki.language as nl, numpy as np

            def load(x):
                tile = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=x)
                breakpoint()
                return tile

            @nki.jit
            def kernel(x):
                tile = load(x)
                out = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.shared_hbm)
                nisa.dma_copy(dst=out, src=tile)
                return out

            x = np.ones((2, 4), np.float32)
            kernel(x)
            kernel(2 * x)
            """
        )
    )
    commands = "p tile.value.max()\ncontinue\np tile.value.max()\ncontinue\n"
    ran = subprocess.run([sys.executable, str(file)], input=commands, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    shown = [part.strip() for part in ran.stdout.split("(Pdb) ")]
    assert "1.0" in shown[1] and "2.0" in shown[3]
    # With breakpoints disabled, nothing stops.
    off = {**os.environ, "PYTHONBREAKPOINT": "0"}
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120, env=off)
    assert ran.returncode == 0 and "(Pdb)" not in ran.stdout


def test_a_debugger_in_this_process(monkeypatch):
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        breakpoint()
        return stored(tile)

    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p tile[0:1, 0:2]\nup\ncontinue\n"), stdout=out, nosigint=True, readrc=False)
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    assert np.array_equal(nki.simulate(kernel)(X), X + 1)
    assert "<tensor tile (1, 2) float32 sbuf>\n[[1. 2.]]" in out.getvalue()


def test_a_kernel_that_is_wrong_is_stepped_through_to_its_error():
    reached = []

    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        reached.append(repr(tile[0:1, 0:2]))
        nisa.tensor_copy(tile, tile[0:2])  # is wrong
        return stored(tile)

    line = next(i for i, text in enumerate(open(__file__), 1) if text.rstrip().endswith("# is wrong"))
    with pytest.raises(nki_sim.KernelError) as error:
        eager(kernel)(X)
    assert error.value.line == line
    assert reached[-1].endswith("[[1. 2.]]")
    with pytest.raises(nki_sim.KernelError) as normal:
        plain(kernel)(X)
    assert error.value.text == normal.value.text


def test_many_threads(capsys):
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
        see(tile)
        print("traced")
        return stored(tile)

    hook, output = sys.breakpointhook, sys.stdout
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: nki.simulate(kernel, eager=i % 2 == 0)(X + i), range(16)))
    assert all(np.array_equal(result, 2 * (X + i)) for i, result in enumerate(results))
    assert sorted(value[0, 0] for (value,) in seen) == [2 * i for i in range(0, 16, 2)]
    # The process is unchanged, and each kernel that was stepped through printed once.
    assert sys.breakpointhook is hook and sys.stdout is output
    assert 8 <= capsys.readouterr().out.count("traced\n") <= 16


KERNEL = """
import nki, nki.isa as nisa, nki.language as nl

# nki-sim: x=float32[2,4]:ones n=3
@nki.jit
def kernel(x, n):
    tile = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.sbuf)
    out = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    for i in (k for k in range(n)):
        nisa.tensor_scalar(tile, tile, nl.add, 10.0)
    nisa.dma_copy(dst=out, src=tile)
    print("traced")
    return out
"""


def command(*words, text="", **variables):
    return subprocess.run(
        [sys.executable, "-m", "nki_sim", *words], input=text, capture_output=True, text=True, timeout=120, env={**os.environ, **variables}
    )


def test_commands_let_python_execute_the_kernel(tmp_path):
    file = tmp_path / "a_kernel.py"
    file.write_text(KERNEL)
    for words in (["run"], ["check"], ["whatif"], ["lower"]):
        texts = {}
        for frontend in ("builtin", "python", "auto"):
            ran = command(*words, str(file), "--frontend", frontend)
            assert ran.returncode == 0, ran.stderr
            texts[frontend] = ran.stdout.replace("traced\n", "")
            assert (ran.stdout + ran.stderr).count("traced\n") == 1
        assert texts["builtin"] == texts["python"] == texts["auto"]
    # Only Python can execute this kernel.
    file.write_text(KERNEL.replace("print(", "print(complex(1, 2).real, "))
    assert command("run", str(file)).returncode == 1
    assert command("run", str(file), "--frontend", "python").returncode == 0


def test_commands_say_what_is_wrong(tmp_path):
    file = tmp_path / "a_kernel.py"
    file.write_text(KERNEL.replace("src=tile)", "src=tile[0:1])"))
    both = [command("run", str(file), "--frontend", frontend) for frontend in ("builtin", "python")]
    assert [ran.returncode for ran in both] == [1, 1]
    headline = [ran.stderr.splitlines()[0] for ran in both]
    assert headline[0] == headline[1]
    file.write_text(KERNEL)
    for words in (["--arg", "y=1"], ["--kernel", "nothing"]):
        both = [command("run", str(file), *words, "--frontend", frontend) for frontend in ("builtin", "python")]
        assert [ran.returncode for ran in both] == [2, 2]
        assert both[0].stderr == both[1].stderr
    file.write_text("import nothing_of_this_name\n")
    ran = command("run", str(file), "--frontend", "python", "--arg", "x=1")
    assert ran.returncode == 2 and "ModuleNotFoundError: No module named 'nothing_of_this_name'" in ran.stderr
    assert "line 1" in ran.stderr
    ran = command("sweep", str(file), "--grid", "n=1,2", "--frontend", "python")
    assert ran.returncode == 2 and "nki_sim.sweep" in ran.stderr


def test_both_frontends_list_the_same_kernels(tmp_path):
    file = tmp_path / "a_kernel.py"

    def refused(text, *words):
        file.write_text(text)
        both = [command("run", str(file), *words, "--frontend", frontend).stderr for frontend in ("builtin", "python")]
        assert both[0] == both[1]
        return both[0]

    helper = "import nki\n\ndef helper(x):\n    return x\n\n"
    plain = helper + "def kernel(x):\n    return [helper(y) for y in x]\n"
    assert "kernel `kernel` needs argument `x`" in refused(plain)
    assert "kernel `helper` needs argument `x`" in refused(plain, "--kernel", "helper")
    assert "2 kernels; choose one with --kernel: kernel, other" in refused(plain + "\ndef other():\n    pass\n")
    decorated = helper + "@nki.jit\ndef kernel(x):\n    return x\n"
    assert "kernel `kernel` needs argument `x`" in refused(decorated)
    assert "kernel `helper` needs argument `x`" in refused(decorated, "--kernel", "helper")
    # The comment above the kernel is found by the kernel's position, not by its name.
    above = "import nki\n\n# def kernel(x)\ndef other():\n    pass\n\n# nki-sim: x=1\n@nki.jit\ndef kernel(x):\n    return x\n"
    assert "comment above the kernel counts only without --arg" in refused(above, "--arg", "y=1")
    below = above.replace("# nki-sim: x=1\n", "").replace("# def kernel(x)", "# nki-sim: x=1\n# def kernel(x)")
    assert "or, above the kernel, a comment such as" in refused(below, "--arg", "y=1")


def test_break_opens_the_inspector(tmp_path):
    file = tmp_path / "a_kernel.py"
    file.write_text(KERNEL)
    line = 1 + KERNEL.splitlines().index("        nisa.tensor_scalar(tile, tile, nl.add, 10.0)")
    commands = "p tile[0:1]\nnext\np i\ncontinue\n"
    ran = command("run", str(file), "--frontend", "python", "--break", f"{line}:2", text=commands)
    assert ran.returncode == 0, ran.stderr
    shown = [part.strip() for part in ran.stdout.split("(Pdb) ")]
    assert shown[1] == "<tensor tile (1, 4) float32 sbuf>\n[[21. 21. 21. 21.]]"
    assert shown[3] == "2"
    # The run follows as it would without stepping.
    normal = command("run", str(file), "--frontend", "python")
    assert ran.stdout.endswith(normal.stdout.replace("traced\n", ""))
    ran = command("run", str(file), "--frontend", "python", "--break", f"{line}:3")
    assert "is executed 3 times; iterations are 0 to 2" in ran.stderr
    ran = command("run", str(file), "--frontend", "python", "--break", "1")
    assert "is not executed" in ran.stderr
    ran = command("run", str(file), "--frontend", "python", "--break", "1000")
    assert ran.returncode == 2 and "does not exist" in ran.stderr
    ran = command("run", str(file), "--break", str(line))
    assert ran.returncode == 2 and "--frontend python" in ran.stderr
    ran = command("run", str(file), "--frontend", "python", "--break", str(line), text="quit\n")
    assert ran.returncode == 2 and "ended" in ran.stderr
    ran = command("run", str(file), "--frontend", "python", "--break", str(line), "--json", "-")
    assert ran.returncode == 2 and "write the report to a file" in ran.stderr and not ran.stdout


def test_breakpoint_of_a_kernel_stops_the_command(tmp_path):
    file = tmp_path / "a_kernel.py"
    file.write_text(KERNEL.replace("    for i", "    breakpoint()\n    for i"))
    ran = command("run", str(file), "--frontend", "python", text="p tile\ncontinue\n")
    assert ran.returncode == 0, ran.stderr
    assert "(Pdb) <tensor tile (2, 4) float32 sbuf>\n[[1. 1. 1. 1.]\n [1. 1. 1. 1.]]" in ran.stdout
    ran = command("run", str(file), "--frontend", "python", "--json", "-")
    assert ran.returncode == 2 and "`breakpoint()` stops in Python's debugger" in ran.stderr and not ran.stdout


CHATTY = KERNEL.replace('print("traced")', 'print("traced\\n<&")').replace("import nki,", 'print("imported")\nimport nki,')


@pytest.fixture
def chatty(tmp_path, monkeypatch):
    """A kernel in a folder below the working directory, whose module and function print."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a_kernel.py").write_text(CHATTY)
    return "folder/a_kernel.py"


@pytest.mark.parametrize(
    "words", [["check", "--format", f] for f in ("json", "sarif", "github", "junit")] + [["run", "--json", "-"], ["run", "--csv", "-"], ["whatif", "--json", "-"]]
)
def test_prints_leave_a_file_on_standard_output_alone(words, chatty):
    ran = [command(words[0], chatty, *words[1:], "--frontend", frontend) for frontend in ("builtin", "python")]
    assert ran[0].returncode == ran[1].returncode == 0
    assert ran[0].stdout == ran[1].stdout and "traced" not in ran[1].stdout
    assert "imported\n" in ran[1].stderr and "traced\n<&\n" in ran[1].stderr


def test_prints_are_shown_if_the_file_fails(chatty):
    with open(chatty, "a") as file:
        file.write("raise ValueError('wrong')\n")
    ran = command("run", chatty, "--frontend", "python", "--json", "-")
    assert ran.returncode == 2 and "imported" not in ran.stdout and ran.stderr.startswith("imported\n")


@pytest.mark.parametrize("path", ["folder/a_kernel.py", "./folder/a_kernel.py", "{}/folder/a_kernel.py", "../{}/folder/a_kernel.py"])
def test_both_frontends_name_files_alike(path, chatty, tmp_path):
    path = path.format(tmp_path.name if path.startswith("..") else tmp_path)
    (tmp_path / "folder" / "helper.py").write_text("import nki.isa as nisa\n\n\ndef load(dst, src):\n    nisa.dma_copy(dst=dst, src=src)\n")
    with open(chatty, "w") as file:
        file.write("from helper import load\n" + KERNEL.replace("nisa.dma_copy(dst=tile, src=x)", "load(tile, x)"))
    for words in (["run"], ["check", "--format", "sarif"], ["run", "--json", "-"]):
        ran = [command(words[0], path, *words[1:], "--frontend", frontend) for frontend in ("builtin", "python")]
        assert ran[0].stdout == ran[1].stdout and ran[0].stderr == ran[1].stderr
    assert path in ran[0].stdout and path.replace("a_kernel", "helper") in ran[0].stdout


def test_an_error_at_the_prompt_is_its_message(tmp_path):
    file = tmp_path / "a_kernel.py"
    file.write_text(KERNEL.replace("    for i", "    breakpoint()\n    for i"))
    ran = command("run", str(file), "--frontend", "python", text="int(tile)\np tile + [1]\ncontinue\n")
    shown = [part.strip() for part in ran.stdout.split("(Pdb) ")]
    assert shown[1].endswith("error[operand-kind]: Python takes an int, got a value of type tensor")
    assert "error[tensor-operator]" in shown[2] and "= help: tensors have no Python operators" in shown[2]
    assert "cmd.py" not in ran.stdout and ran.returncode == 0
