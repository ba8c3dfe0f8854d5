//! Diagnostics of a run: arguments, limits.

super::slugs! {
    "deadlock", "cores or ranks wait for each other for ever", "
A `core_barrier`, a `sendrecv` or a collective waits until all its members have come. One of them never does: it has ended, it waits
somewhere else, or it does not exist. The message names the line of each. All members must come to their meetings in one order, each the
same number of times; a branch on `nl.program_id` must not hold a meeting that only one core takes.

    if nl.program_id(0) == 0:
        nisa.core_barrier(data=t, cores=(0, 1))     # wrong: core 1 never comes

    nisa.core_barrier(data=t, cores=(0, 1))         # right: outside of the branch

Two exchanges (`sendrecv`) with different `pipe_id` are different meetings: both cores must start them in one order.";

    "input-mismatch", "an input is not what the program was compiled for", "
A program in text form (`.nkir`) has fixed shapes and dtypes. Pass the same, or compile the kernel again.";

    "meeting-mismatch", "cores or ranks meet, but with operands that do not go together", "
What one member of a `sendrecv` or of a collective sends must be what the others expect: the same shapes and dtypes, the same groups, the
same operator; and if core 0 sends to core 1, core 1 must receive from core 0. The message names both lines and what differs.";

    "memory-limit", "the kernel needs more memory than the simulator may use", "
Specialisation holds values, strings, lists and instructions in the memory of this machine, and a run holds the device's tensors. The message
says how much would be in use and what the limit is: `--max-memory SIZE`, else `nki_sim.configure(max_memory=SIZE)`, else
`NKI_SIM_MAX_MEMORY`, else half of the memory that is available. A list that doubles in a loop is the usual cause:

    for i in range(64):
        rows = rows + rows            # wrong: 2**64 items

    for i in range(64):
        rows.append(i)                # right";

    "shared-memory-race" (Bug), "two cores access the same bytes of shared memory and nothing orders them", "
A core writes bytes of a shared HBM tensor that the other core reads or writes, and no `core_barrier` or `sendrecv` between the cores lies
in between. On the device either may come first. The message names both lines.

    if core == 0:
        nisa.dma_copy(dst=shared, src=tile)
    nisa.dma_copy(dst=other, src=shared)            # wrong: core 1 may read before core 0 has written

    if core == 0:
        nisa.dma_copy(dst=shared, src=tile)
    nisa.core_barrier(data=shared, cores=(0, 1))    # right
    nisa.dma_copy(dst=other, src=shared)

The rule: each `core_barrier` and each `sendrecv` between the cores orders everything that comes before it, in program order and on either
core, ahead of everything after it on the other, whatever tensor it names. Bytes are compared exactly. A write that leaves the bytes as they
were is no race: both cores may write the same result.";

    "stale-source", "a source file was changed after Python had loaded it", "
A kernel that Python calls is compiled from its source file, found by the line that Python remembers. If the file was changed since, that line
holds something else. Start Python again, or reload the module with `importlib.reload`.";

    "step-limit", "the kernel does not seem to end", "
Specialisation, and the dynamic loops of the device, stop after a number of steps, so that an endless loop ends with a message.
`--max-steps N` sets the limit. A `while reg:` loop ends only when its body brings the register to 0:

    while reg:
        ...
        nisa.register_store(cond, reg)
        nisa.tensor_scalar(cond, cond, nl.add, -1)
        nisa.register_load(reg, cond)";
}
