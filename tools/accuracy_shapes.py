"""Determines the shapes that a host program passes to a kernel, without the packages that the
program imports.

The program runs with stand-ins for all modules: tensors have a shape and a dtype but no values, any
other use of a module succeeds, and nothing accesses files or processes. The first call of the
kernel ends the program.
"""

import builtins
import math
import types

SAFE = (
    "abs all any bool dict divmod enumerate float int isinstance len list map max min range reversed round set sorted str sum tuple zip "
    "Exception ValueError RuntimeError AssertionError TypeError True False None __build_class__ slice hasattr getattr object property "
    "staticmethod classmethod super type callable format repr iter next filter ImportError KeyError IndexError SystemExit"
).split()
DTYPES = {
    "bfloat16", "float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "float8_e4m3fn", "float8_e4m3", "float8_e5m2",
}  # fmt: skip
# Methods and functions of a tensor that keep its shape.
KEEP = set(
    "abs astype ceil clamp clip clone contiguous copy cos cpu detach exp floor log neg relu round rsqrt sigmoid silu sin softmax sqrt tanh "
    "requires_grad_ normal_ uniform_ zero_ mul_ div_ add_ pow square sign nan_to_num tril triu sort".split()
)
CASTS = {"bfloat16": "bfloat16", "float": "float32", "half": "float16", "int": "int32", "long": "int64"}


class Called(Exception):
    """Raised when the kernel is called."""


class Tensor:
    def __init__(self, shape, dtype="float32"):
        self.shape, self.dtype = tuple(shape), dtype

    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: Tensor(self.shape[::-1], self.dtype))

    def size(self, axis=None):
        return self.shape if axis is None else self.shape[axis]

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def to(self, *targets, dtype=None, **_):
        found = [t for t in (*targets, dtype) if t in DTYPES] if dtype or targets else []
        return Tensor(self.shape, found[0] if found else self.dtype)

    type = to

    def reshape(self, *shape):
        sizes = list(shape[0] if shape and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.numel() // -math.prod(sizes)
        if math.prod(sizes) != self.numel():
            raise ValueError(f"reshape of {self.shape} to {sizes}")
        return Tensor(sizes, self.dtype)

    def view(self, *shape):
        return Tensor(self.shape, shape[0]) if shape[0] in DTYPES else self.reshape(*shape)

    def flatten(self):
        return Tensor([self.numel()], self.dtype)

    def permute(self, *axes):
        return Tensor([self.shape[a] for a in (axes[0] if isinstance(axes[0], (tuple, list)) else axes)], self.dtype)

    def transpose(self, *axes):
        if len(axes) != 2:
            return self.permute(*axes)
        order = list(range(self.ndim))
        a, b = (axis % self.ndim for axis in axes)
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    def t(self):
        return self.T

    def unsqueeze(self, axis):
        sizes = list(self.shape)
        sizes.insert(axis % (self.ndim + 1), 1)
        return Tensor(sizes, self.dtype)

    def squeeze(self, axis=None):
        return Tensor([n for i, n in enumerate(self.shape) if n != 1 or (axis is not None and i != axis % self.ndim)], self.dtype)

    def expand(self, *sizes):
        sizes = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
        own = [1] * (len(sizes) - self.ndim) + list(self.shape)
        return Tensor([n if n != -1 else o for n, o in zip(sizes, own)], self.dtype)

    def repeat(self, *times):
        own = [1] * (len(times) - self.ndim) + list(self.shape)
        return Tensor([n * o for n, o in zip(times, own)], self.dtype)

    def reduce(self, dim=None, keepdim=False, axis=None, keepdims=False):
        dim = axis if dim is None else dim
        if dim is None:
            return Tensor([], self.dtype)
        dims = {d % self.ndim for d in ([dim] if isinstance(dim, int) else dim)}
        kept = [1 if i in dims else n for i, n in enumerate(self.shape) if keepdim or keepdims or i not in dims]
        return Tensor(kept, self.dtype)

    amax = amin = sum = mean = max = min = reduce

    def __getitem__(self, index):
        index = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in index:
            at = index.index(Ellipsis)
            index[at : at + 1] = [slice(None)] * (self.ndim - sum(i is not None for i in index) + 1)
        sizes, rest = [], list(self.shape)
        for i in index:
            if i is None:
                sizes.append(1)
            elif isinstance(i, slice):
                sizes.append(len(range(*i.indices(rest.pop(0)))))
            elif isinstance(i, int):
                rest.pop(0)
            else:
                return Anything()
        return Tensor([*sizes, *rest], self.dtype)

    def __setitem__(self, index, value):
        pass

    def __len__(self):
        return self.shape[0]

    def __getattr__(self, name):
        if name in CASTS:
            return lambda *_: Tensor(self.shape, CASTS[name])
        if name in KEEP:
            return lambda *a, **k: Tensor(self.shape, next((x for x in (*a, *k.values()) if isinstance(x, str) and x in DTYPES), self.dtype))
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def combine(self, other):
        if isinstance(other, Anything):
            return other
        shape = other.shape if isinstance(other, Tensor) else ()
        longest = max(len(self.shape), len(shape))
        a, b = ([1] * (longest - len(s)) + list(s) for s in (self.shape, shape))
        return Tensor([max(x, y) for x, y in zip(a, b)], self.dtype)

    def __matmul__(self, other):
        return Tensor([*self.shape[:-1], other.shape[-1]], self.dtype) if isinstance(other, Tensor) else other

    def __neg__(self):
        return self

    def __format__(self, _):
        return ""


for _name in "add sub mul truediv floordiv mod pow lt le gt ge".split():
    setattr(Tensor, f"__{_name}__", Tensor.combine)
    setattr(Tensor, f"__r{_name}__", Tensor.combine)


class Anything:
    """A stand-in on which every operation succeeds. A call with a function returns the function,
    for the wrappers of benchmarks."""

    def __init__(self, kernel=None):
        self._kernel = kernel

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "jit":
            return decorate
        return Kernel() if name == self._kernel else Anything(self._kernel)

    def __call__(self, *args, **_):
        return args[0] if args and isinstance(args[0], (Kernel, types.FunctionType)) else Anything(self._kernel)

    def __getitem__(self, _):
        return self

    def __setitem__(self, _, value):
        pass

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __float__(self):
        return 0.0

    def __index__(self):
        return 0

    def __format__(self, _):
        return ""

    def again(self, *_):
        return self


for _name in "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow matmul rmatmul lt le gt ge neg".split():
    setattr(Anything, f"__{_name}__", Anything.again)


class Kernel:
    """A kernel, with or without its grid."""

    def __getitem__(self, _):
        return self

    def __call__(self, *args, **kwargs):
        raise Called((args, kwargs))


def decorate(*function, **_):
    return Kernel() if function else decorate


def created(*shape, dtype=None, size=None, **_):
    """A tensor from a creation function, whose arguments are sizes or a tuple of sizes."""
    shape = shape if size is None else (size,)
    sizes = shape[0] if len(shape) >= 1 and isinstance(shape[0], (tuple, list)) else shape
    dtype = dtype if dtype in DTYPES else next((x for x in shape if isinstance(x, str) and x in DTYPES), "float32")
    return Tensor([n for n in sizes if isinstance(n, int)], dtype)


def literal(values, dtype=None, **_):
    """A tensor from torch.tensor, numpy.array or torch.from_numpy."""
    if isinstance(values, Tensor):
        return values.to(dtype) if dtype else values
    shape, inner = [], values
    while isinstance(inner, (list, tuple)):
        shape.append(len(inner))
        inner = inner[0] if inner else 0
    return Tensor(shape, dtype or ("int64" if isinstance(inner, int) else "float32"))


def joined(parts, dim=0, axis=None):
    dim = (dim if axis is None else axis) % parts[0].ndim
    return Tensor([sum(p.shape[dim] for p in parts) if i == dim else n for i, n in enumerate(parts[0].shape)], parts[0].dtype)


def stacked(parts, dim=0, axis=None):
    sizes = list(parts[0].shape)
    sizes.insert((dim if axis is None else axis) % (len(sizes) + 1), len(parts))
    return Tensor(sizes, parts[0].dtype)


def counted(*bounds, dtype=None, **_):
    return Tensor([len(range(*bounds))] if all(isinstance(b, int) for b in bounds) else [math.ceil((bounds[1] - bounds[0]) / (*bounds, 1)[2])], dtype or "int64")


class Arrays(Anything):
    """A stand-in for torch or numpy."""

    MAKERS = {
        **dict.fromkeys("randn rand zeros ones empty random standard_normal".split(), created),
        **dict.fromkeys("tensor array asarray as_tensor from_numpy ascontiguousarray".split(), literal),
        **dict.fromkeys("cat concat concatenate".split(), joined),
        "stack": stacked,
        "arange": counted,
        "full": lambda shape, value, dtype=None, **_: created(shape, dtype=dtype),
        "linspace": lambda start, end, count, **k: created(count, **k),
        "randint": lambda low, high, size, **k: created(size, **{"dtype": "int64", **k}),
        "integers": lambda low, high=None, size=(), **k: created(size, **{"dtype": "int64", **k}),
        "normal": lambda mean=0, std=1, size=(), **_: created(size),
        "uniform": lambda low=0, high=1, size=(), **_: created(size),
        "randperm": lambda n, **k: created(n, dtype="int64"),
        "zeros_like": lambda t, **k: t.to(**k),
        "ones_like": lambda t, **k: t.to(**k),
        "outer": lambda a, b: Tensor([*a.shape, *b.shape], a.dtype),
        "transpose": lambda t, *axes: t.permute(*axes) if axes else t.T,
    }

    def __getattr__(self, name):
        if name in DTYPES:
            return name
        if name in self.MAKERS and not (name == "random" and self._kernel == "numpy"):
            return self.MAKERS[name]
        if name == "random" or name == "default_rng":
            return Arrays("generator")
        if name in KEEP:
            return lambda t, *a, **k: getattr(t, name)(*a, **k)
        return super().__getattr__(name)

    def __call__(self, *_, **__):
        return self


def module(name, kernel):
    root = name.partition(".")[0]
    if root == "math":
        return math
    if root == "torch" or root == "numpy":
        return Arrays(root)
    return Anything(kernel)


def arguments(program, kernel):
    """The (positional, named) arguments of the first call of `kernel`, or of a kernel that the
    program defines, when the program runs; None if it ends without such a call."""
    safe = {name: getattr(builtins, name) for name in SAFE if hasattr(builtins, name)}
    safe |= {"__import__": lambda name, *_: module(name, kernel), "print": lambda *_, **__: None, "open": Anything()}
    try:
        exec(compile(program.read_text(), str(program), "exec"), {"__builtins__": safe, "__name__": "__main__", "__file__": str(program)})
    except Called as called:
        return called.args[0]
    except (Exception, SystemExit):
        return None
    return None
