s = nl.ndarray((128, 64), nl.float32, nl.sbuf)
d = nl.ndarray((128, 64), nl.float32, nl.sbuf)
db = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
short = nl.ndarray((128, 63), nl.float32, nl.sbuf)
few = nl.ndarray((32, 64), nl.float32, nl.sbuf)

# rule: mask-length
nisa.nc_stream_shuffle(d, s, [0] * 31)  # [operand-value] 31 elements | 32

# rule: mask-values
nisa.nc_stream_shuffle(d, s, [32] * 32)  # [operand-value] 32 | 0 to 31, or 255
nisa.nc_stream_shuffle(d, s, [255] * 32)  # accepted

# rule: same-dtype
nisa.nc_stream_shuffle(db, s, [0] * 32)  # [operand-dtype] float32 | bfloat16

# rule: same-elements
nisa.nc_stream_shuffle(d, short, [0] * 32)  # [shape-mismatch] 64 | 63

# rule: quadrant-start
nisa.nc_stream_shuffle(d[32:64, 0:64], s[0:64, 0:64], [0] * 32)  # [partition-start] partition 32 | 64 active | 0, 64
nisa.nc_stream_shuffle(d[32:64, 0:64], s[96:128, 0:64], [0] * 32)  # accepted
nisa.nc_stream_shuffle(d[32:64, 0:64], s[5:6, 0:64], [0] * 32)  # accepted
nisa.nc_stream_shuffle(d[32:64, 0:64], s[5:7, 0:64], [0] * 32)  # [partition-start] partition 5

# rule: mask-source
nisa.nc_stream_shuffle(d, few, [0] * 32)  # [out-of-bounds] 32
