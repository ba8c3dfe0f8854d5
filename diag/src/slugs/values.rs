//! Findings about the values that a run computes.

super::slugs! {
    "activation-range" (Suspicious), "the argument of an activation function is outside its valid range", "
The scalar engine approximates functions by polynomials. The manual gives the valid range of their
arguments (table of supported activation functions): log [2^-64, 2^64], sqrt [2^-116, 2^118], rsqrt
[2^-87, 2^97], reciprocal ±[2^-42, 2^42], sin [-pi, pi], arctan [-pi/2, pi/2]. The argument is
`data * scale + bias`. The simulator returns the value of the function everywhere, so a kernel with
correct results in the simulator can be wrong on the device. An argument whose result is not finite,
such as `log(0)`, is reported as `non-finite`.

Wrong, if a row of `x` may be zero:

    nisa.activation(dst=root, op=nl.sqrt, data=sums)

Right:

    nisa.activation(dst=root, op=nl.sqrt, data=sums, bias=epsilon)

`nl.sin` reduces its argument to the valid range, `nisa.activation(op=nl.sin)` does not.
`nisa.reciprocal` on the vector engine has no such limits.";

    "float-register" (Suspicious), "a register receives the bits of a float instead of its value", "
`nisa.register_load` copies the 32 bits of an element. A register holds an integer: 1.0 becomes
1065353216, and a loop that counts up to it is
effectively endless. Convert the value first:

    nisa.tensor_copy(dst=count_int32, src=count_float32)         # rounds to the nearest integer
    nisa.register_load(register, count_int32)";

    "divide-operator" (Suspicious), "an instruction divides, which the compiler does not support", "
The table of operators in the manual has no `nl.divide`, `nl.mod` and `nl.fmod`, and NKI's compiler for trn2 is reported
to reject `divide` and `mod` as operators of instructions. The simulator computes the quotient or the remainder. Kernels for
`neuronxcc.nki` may divide.

    nisa.tensor_tensor(dst=q, data1=x, data2=y, op=nl.divide)          # wrong on the device
    nisa.reciprocal(dst=r, data=y)                                     # right
    nisa.tensor_tensor(dst=q, data1=x, data2=r, op=nl.multiply)";

    "element-order" (Suspicious), "tiles that an instruction combines have the same sizes in another order", "
An instruction needs operands with the same number of elements in each partition, and takes the elements of each operand in the order of
its dimensions. So it accepts shapes like (128, 2, 3) and (128, 3, 2), and element [p, 0, 2] of one meets element
[p, 1, 0] of the other. Copies of one tile, which may be meant to reshape it, are not reported.

    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)                        # wrong if b is a with two dimensions swapped
    nisa.tensor_tensor(dst=c, data1=a, data2=b.permute((0, 2, 1)), op=nl.add)     # pairs equal indices
    nisa.tensor_tensor(dst=c, data1=a, data2=b.reshape((128, 2, 3)), op=nl.add)   # right if only the positions matter";

    "inexact-integer" (Suspicious), "an integer above 2^24 loses bits in fp32", "
The engines compute in fp32, which represents all integers up to 2^24 = 16777216, and above that
only every second, fourth, ... integer. The message names the first operand or result that changes,
and its new value. These operations are exact: bitwise operators, `tensor_tensor` of 32-bit integers
on GpSimd (the default engine for such tiles in SBUF), copies between equal types, and the address
arithmetic of `tensor_scalar`. A `minimum`, `maximum` or comparison with a number is not reported
either if the rounding does not change its result.

An `iota` in a float type of 8 or 16 bits is reported as well, by `check` too: bfloat16 represents all
integers up to 256, float16 up to 2048. So is a copy of 16-bit or 32-bit integers to such a type, if it changes
one of them, and a comparison of 32-bit integers with a number that float32 does not represent.

    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add, engine=nisa.vector_engine)    # wrong for int32 above 2^24
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add, engine=nisa.gpsimd_engine)    # right";

    "non-finite" (Suspicious), "infinity or NaN arises from finite operands", "
The message names the instruction, its iteration, the first element and its operands. The first such
instruction is the cause; consequences are not reported.

A result is reported if it is NaN and none of its source operands is NaN, or if it is infinite and
none of them is infinite or NaN. Infinities and NaN that the kernel writes itself (`memset`, scalar
operands), that come from the inputs, or that come from uninitialized memory are therefore not
reported. An operand that is the largest fp32 number counts as infinite, because kernels use it for
masking. `exp(-inf) = 0` is allowed; `-inf - -inf = NaN` is reported, for example for a fully masked
row of a softmax. A finite number that becomes infinity or NaN because the type of its tensor has a
smaller range (float16: 65504) is reported, too.

Wrong:

    nisa.activation(dst=e, op=nl.exp, data=scores)                           # inf above 88.7

Right:

    nisa.tensor_reduce(dst=top, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.activation(dst=e, op=nl.exp, data=scores, bias=top)

Each line and tensor is reported once. A matmul, a collective, and other instructions that compute
whole tiles check all elements of their operands if the source elements of a result cannot be
determined.";

    "saturated-store" (Suspicious), "a value is clipped to the range of an integer type", "
A value that is stored to an integer tensor is rounded and clipped to the range of its type: 300 in
uint8 becomes 255, -1 becomes 0. The message names the first value that changes in this way. A
kernel that quantises should scale or clamp the values itself, so that clipping is intentional:

    nisa.tensor_scalar(dst=q, data=x, op0=nl.multiply, operand0=scale)       # wrong if |x * scale| may exceed 127 and q is int8

    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=scale, op1=nl.minimum, operand1=127.0)
    nisa.tensor_scalar(dst=q, data=y, op0=nl.maximum, operand0=-128.0)       # right

8-bit floats are not clipped: a value beyond their range becomes infinity or NaN, which is reported
as `non-finite`.";

    "unexpected-values" (Suspicious), "an operand has values that its instruction does not expect", "
The call makes a promise about the values of an operand, and the values are others:

- `nc_matmul(is_transpose=True)` moves `stationary` through `moving`, which must be an identity or a
  permutation: no column has several nonzero elements or one other than 1. From trn2 on the
  instruction does not multiply. It is not the way to transpose an operand of a matmul: `nc_matmul`
  always contracts over the partitions.
- `is_stationary_onezero=True`, `is_moving_onezero=True`: the float32 operand holds 0 and 1 only.
- the tile `prob` of a `dropout` holds numbers from 0 to 1.
- `send_to_rank` and `recv_from_rank` of a `sendrecv` are the other core.
- a number that is not 0 stays so in float32, in which the engines compute: 1e-50 becomes 0.
- elements are shifted by at least 0 bits, and by fewer bits than they have.

The simulator computes with the values as they are; the device need not.

    nisa.nc_matmul(dst=qk, stationary=q, moving=k, is_transpose=True)      # wrong: q.T @ k is meant
    nisa.nc_matmul(dst=qk, stationary=q, moving=k)                         # right";

    "wrapped-integer" (Suspicious), "a result of int32 arithmetic exceeds 32 bits", "
Exact arithmetic on int32 tiles (`tensor_tensor` on GpSimd, the address arithmetic of
`tensor_scalar`) wraps modulo 2^32: 2147483647 + 1 becomes -2147483648. The message names the first
such result. The check covers int32 only. uint32 wraps without a finding, because hash functions and
random number generators rely on it.

An `iota` whose values need more than 32 bits is reported in all integer types, and a `memset` of an
unsigned tile with a negative number, both by `check` too.

    nisa.tensor_scalar(dst=offset, data=row, op0=nl.multiply, operand0=1 << 20)    # wrong for rows above 2047 in int32";

    "uninitialized-output" (Bug), "uninitialized memory reaches an output", "
An instruction has read uninitialized memory (`uninitialized-read` names it), and an element of an
output depends on this data. On the device the output differs from run to run. The message names the
first such element.

    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64], src=x[0:64])
    nisa.dma_copy(dst=out, src=t)                                            # wrong: rows 64 to 127 hold anything

Only data that reaches an output is certainly a bug: a kernel may compute with rows that it does not
store.";
}
