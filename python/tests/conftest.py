import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
# The tests say which target they mean.
for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "NKI_PRECISE_FP"):
    os.environ.pop(name, None)
pytest_plugins = ["pytester"]

import pytest  # noqa: E402

# Makes `import nki` work in a source tree, where no .pth file is read.
import nki_sim  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_stays_configured():
    """What a test, or a snippet of the documentation, configures ends with it."""
    yield
    nki_sim.configure(max_memory=None, capacity=None, deny=None, warn=None, allow=None)
