"""Detects the import of torch's compiler, before or after nki_sim, without importing it."""

import importlib.machinery
import sys
import weakref

#: All kernels of this process.
kernels = weakref.WeakSet()

_COMPILER = "torch._dynamo"


def made(kernel):
    """Registers a new kernel."""
    kernels.add(kernel)
    graphs = sys.modules.get("nki_sim._torch")
    if graphs is not None:
        graphs.allow(kernel)


def _join():
    """Allows kernels in the graphs of the compiler, and excludes this package from tracing."""
    # If it were traced, the conversion of an array would be compiled with the sizes of the first
    # array.
    sys.modules[_COMPILER].trace_rules.add("nki_sim")
    try:
        from . import _torch  # noqa: F401
    except (ImportError, AttributeError):
        # This version of torch lacks the required functions: its compiler breaks the graph at each
        # kernel.
        sys.modules.pop("nki_sim._torch", None)


class _Finder:
    """Imports `nki_sim._torch` right after torch's compiler; never finds a module itself."""

    def find_spec(self, name, path=None, target=None):
        if name != _COMPILER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                _join()

            spec.loader.exec_module = exec_module
        return spec


def watch():
    """Called once, after the package has been imported."""
    if _COMPILER in sys.modules:
        _join()
    else:
        sys.meta_path.insert(0, _Finder())
