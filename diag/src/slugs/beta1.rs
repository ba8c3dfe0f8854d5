//! Diagnostics of kernels for `neuronxcc.nki`.

super::slugs! {
    "bad-mask", "`mask=` takes something that leaves no rectangle", "
A mask is a comparison of index tiles, or several joined by `&`. Each comparison may involve one axis
of the tile, which it clips to an interval; loop variables are numbers. The axes of the mask are those
of the operands.

    i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
    nl.load(x[i, j], mask=i < j)                        # wrong: two axes in one comparison
    nl.load(x[i, j], mask=(i < 100) & (j < 300))        # right
    nisa.affine_select(pred=i >= j, on_true_tile=t, on_false_value=0.0)      # a triangle";

    "block-dimension", "a tensor with block dimensions is used as one tile", "
The dimensions before `nl.par_dim` count tiles that are independent of each other. An instruction
works on one of them: block dimensions are indexed with ints.

    t = nl.ndarray((4, nl.par_dim(128), 512), dtype=nl.float32)
    nl.store(out, t)                                    # wrong: four tiles
    for i in nl.affine_range(4):
        nl.store(out[i], t[i])                          # right";

    "ignored-argument" (Suspicious), "a keyword that the function does not have", "
Functions of Beta 1 and the decorators accept any keyword, and ignore those that they do not have.

    nisa.nc_matmul(a, b, transpose_x=True)              # wrong: transposes nothing
    nl.matmul(a, b, transpose_x=True)                   # right
    @nki.jit(platform_taget=\"trn1\")                   # wrong: compiles for another machine";

    "immutable-argument" (Suspicious), "an older kernel writes to an argument that it does not declare or return", "
The older compiler refuses stores to arguments that are not declared as mutable, and kernels that do not
return those that are. Here they run. A kernel that returns nothing may write to any argument.

    def kernel(x): nl.store(x, t); return out                       # wrong
    def kernel(x: nt.mutable_tensor): nl.store(x, t); return out, x # right";

    "late-use", "a result is used after it was assigned to another tile", "
`acc += nisa.nc_matmul(...)` adds the product in PSUM: the product itself is nowhere. A result that was
assigned by `t[...] = result` can be used later, but not from a loop of the device that has ended.

    product = nisa.nc_matmul(a, b)
    acc += product
    nl.store(out, product)                              # wrong
    product = nl.copy(nisa.nc_matmul(a, b))             # right: a tile of its own
    acc += product";

    "launch-grid", "the launch grid does not fit the cores", "
An axis `nl.nc(2)` of the grid spreads its programs over two cores; the kernel is compiled for as many.
A kernel that another kernel calls has no grid.

    nki-sim run k.py --programs 4,2                         # 8 programs on one core
    nki-sim run k.py --programs nc2*4                       # 4 programs on each of two cores";

    "loop-carried" (Suspicious), "a name is assigned in a loop whose iterations all begin with its first value", "
The older compiler reads the body of a loop over `nl.affine_range` or `nl.sequential_range` once. `t = t +
x` makes a new tile there, which only the body knows: each iteration begins with the tile that `t` held
before the loop, and after the loop `t` cannot be used. The same holds for numbers.

    for i in nl.affine_range(4):
        t = t + nl.load(x[i])                           # wrong: adds one of the four
    for i in nl.sequential_range(4):
        t[...] = t + nl.load(x[i])                      # right: updates the tile

In the current language, the body of `nl.dynamic_range`, `nl.fori_loop` and `nl.while_loop` is executed once, and
the device repeats its instructions. What the body assigns is not there in the next iteration:

    for i in nl.dynamic_range(4):
        nisa.tensor_tensor(new, old, x, nl.add)
        old, new = new, old                             # wrong: `old` is the same tile in each iteration
        count += 1                                      # wrong: 1 in each iteration
        state['count'] += 1                             # wrong: this item does not accumulate either";

    "loop-reduce", "`nl.loop_reduce` cannot tell the first iteration", "
The first iteration of the loops copies the value, later ones combine it with what the tile holds. The
first one is that in which all of `loop_indices` are 0.

    for i in nl.affine_range(1, 9):                     # wrong: never 0
        best[...] = nl.loop_reduce(t, op=np.max, loop_indices=[i])
    for i in nl.affine_range(8):                        # right: use i + 1 in the body
        best[...] = nl.loop_reduce(t, op=np.max, loop_indices=[i])";

    "matmul-mask" (Suspicious), "`mask=` of a matmul has an axis that two axes of the matmul have", "
A mask restricts the axes of the operands, and the first axis of both is the contraction. Rows of the
product are the columns of the first operand, and may be as many as the contraction is long, or as the
product has columns. A mask as an index names the operand.

    nisa.nc_matmul(a, b, mask=i_p < n)                  # unclear: sums over the first n rows
    nisa.nc_matmul(a[i_p < n], b)                       # the same: i_p = nl.arange(128)[:, None]
    nisa.nc_matmul(a[i_f < n], b)                       # n rows of the product: i_f = nl.arange(128)[None, :]
    nisa.nc_matmul(a, b, mask=i_f < n)                  # unclear if both have 128 columns: n columns
    nisa.nc_matmul(a, b[i_f < n])                       # the same";

    "tile-condition", "a tile, a mask or an index tile is used as a condition", "
A kernel is specialised before it runs: the values of a tile are not known then, and an index tile
stands for many numbers. Python's `if`, `while`, `not` and `or` need one value.

    if nl.arange(128)[:, None] < n: ...                 # wrong
    nl.load(x[i, j], mask=i < n)                        # right: restrict the access
    if t is not None: ...                               # right: an optional tile";
}
