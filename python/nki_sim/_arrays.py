"""Arrays of NumPy, torch and jax.

Arguments in contiguous host memory are used without a copy; results have the array type of the
arguments.
"""

import sys

import numpy as np

from ._errors import ArgumentError, ArgumentTypeError

_ML_DTYPES = ("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn")


#: The dtypes that NumPy itself defines. They are immutable, unlike structured dtypes.
_NUMPY = {name: np.dtype(name) for name in ("float32", "float16", "int32", "uint32", "int16", "uint16", "int8", "uint8", "int64")}


def numpy_dtype(name):
    """The NumPy dtype of a device type."""
    known = _NUMPY.get(name)
    if known is not None:
        return known
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
    """The structured dtype of four narrow floats in one element: four fields (fp8), or two fields
    with two floats each (fp4).

    The names of the fields contain the name of the type, so that `"x4" in str(array.dtype)` is
    true, as for AWS's extension dtypes.
    """
    element = name.removesuffix("_x4")
    if element == "float4_e2m1fn":
        return np.dtype([(f"{name}_{i}", np.uint8) for i in (0, 1)])
    return np.dtype([(f"{name}_{i}", numpy_dtype(element)) for i in range(4)])


def packed_name(dtype):
    """The device type of a structured dtype; None for other dtypes."""
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
    """The shape and dtype of a tensor without values: `kernel.compile(TensorSpec((128, 512), nl.bfloat16))`.

    :param shape: extents.
    :param dtype: a dtype of `nki.language` or NumPy, or its name.
    """

    def __init__(self, shape, dtype):
        try:
            self.shape = None if isinstance(shape, (str, bytes)) else tuple(shape)
        except TypeError:
            self.shape = None
        if self.shape is None:
            raise ArgumentTypeError(f"TensorSpec({shape!r}, ...): a shape is a tuple of numbers, such as (128, 512)")
        from ._objects import DType

        name = dtype.name if isinstance(dtype, DType) else dtype
        self.dtype = numpy_dtype(name) if isinstance(name, str) else np.dtype(dtype)

    def __repr__(self):
        return f"TensorSpec({self.shape}, {packed_name(self.dtype) or self.dtype.name})"


class DeviceTensor(TensorSpec):
    """A torch tensor on a device other than the host. It is fetched when a kernel runs on it."""

    def __init__(self, tensor, dtype):
        super().__init__(tensor.shape, dtype)
        self.tensor = tensor

    def fetch(self):
        """The values as a NumPy array on the host."""
        return _plain(self.tensor.detach().cpu())

    def store(self, array):
        """Writes values to the tensor."""
        torch = sys.modules["torch"]
        with torch.no_grad():
            self.tensor.copy_(torch.from_numpy(array).view(self.tensor.dtype))


def contiguous(array):
    """A contiguous host copy of a strided array, or of a tensor on another device."""
    return np.array(array, order="C") if isinstance(array, np.ndarray) else np.ascontiguousarray(array.fetch())


def put_back(array, data):
    """Writes new contents, given as bytes, to an array that `contiguous` copied."""
    new = np.frombuffer(bytearray(data), np.uint8).view(array.dtype).reshape(array.shape)
    if isinstance(array, np.ndarray):
        array[...] = new
    else:
        array.store(new)


def share_memory(one, other):
    """Whether two arrays share elements. Returns True if the exact answer is too expensive."""
    try:
        return bool(np.shares_memory(one, other, max_work=100_000))
    except (np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError):
        return True


def as_numpy(value, name):
    """A torch or jax tensor as (NumPy array, whether it is immutable, device type or None); None
    for anything else.

    A tensor without values yields a `TensorSpec` instead of the array, a tensor on another device a
    `DeviceTensor`. No data is copied. `name` is the name of the argument, for messages.
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
    if value.device.type == "meta":
        raise ArgumentError(f"argument `{name}` is a meta tensor, which has no values; pass one with values, such as torch.zeros_like(x, device=\"cpu\")")
    if value.device.type not in ("cpu", "xla"):
        raise ArgumentError(f"argument `{name}` is a tensor on device {value.device}; pass x.cpu()")
    dtype = str(value.dtype).removeprefix("torch.")
    if value.is_complex():
        raise ArgumentTypeError(
            f"argument `{name}` has dtype {value.dtype}, which is not a device type; pass x.real and x.imag as two tensors of float32"
        )
    if dtype in ("int64", "float64"):
        instead = "torch.int32" if dtype == "int64" else "torch.float32"
        raise ArgumentTypeError(f"argument `{name}` has dtype {value.dtype}, which is not a device type; pass x.to({instead})")
    plain = _plain_dtype(torch, dtype)
    device_type = None if plain is None else dtype
    if value.device.type == "xla":
        return DeviceTensor(value, str(plain).removeprefix("torch.") if plain is not None else dtype), False, device_type
    try:
        return _plain(value.detach()), False, device_type
    except (TypeError, RuntimeError) as error:
        raise ArgumentTypeError(f"argument `{name}` {_why_no_memory(torch, value, error)}") from None


def _plain_dtype(torch, dtype):
    """The NumPy dtype of the same size for a dtype that NumPy itself lacks; None for others."""
    return torch.int16 if dtype == "bfloat16" else torch.uint8 if dtype.startswith("float8") else None


def _plain(tensor):
    """A host tensor as a NumPy array that shares its memory."""
    plain = _plain_dtype(sys.modules["torch"], str(tensor.dtype).removeprefix("torch."))
    return (tensor if plain is None else tensor.view(plain)).numpy()


def _why_no_memory(torch, value, error):
    wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    if wrapped is not None and wrapped(value):
        return (
            "is a tensor inside of torch.func.vmap or torch.func.grad: a kernel is compiled for the shapes of its arguments, and torch "
            "does not know its derivative; call it in a torch.autograd.Function with methods of its own for these"
        )
    return f"is a {type(value).__name__} whose memory torch does not expose: {error}; pass a plain tensor"


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
                f"the kernel writes its argument `{name}`, which requires a gradient that torch would compute wrongly; "
                f"call the kernel in a torch.autograd.Function, or under torch.no_grad()"
            )
    return [tensor for _, tensor in tensors]


def note_written(tensors):
    """Marks tensors as written, so that torch rejects a backward pass that needs their old values.
    """
    for tensor in tensors:
        if not tensor.is_inference():
            sys.modules["torch"].autograd.graph.increment_version(tensor)


def _from_jax(jax, value, name):
    if isinstance(value, (jax.core.Tracer, jax.ShapeDtypeStruct)):
        if not isinstance(value.dtype, np.dtype):
            raise ArgumentTypeError(f"argument `{name}` has dtype {value.dtype}, which is not a device type")
        if not value.shape:
            raise ArgumentError(
                f"argument `{name}` is a jax scalar, which has no value while jax traces; pass an array of shape (1, 1), "
                f"or make the argument static (jax.jit's static_argnames)"
            )
        return TensorSpec(value.shape, value.dtype), True, None
    if any(d.platform != "cpu" for d in value.devices()):
        raise ArgumentError(f"argument `{name}` is an array on {value.devices()}; pass jax.device_put(x, jax.devices('cpu')[0])")
    return np.asarray(value), True, None


def package_of(value):
    """The package that defines the type of a value: `torch`, `jaxlib`, ..."""
    return type(value).__module__.split(".")[0]


def is_of_framework(value):
    """Whether a value is of torch or of jax."""
    return package_of(value) in ("torch", "jax", "jaxlib")


def copied(value):
    """A value whose arrays are copies. Those of jax are immutable."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [copied(item) for item in value]
        return items if isinstance(value, list) else value._make(items) if hasattr(value, "_make") else tuple(items)
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if package_of(value) == "torch" and hasattr(value, "clone") else value


def leaves(values, objects=True):
    """Everything in these values that is not a container, in order, each object once.

    Values may contain themselves or each other. With `objects`, the attributes of objects are
    included.
    """
    todo, seen = list(values), set()
    at = 0
    while at < len(todo):
        value = todo[at]
        at += 1
        if isinstance(value, (int, float, str, type(None))) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            todo[at:at] = value.values()
        elif isinstance(value, (list, tuple)):
            todo[at:at] = value
        else:
            yield value
            if objects and not isinstance(value, np.ndarray) and not is_of_framework(value):
                todo[at:at] = getattr(value, "__dict__", {}).values()


def kind_of(values):
    """The array type of the results: that of the first tensor among the arguments.

    For torch tensors that are not on the CPU, the result is their device.
    """
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is None and jax is None:
        return "numpy"
    for value in leaves(values):
        if isinstance(value, np.ndarray):
            return "numpy"
        if torch is not None and isinstance(value, torch.Tensor):
            return "torch" if value.device.type == "cpu" else value.device
        if jax is not None and isinstance(value, jax.Array):
            return "jax"
    return "numpy"


def make(memory, shape, dtype, kind):
    """An array of this type on the simulator's memory, or on a bytearray, which the array then
    owns."""
    if kind == "torch":
        return _to_torch(np.asarray(memory), shape, dtype)
    if kind not in ("numpy", "jax"):
        return _to_torch(np.asarray(memory), shape, dtype).to(kind)
    # `np.ndarray` creates one array; a view and its reshape would create two.
    array = np.ndarray(shape, numpy_dtype(dtype), memory if type(memory) is bytearray else np.asarray(memory))
    if kind == "jax":
        import jax

        # No other object refers to this memory, so jax may keep it without a copy.
        return jax.device_put(array, may_alias=True)
    return array


def _to_torch(data, shape, dtype):
    import torch

    target = getattr(torch, "float32" if dtype == "tfloat32" else dtype, None)
    if target is None:
        raise ArgumentTypeError(f"an output has dtype {dtype}, which torch does not have")
    return torch.from_numpy(data).view(target).reshape(shape)
