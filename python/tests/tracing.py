"""Helpers shared by the tests of traced kernels."""

import numpy as np
import pytest


def ramp(rows=4, columns=8, dtype=np.float32):
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


@pytest.fixture(params=["tracer", "parser"])
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)
    return request.param


@pytest.fixture
def parser(monkeypatch):
    """Compiles with the evaluator."""

    def compile(kernel, *args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setenv("NKI_COMPILER_FRONTEND", "parser")
            return kernel.compile(*args, **kwargs)

    return compile
