//! Diagnostics of the machine's rules: shapes, dtypes, memories, access patterns, uninitialised reads.

super::slugs! {
    "uninitialized-read", "an instruction reads bytes that nothing has written", "
`nl.ndarray` reserves memory and does not fill it. On the device such a read gives whatever was there
before; the simulator gives NaN (floats) or a fixed pattern (integers) and reports the first instruction
that reads it.

Wrong:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)

Right:

    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(acc, value=0.0)
    nisa.tensor_tensor(dst=acc, data1=acc, data2=x, op=nl.add)";
}
