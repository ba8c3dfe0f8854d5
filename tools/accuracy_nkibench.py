"""The cases of NKIBench (AccelOpt): the inputs with which its evaluator calls a case's kernels."""

import functools
import importlib.util


def case(family, sources):
    """The reference module of the case that a family names, or None. `sources` contains a checkout
    of AccelOpt under any name."""
    found = sorted(file for file in sources.glob("*/NKIBench/reference/*.py") if is_case(file.name, family))
    return module(found[0]) if found else None


def is_case(name, family):
    """Whether a file is for a case: the sizes follow the name of the family."""
    sizes = name.removeprefix(f"{family}_").split("_")[0]
    return name.startswith(f"{family}_") and any(c.isdigit() for c in sizes)


@functools.cache
def module(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def inputs(reference, seed=0):
    """(inputs of the reference, inputs of the kernel), generated as by the evaluator."""
    import numpy as np

    np.random.seed(seed)
    given = reference.get_inputs()
    return given, reference.transform_to_nki_inputs(given) if hasattr(reference, "transform_to_nki_inputs") else given
