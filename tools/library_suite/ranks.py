"""Runs a kernel on several ranks within the suite, and writes its outputs to the place where the
suite expects the outputs of real ranks."""

import os

import nki_sim
import numpy

# The suffix with which nki.jit marks an argument that the compiler must alias with an output; the
# parameter names of kernels lack it.
ALIAS = ".must_alias_input"


def run(orchestrator, kernel_under_test) -> str:
    """Runs on `collective_ranks` ranks. Writes the outputs to output_worker_RANK/NAME.bin and
    returns the folder of these directories."""
    from test.utils.test_orchestrator import INF_ARTIFACT_DIR_NAME

    count = kernel_under_test.inference_args.collective_ranks
    os.environ["NKI_NC_VERSION"] = kernel_under_test.compiler_input.platform_target.get_nc_gen()
    inputs = per_rank(kernel_under_test.kernel_input or {}, count)
    arguments = {name.removesuffix(ALIAS): nki_sim.PerRank([of_rank[name] for of_rank in inputs]) for name in inputs[0]}
    kernel = nki_sim.cpu_simulate(kernel_under_test.kernel_func)[kernel_under_test.compiler_input.logical_nc_config]
    folder = os.path.join(orchestrator.fs_config.artifacts_output_directory_path, INF_ARTIFACT_DIR_NAME)
    for rank, result in enumerate(nki_sim.simulate_ranks(kernel, count)(**arguments)):
        outputs = [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
        tensors = named(outputs, golden(kernel_under_test.validation_args, rank), rank)
        orchestrator.__dump_tensors__(os.path.join(folder, f"output_worker_{rank}"), tensors, lambda name: name)
    return folder


def per_rank(given, count: int) -> list[dict]:
    """The inputs of each rank. Ranks share no array, because each rank writes to its own."""
    inputs, seen = [], set()
    for rank in range(count):
        of_rank = dict(given.for_rank(rank) if hasattr(given, "for_rank") else given)
        for name, value in of_rank.items():
            if isinstance(value, numpy.ndarray) and id(value) in seen:
                of_rank[name] = value.copy()
            seen.add(id(value))
        inputs.append(of_rank)
    return inputs


def golden(arguments, rank: int) -> dict:
    """The outputs that the suite expects of a rank, for their names and dtypes."""
    from test.utils.common_dataclasses import normalize_golden_output

    if arguments is None:
        raise ValueError("simulation needs validation_args for the names of the outputs")
    return normalize_golden_output(arguments.golden_output, rank)


def named(outputs: list, expected: dict, rank: int) -> dict:
    """The outputs under the suite's names, in order, converted to the expected dtypes."""
    if len(outputs) != len(expected):
        raise ValueError(f"rank {rank} returns {len(outputs)} outputs, the suite expects {len(expected)}: {', '.join(expected)}")
    return {name: numpy.asarray(output, dtype=want.dtype) for output, (name, want) in zip(outputs, expected.items())}
