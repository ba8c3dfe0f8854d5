s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
b = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
big = nl.ndarray((128, 257), nl.float32, nl.sbuf)
bd = nl.ndarray((128, 257), nl.float32, nl.sbuf)

# rule: same-dtype
nisa.sendrecv(s, b, 1, 1, 0)  # [dtype-mismatch] float32 | bfloat16

# rule: same-size
nisa.sendrecv(s, short, 1, 1, 0)  # [shape-mismatch] 64 | 63

# rule: ranks
nisa.sendrecv(s, d, 2, 1, 0)  # [operand-value] `send_to_rank` is 2
nisa.sendrecv(s, d, 1, -1, 0)  # [operand-value] `recv_from_rank` is -1

# rule: gpsimd-size
nisa.sendrecv(big, bd, 1, 1, 0, dma_engine=nisa.dma_engine.gpsimd_dma)  # [free-size] 1028 bytes | 1024
