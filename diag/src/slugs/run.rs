//! Diagnostics of a run: arguments, limits.

super::slugs! {
    "deadlock", "cores or ranks wait for each other forever", "
A `core_barrier`, a `sendrecv` or a collective waits until all its members have arrived. One of them
never arrives: it has ended, it waits elsewhere, or it does not exist. The message names the line of
each member. All members must execute their synchronisations in the same order and equally often; a
branch on `nl.program_id` must not contain a synchronisation that only one core executes.

    if nl.program_id(0) == 0:
        nisa.core_barrier(data=t, cores=(0, 1))     # wrong: core 1 never arrives

    nisa.core_barrier(data=t, cores=(0, 1))         # right: outside of the branch

Exchanges (`sendrecv`) with different `pipe_id` are separate synchronisations: both cores must start
them in the same order.";

    "input-mismatch", "an input differs from the compiled shape or dtype", "
A program in text form (`.nkir`) has fixed shapes and dtypes. Pass inputs with the same shapes and
dtypes, or compile the kernel again.";

    "malformed-run-line", "a `# nki-sim:` comment above a kernel cannot be understood", "
A run line supplies the arguments of the kernel below it to calls without `--arg`:

    # nki-sim: x=float32[256,512] causal=True
    @nki.jit
    def attention(x, causal=False):

Blanks separate the arguments; each is `NAME=VALUE` as `--arg` takes it, without blanks around the
`=`. A kernel may have several run lines, which form one list.";

    "meeting-mismatch", "cores or ranks synchronise with incompatible operands", "
The data that one member of a `sendrecv` or of a collective sends must match the expectation of the
others: the same shapes and dtypes, the same groups, the same operator. If core 0 sends to core 1,
core 1 must receive from core 0. The message names both lines and the difference.";

    "memory-limit", "the kernel needs more memory than the simulator may use", "
Specialisation keeps values, strings, lists and instructions in the memory of the host, and a run
keeps the device's tensors there. The message gives the required amount and the limit. The limit is
`--max-memory SIZE`, else `nki_sim.configure(max_memory=SIZE)`, else `NKI_SIM_MAX_MEMORY`, else half
of the available memory. The usual cause is a list that doubles in a loop:

    for i in range(64):
        rows = rows + rows            # wrong: 2**64 items

    for i in range(64):
        rows.append(i)                # right";

    "shared-memory-race" (Bug), "two cores access the same bytes of shared memory without synchronisation", "
A core writes bytes of a shared HBM tensor that the other core reads or writes, without a
`core_barrier` or `sendrecv` between the two accesses. On the device either access may come first.
The message names both lines.

    if core == 0:
        nisa.dma_copy(dst=shared, src=tile)
    nisa.dma_copy(dst=other, src=shared)            # wrong: core 1 may read before core 0 has written

    if core == 0:
        nisa.dma_copy(dst=shared, src=tile)
    nisa.core_barrier(data=shared, cores=(0, 1))    # right
    nisa.dma_copy(dst=other, src=shared)

The rule: each `core_barrier` and each `sendrecv` between the cores orders all preceding accesses of
either core, in program order, before all following accesses of the other core, regardless of the
tensor that it names. Bytes are compared exactly. A write that does not change the bytes is not a
race: both cores may write the same result.";

    "unnamed-shared-hbm" (Suspicious), "a core reads what the other core wrote to shared memory without a name", "
The compiler of the device links the `shared_hbm` tensors of the two cores by `name=`; inputs and the tensors that the kernel returns
need none. Any other tensor without a name may exist once for each core, and a core that reads what the other has written then gets old
bytes. The simulator has one tensor, as the kernel means it.

    partial = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)                    # wrong
    partial = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm, name=\"partial\")    # right
    nisa.dma_copy(dst=partial[core], src=tile)
    nisa.core_barrier(data=partial, cores=(0, 1))
    nisa.dma_copy(dst=both, src=partial)

Sources: `nl.ndarray` in the manual of NKI 0.2 demands the name (\"the compiler uses the name to link\"). Later pages do not mention
it, and the example of `core_barrier` has none; but nki-library names all such tensors, and a kernel of it (csa_decode_attention.py)
reports zeros in place of what the other core wrote.";

    "uneven-trips" (Bug), "the two cores run different numbers of iterations of a device loop", "
The cores of a logical core meet in each iteration of a device loop (`nl.fori_loop`, `nl.while_loop`, `nl.dynamic_range`), so
the core with more iterations hangs. Iterate up to the larger count on both:

    nl.fori_loop(0, own_count, body)        # wrong: the count of core 0 differs from that of core 1
    nl.fori_loop(0, larger_count, body)     # right: surplus iterations skip their transfers (oob_mode.skip)

Counts are compared over all loops: the cores may have loops of their own, if their iterations add up to the same number. Source:
the rules of `nl.fori_loop` (NKI 0.6), and comments of published kernels that hung.";

    "stale-source", "a source file changed after Python loaded it", "
A kernel that Python calls is compiled from its source file, located by the line number that Python
recorded. If the file has changed since, that line contains something else. Restart Python, or
reload the module with `importlib.reload`.";

    "ambiguous-lambda", "a line holds several lambdas that Python does not distinguish", "
A function that Python passes to a kernel is compiled from its source, located by what Python recorded
about it. Python 3.10 records the line alone, as do later versions with `-X no_debug_ranges`. If a line
holds several lambdas with the same parameters and different code, write each on a line of its own:

    double, triple = lambda a: nl.multiply(a, 2.0), lambda a: nl.multiply(a, 3.0)    # wrong

    double = lambda a: nl.multiply(a, 2.0)    # right
    triple = lambda a: nl.multiply(a, 3.0)";

    "step-limit", "the kernel does not appear to end", "
Specialisation, and the dynamic loops of the device, stop after a number of steps, so that an
endless loop ends with a diagnostic. `--max-steps N` sets the limit, in Python
`nki_sim.configure(max_steps=N)`. A `while reg:` loop ends only
if its body sets the register to 0:

    while reg:
        ...
        nisa.register_store(cond, reg)
        nisa.tensor_scalar(cond, cond, nl.add, -1)
        nisa.register_load(reg, cond)";

    "wide-view", "a tensor is viewed as another dtype, while every element is kept in 32 bits", "
With NKI_PRECISE_FP=0 a bfloat16 number is kept in fp32, and so is every other element narrower than
32 bits. A view of the same bytes as another dtype (`t.view(nl.uint16)`, `t.ap(..., dtype=...)`) has a
meaning only if both dtypes have 32 bits. Unset NKI_PRECISE_FP.";
}
