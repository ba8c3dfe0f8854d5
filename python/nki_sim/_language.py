"""Signatures and documentation of the functions of `nki.language`, which have no schemas."""

_TILE = "dtype=None"

#: name: (signature, documentation)
FUNCTIONS = {
    "ndarray": (
        "shape, dtype, buffer=sbuf, name='', address=None",
        "An uninitialised tensor. `buffer` is the memory: sbuf, psum, private_hbm or shared_hbm (outputs of a kernel). "
        "On chip the first dimension is the partition dimension, at most `nl.tile_size.pmax`. "
        "`address=(partition, byte)` places it.",
    ),
    "zeros": ("shape, dtype, buffer=sbuf, name='', address=None", "A tensor of zeros; see `ndarray`."),
    "ones": ("shape, dtype, buffer=sbuf, name='', address=None", "A tensor of ones; see `ndarray`."),
    "full": ("shape, fill_value, dtype, buffer=sbuf, name=''", "A tensor filled with one value; see `ndarray`."),
    "zeros_like": ("x, dtype=None, buffer=None, name=''", "A tensor of zeros with the shape (and dtype, buffer) of `x`."),
    "empty_like": ("x, dtype=None, buffer=None, name=''", "An uninitialised tensor with the shape (and dtype, buffer) of `x`."),
    "shared_constant": ("constant, dtype=None", "Constant data in shared HBM, known when the kernel is compiled."),
    "shared_identity_matrix": ("n, dtype=uint8, dst=None", "The identity matrix of `n` rows, for transposes on the tensor engine."),
    "ds": ("start, size", "A slice of `size` elements from `start`, which may be a register: `t[nl.ds(i * 128, 128), :]`."),
    "affine_range": ("start, stop=None, step=1", "A range that is unrolled when the kernel is compiled."),
    "sequential_range": ("start, stop=None, step=1", "A range that is unrolled when the kernel is compiled."),
    "static_range": ("start, stop=None, step=1", "A range that is unrolled when the kernel is compiled."),
    "dynamic_range": (
        "start, stop=None, step=1",
        "A loop on the device. The bounds may be registers; the loop variable is a register.",
    ),
    "fori_loop": (
        "lower, upper, body_fun, step=1",
        "A loop on the device: calls `body_fun(i)` with a register from `lower` to below `upper`.",
    ),
    "while_loop": (
        "init, body_fun",
        "A loop on the device: `body_fun(reg)` returns the next condition; the loop ends when it is 0.",
    ),
    "no_reorder": ("", "`with nl.no_reorder():` keeps the order of instructions. Values are always computed in program order."),
    "program_id": ("axis=0", "The number of this core: 0, or 1 on the second of two cores."),
    "num_programs": ("axes=None", "The number of cores that run the kernel."),
    "program_ndim": ("", "1 if the kernel runs on several cores, else 0."),
    "is_hbm": ("buffer", "Whether a memory is in HBM."),
    "is_on_chip": ("buffer", "Whether a memory is SBUF or PSUM."),
    "is_psum": ("buffer", "Whether a memory is PSUM."),
    "is_sbuf": ("buffer", "Whether a memory is SBUF."),
    "load": ("src, dtype=None", "A tile in SBUF, of the same shape, with the contents of the HBM view `src`."),
    "store": ("dst, value", "Writes the tile `value` to the HBM view `dst`."),
    "device_print": ("print_prefix, tensor", "Prints a tensor while the kernel runs."),
    "sum": ("x, axis, dtype=None, keepdims=False", "Sum over free axes."),
    "max": ("x, axis, dtype=None, keepdims=False", "Maximum over free axes."),
    "min": ("x, axis, dtype=None, keepdims=False", "Minimum over free axes."),
    "mean": ("x, axis, dtype=None, keepdims=False", "Mean over free axes."),
    "prod": ("x, axis, dtype=None, keepdims=False", "Product over free axes."),
    "var": ("x, axis, dtype=None, keepdims=False", "Variance over free axes."),
    "all": ("x, axis, dtype=None, keepdims=False", "Whether all elements over free axes are nonzero."),
    "softmax": ("x, axis, dtype=None", "Softmax over free axes."),
    "rms_norm": (
        "x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None",
        "Root-mean-square normalisation over `n` elements.",
    ),
    "where": ("condition, x, y, dtype=None", "`x` where the condition is nonzero, else `y`."),
    "transpose": ("x, dtype=None", "The tile with the partition and the free dimension exchanged."),
    "matmul": ("x, y, transpose_x=False", "Matrix product of two tiles, in PSUM."),
    "broadcast_to": ("x, shape, dtype=None", "The tile repeated to a shape."),
    "expand_dims": ("x, axis", "The tile with a dimension of 1 inserted."),
}

ISA_FUNCTIONS = {
    "register_alloc": ("x=None", "A register of the device: uninitialised, or with an int or the single element of a tensor."),
    "get_nc_version": ("", "The target generation of the kernel, a member of `nisa.nc_version`."),
    "get_nc_sub_version": ("", "Always 0."),
}

COLLECTIVE_FUNCTIONS = {
    "rank_id": ("", "The rank that runs the kernel, a register."),
    "collective_permute_implicit_current_processing_rank_id": (
        "iteration_id, replica_group, channel_id=0",
        "The rank whose data this rank has after `iteration_id` steps of the ring of its group, a register.",
    ),
}

_BINARY = {
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "abs_max", "abs_min", "power", "mod", "fmod", "equal", "not_equal",
    "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "left_shift", "right_shift", "arithmetic_right_shift", "arithmetic_left_shift",
}  # fmt: skip

_NAMES = {"bypass", "prelu", "average"}


def about(module, name, kind):
    """Signature and documentation of a function or operator."""
    if module == "nki.collectives":
        return COLLECTIVE_FUNCTIONS[name]
    if module == "nki.isa":
        return ISA_FUNCTIONS.get(name, ("*args, **kwargs", "The simulator does not have this instruction yet."))
    if kind == "operator":
        words = name.replace("_", " ")
        if name in _NAMES:
            return "", f"The operator {words}, as an `op=` argument of instructions; it cannot be called."
        both = "Also an operator for `op=` arguments of instructions."
        if name in _BINARY:
            return "x, y, dtype=None", f"Element by element: {words} of `x` and `y`, tiles or numbers. {both}"
        return "x, dtype=None", f"Element by element: {words} of the tile `x`. {both}"
    return FUNCTIONS.get(name, ("*args, **kwargs", "See the documentation of the NKI language."))
