"""Arrays of NumPy, torch and jax: taken in without a copy, handed out in the kind that came in."""

import sys

import numpy as np

from ._errors import ArgumentError, ArgumentTypeError

_ML_DTYPES = ("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn")


def numpy_dtype(name):
    """The NumPy dtype of a device type."""
    if name == "tfloat32":
        name = "float32"
    if name in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(f"arrays of {name} need the package ml_dtypes: pip install ml_dtypes") from None
        return np.dtype(getattr(ml_dtypes, name))
    if name.endswith("_x4"):
        return _packed(name)
    return np.dtype(name)


def _packed(name):
    """Four narrow floats in one element: a structured dtype of four fields (fp8), or of two fields of two each (fp4).

    The fields have the type's name in theirs: code that asks `"x4" in str(array.dtype)` finds it, as with AWS's own extension dtypes.
    """
    element = name.removesuffix("_x4")
    if element == "float4_e2m1fn":
        return np.dtype([(f"{name}_{i}", np.uint8) for i in (0, 1)])
    return np.dtype([(f"{name}_{i}", numpy_dtype(element)) for i in range(4)])


def packed_name(dtype):
    """The device type of a structured dtype; None if there is none."""
    if dtype.fields is None:
        return None
    fields = [dtype.fields[n][0].name for n in dtype.names]
    if len(fields) == 4 and len(set(fields)) == 1 and fields[0] in ("float8_e4m3fn", "float8_e5m2") and dtype.itemsize == 4:
        return f"{fields[0]}_x4"
    if dtype.itemsize == 2 and (
        fields == ["float4_e2m1fn"] * 4 or (fields == ["uint8"] * 2 and all("float4" in n for n in dtype.names))
    ):
        return "float4_e2m1fn_x4"
    return None


class TensorSpec:
    """Shape and dtype of a tensor without values: `kernel.compile(TensorSpec((128, 512), nl.bfloat16))`.

    :param shape: extents.
    :param dtype: a dtype of `nki.language` or NumPy, or its name.
    """

    def __init__(self, shape, dtype):
        self.shape = tuple(shape)
        from ._objects import DType

        name = dtype.name if isinstance(dtype, DType) else dtype
        self.dtype = numpy_dtype(name) if isinstance(name, str) else np.dtype(dtype)

    def __repr__(self):
        return f"TensorSpec({self.shape}, {packed_name(self.dtype) or self.dtype.name})"


def as_numpy(value, name):
    """A tensor of torch or jax as (NumPy array, whether it is immutable, device type or None); None for anything else.

    What has no values gives a `TensorSpec` instead of the array. No data is copied. `name` is the argument's, for messages.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(torch, value, name)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, (jax.Array, jax.ShapeDtypeStruct)):
        return _from_jax(jax, value, name)
    return None


def _from_torch(torch, value, name):
    if value.layout is not torch.strided or value.is_quantized:
        raise ArgumentTypeError(f"argument `{name}` is a sparse or quantized tensor; pass a dense one")
    if value.device.type != "cpu":
        raise ArgumentError(f"argument `{name}` is a tensor on device {value.device}; pass x.cpu()")
    value = value.detach()
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype in ("int64", "float64", "complex64", "complex128"):
        instead = "torch.int32" if dtype == "int64" else "torch.float32"
        raise ArgumentTypeError(f"argument `{name}` has dtype {value.dtype}, which is not a device type; pass x.to({instead})")
    # NumPy does not know these by itself.
    plain = torch.int16 if dtype == "bfloat16" else torch.uint8 if dtype.startswith("float8") else None
    try:
        return (value if plain is None else value.view(plain)).numpy(), False, dtype if plain is not None else None
    except (TypeError, RuntimeError) as error:
        raise ArgumentTypeError(f"argument `{name}` {_why_no_memory(torch, value, error)}") from None


def _why_no_memory(torch, value, error):
    wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    if wrapped is not None and wrapped(value):
        return (
            "is a tensor inside of torch.func.vmap or torch.func.grad: a kernel is compiled for the shapes of its arguments, and torch "
            "does not know its derivative; call it in a torch.autograd.Function with methods of its own for these"
        )
    return f"is a {type(value).__name__} whose memory torch does not give: {error}; pass a plain tensor"


def torch_tensors(compiled):
    """The torch tensors that the compiled kernel will write."""
    torch = sys.modules.get("torch")
    names = compiled.written() if torch is not None else ()
    if not names:
        return []
    tensors = [(n, t) for n, t in zip(compiled.inputs(), compiled.operands()) if n in names and isinstance(t, torch.Tensor)]
    for name, tensor in tensors:
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(
                f"the kernel writes its argument `{name}`, which requires a gradient that torch would get wrong; "
                f"call the kernel in a torch.autograd.Function, or under torch.no_grad()"
            )
    return [tensor for _, tensor in tensors]


def note_written(tensors):
    """Tells torch of tensors that were written, so that a backward that needs their old values fails and is not wrong."""
    for tensor in tensors:
        if not tensor.is_inference():
            sys.modules["torch"].autograd.graph.increment_version(tensor)


def _from_jax(jax, value, name):
    if isinstance(value, (jax.core.Tracer, jax.ShapeDtypeStruct)):
        if not isinstance(value.dtype, np.dtype):
            raise ArgumentTypeError(f"argument `{name}` has dtype {value.dtype}, which is not a device type")
        if not value.shape:
            raise ArgumentError(
                f"argument `{name}` is a scalar of jax, which has no value while jax traces; pass an array of shape (1, 1), "
                f"or make the argument static (jax.jit's static_argnames)"
            )
        return TensorSpec(value.shape, value.dtype), True, None
    if any(d.platform != "cpu" for d in value.devices()):
        raise ArgumentError(f"argument `{name}` is an array on {value.devices()}; pass jax.device_put(x, jax.devices('cpu')[0])")
    return np.asarray(value), True, None


def kind_of(values):
    """The kind of results: that of the first tensor among the arguments."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is None and jax is None:
        return "numpy"
    todo = list(values)
    while todo:
        value = todo.pop(0)
        if isinstance(value, np.ndarray):
            return "numpy"
        if torch is not None and isinstance(value, torch.Tensor):
            return "torch"
        if jax is not None and isinstance(value, jax.Array):
            return "jax"
        if isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, (list, tuple)):
            todo.extend(value)
        elif not isinstance(value, (int, float, str, type(None))):
            todo.extend(getattr(value, "__dict__", {}).values())
    return "numpy"


def make(memory, shape, dtype, kind):
    """An array of this kind on memory of the simulator."""
    data = np.asarray(memory)
    if kind == "torch":
        return _to_torch(data, shape, dtype)
    array = data.view(numpy_dtype(dtype)).reshape(shape)
    if kind == "jax":
        import jax

        # Nobody else has this memory, so jax may keep it instead of a copy.
        return jax.device_put(array, may_alias=True)
    return array


def _to_torch(data, shape, dtype):
    import torch

    target = getattr(torch, "float32" if dtype == "tfloat32" else dtype, None)
    if target is None:
        raise ArgumentTypeError(f"an output has dtype {dtype}, which torch does not have")
    return torch.from_numpy(data).view(target).reshape(shape)
