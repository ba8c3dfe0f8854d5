import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
# The tests state their target.
for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "NKI_PRECISE_FP"):
    os.environ.pop(name, None)
pytest_plugins = ["pytester"]

import pytest  # noqa: E402

# Makes `import nki` work in a source tree, where Python reads no .pth file.
import nki_sim  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_stays_configured():
    """Resets the configuration after each test or documentation snippet."""
    yield
    nki_sim.configure(max_memory=None, capacity=None, deny=None, warn=None, allow=None)


class Counter:
    """A thread that counts whenever it has the interpreter's lock."""

    def __init__(self):
        self.count, self.stop = 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.is_set():
            self.count += 1
            time.sleep(0)

    def advances_during(self, call):
        """Repeats the call until the thread counts. Python itself does not switch threads meanwhile, so only the call can release the lock."""
        call()
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        try:
            count = self.count
            # A few calls are enough on an idle machine; on a busy one, the thread may have to wait for a processor.
            for _ in range(1000):
                call()
                if self.count > count:
                    return
            raise AssertionError("no call gave the lock away")
        finally:
            sys.setswitchinterval(before)


@pytest.fixture
def counter():
    """A running `Counter`, which ends with the test."""
    out = Counter()
    yield out
    out.stop.set()
    out.thread.join()


def statements(text):
    """A program without the calls and iterations around each instruction: the evaluator counts iterations
    of comprehensions differently."""
    return [line.partition("  # ")[0] for line in text.splitlines() if not line.startswith("trail ")]


@pytest.fixture
def both_frontends(monkeypatch):
    """Lets both frontends compile each kernel of a test: the programs, or the errors, are the same. Gives
    the names of the kernels."""
    from nki_sim._beta1 import Beta1Kernel
    from nki_sim._kernel import Kernel

    names, inside = [], []

    def attempt(compile_, kernel, arguments):
        inside.append(kernel)
        try:
            return compile_(kernel, arguments), None
        except nki_sim.KernelError as error:
            return None, error
        finally:
            inside.pop()

    def with_both(compile_):
        def compile_with_both(kernel, arguments):
            # The method of a subclass calls the base class's.
            if inside:
                return compile_(kernel, arguments)
            made, error = attempt(compile_, kernel, arguments)
            with monkeypatch.context() as patch:
                patch.setenv("NKI_COMPILER_FRONTEND", "parser")
                other, other_error = attempt(compile_, kernel, arguments)
            names.append(kernel.__name__)
            assert getattr(error, "slug", None) == getattr(other_error, "slug", None), f"{kernel.__name__}: {error}; {other_error}"
            if error is not None:
                raise error
            assert statements(made.text()) == statements(other.text()), kernel.__name__
            return made

        return compile_with_both

    for cls in (Kernel, Beta1Kernel):
        monkeypatch.setattr(cls, "_compile", with_both(cls._compile))
    return names
