//! Diagnostics of a run: arguments, limits.

super::slugs! {
    "input-mismatch", "an input is not what the program was compiled for", "
A program in text form (`.nkir`) has fixed shapes and dtypes. Pass the same, or compile the kernel again.";

    "step-limit", "the kernel does not seem to end", "
Specialisation, and the dynamic loops of the device, stop after a number of steps, so that an endless loop ends with a message.
`--max-steps N` sets the limit. A `while reg:` loop ends only when its body brings the register to 0:

    while reg:
        ...
        nisa.register_store(cond, reg)
        nisa.tensor_scalar(cond, cond, nl.add, -1)
        nisa.register_load(reg, cond)";
}
