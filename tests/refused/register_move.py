r = nisa.register_alloc()

# rule: int32
nisa.register_move(r, 1 << 32)  # [operand-value] 4294967296 | 32 bits
nisa.register_move(r, -1)  # accepted
