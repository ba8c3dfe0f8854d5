s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
b = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
mine = nl.ndarray((128, 64), nl.float32, nl.private_hbm)
other = nl.ndarray((128, 64), nl.float32, nl.private_hbm)
ours = nl.ndarray((128, 64), nl.float32, nl.shared_hbm)

# rule: same-dtype
nisa.sendrecv_compute(s, b, 1, 1, nl.add)  # [operand-dtype] float32 | bfloat16

# rule: same-size
nisa.sendrecv_compute(s, short, 1, 1, nl.add)  # [shape-mismatch] 64 | 63

# rule: same-memory
nisa.sendrecv_compute(s, mine, 1, 1, nl.add)  # [operand-memory] `dst` is in hbm | `src` is in sbuf
nisa.sendrecv_compute(mine, ours, 1, 1, nl.add)  # [operand-memory] `dst` is in shared_hbm
nisa.sendrecv_compute(mine, other, 1, 1, nl.add)  # accepted
nisa.sendrecv_compute(s, d, 1, 1, nl.add)  # trn3 accepted

# rule: ranks
nisa.sendrecv_compute(s, d, 2, 1, nl.add)  # [operand-value] `send_to_rank` is 2
nisa.sendrecv_compute(s, d, 1, -1, nl.add)  # [operand-value] `recv_from_rank` is -1

# rule: operator
nisa.sendrecv_compute(s, d, 1, 1, nl.multiply)  # [op-unsupported] multiply | add, maximum or minimum
nisa.sendrecv_compute(s, d, 1, 1, nl.minimum)  # accepted
