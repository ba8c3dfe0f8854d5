s = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
d = nl.ndarray((128, 16), nl.float8_e4m3fn_x4, nl.sbuf)
c = nl.ndarray((128, 16), nl.uint8, nl.sbuf)
s40 = nl.ndarray((40, 64), nl.bfloat16, nl.sbuf)
d40 = nl.ndarray((40, 16), nl.float8_e4m3fn_x4, nl.sbuf)
d64 = nl.ndarray((64, 16), nl.float8_e4m3fn_x4, nl.sbuf)
s62 = nl.ndarray((128, 62), nl.bfloat16, nl.sbuf)
d15 = nl.ndarray((128, 15), nl.float8_e4m3fn_x4, nl.sbuf)
c15 = nl.ndarray((128, 15), nl.uint8, nl.sbuf)
c4 = nl.ndarray((4, 16), nl.uint8, nl.sbuf)

# rule: quadrants
nisa.quantize_mx(d40, s40, c)  # trn3 [partition-size] 40 partitions

# rule: same-partitions
nisa.quantize_mx(d64, s, c)  # trn3 [partition-mismatch] 64 | 128

# rule: multiple
nisa.quantize_mx(d15, s62, c15)  # trn3 [free-size] 62 | multiple of 4

# rule: dst-size
nisa.quantize_mx(d15, s, c15)  # trn3 [shape-mismatch] 15 | 16
nisa.quantize_mx(d, s, c)  # trn3 accepted

# rule: scale-size
nisa.quantize_mx(d, s, c15)  # trn3 [shape-mismatch] 15 | 16

# rule: scale-partitions
nisa.quantize_mx(d, s, c4)  # trn3 [partition-size] 4 partitions | 100

# rule: scale-start
nisa.quantize_mx(d, s, c[2:110, 0:16])  # trn3 [partition-start] partition 2

# rule: scale-quadrant
nisa.quantize_mx(d[0:32, 0:16], s[0:32, 0:64], c[32:64, 0:16])  # trn3 [partition-start] partition 32 | quadrant

# rule: scale-stride
nisa.quantize_mx(d, s, c[0:128:2, 0:16])  # trn3 [partition-stride] stride of 2
