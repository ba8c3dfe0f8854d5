"""Kernels on tensors of a torch XLA device: writes the graphs that the environment requests.

The tensors are moved to the host for a kernel, and its results to the device. XLA's graph ends
before the kernel, and another one begins after it. With `XLA_SAVE_TENSORS_FILE` or
`NEURON_FRAMEWORK_DEBUG`, the graph with the kernel as the documented custom call is written in the
form that the Neuron compiler would receive. It is not run.
"""

import os
import re
import traceback

import numpy as np
import torch
import torch_xla

from ._framework import backend_config

#: The custom call's target, and XLA's API_VERSION_STATUS_RETURNING.
_TARGET, _STATUS_RETURNING = "AwsNeuronCustomNativeKernel", 2


def wanted():
    """Whether the environment requests a file."""
    return bool(os.environ.get("XLA_SAVE_TENSORS_FILE")) or _debug()


def _debug():
    return os.environ.get("NEURON_FRAMEWORK_DEBUG", "0").strip().lower() not in ("", "0", "false", "off")


def record(kernel, compiled):
    """Writes the graph of a call with arguments on an XLA device, if the environment requests it.

    - `XLA_SAVE_TENSORS_FILE=F` appends it as text to `F.0`, the file to which torch_xla appends its
      own graphs.
    - `NEURON_FRAMEWORK_DEBUG=1` writes it in binary form, an HloModuleProto, to
      `MODULE_<kernel>_<number>.hlo_module.pb` in the current directory.
    """
    operands = dict(zip(compiled.inputs(), compiled.operands()))
    device = next((t.device for t in operands.values() if isinstance(t, torch.Tensor) and t.device.type == "xla"), None)
    if device is None:
        return
    call = _custom_call(kernel, compiled, operands, device)
    if path := os.environ.get("XLA_SAVE_TENSORS_FILE"):
        from torch_xla import runtime

        with open(f"{path}.{runtime.local_ordinal()}", "a", encoding="utf-8") as file:
            file.write(_text(call))
    if _debug():
        context = torch_xla._XLAC.lowering.LoweringContext(kernel.__name__)
        context.build(call)
        name, number = re.sub(r"\W", "_", kernel.__name__), 0
        while True:
            try:
                with open(f"MODULE_{name}_{number}.hlo_module.pb", "xb") as file:
                    file.write(context.hlo())
                return
            except FileExistsError:
                number += 1


def _custom_call(kernel, compiled, operands, device):
    """The kernel's results as a node of XLA's graph."""
    config, inputs, _ = backend_config(kernel, compiled)
    shapes, dtypes = [], []
    for _, shape, dtype in compiled.outputs():
        shapes.append(shape)
        dtypes.append(getattr(torch, "float32" if dtype == "tfloat32" else dtype))
    tensors = {name: _on(device, operand) for name, operand in operands.items()}
    for name in compiled.unreturned():
        shapes.append(list(tensors[name].shape))
        dtypes.append(tensors[name].dtype)
    return torch_xla._XLAC._xla_custom_call([tensors[n] for n in inputs], _TARGET, shapes, dtypes, False, config, _STATUS_RETURNING, {})


def _on(device, operand):
    tensor = operand if isinstance(operand, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(operand))
    return tensor.detach().to(device)


def _text(call):
    """The graph in the format that torch_xla writes."""
    ours = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in reversed(traceback.extract_stack()) if not os.path.abspath(f.filename).startswith(ours)]
    lines = [f"  {f.name} ({f.filename}:{f.lineno})" for f in frames]
    text = torch_xla._XLAC._get_xla_tensors_text(call).rstrip()
    return "\n".join(["[NkiKernelCall]", "TensorsGraphInfo:", *lines, "", "## BEGIN_GRAPH", text, "", "## END_GRAPH", "", ""])
