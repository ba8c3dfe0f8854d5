//! Findings about values: what an instruction makes of the numbers of this run.

super::slugs! {
    "activation-range" (Suspicious), "an activation function gets an argument for which the engine gives invalid results", "
The scalar engine approximates functions by polynomials, and the manual gives the arguments for which they are valid (table of supported
activation functions): log [2^-64, 2^64], sqrt [2^-116, 2^118], rsqrt [2^-87, 2^97], reciprocal ±[2^-42, 2^42], sin [-pi, pi], arctan
[-pi/2, pi/2]. The argument is `data * scale + bias`. The simulator gives the function's value everywhere, so a kernel that passes here is wrong
on the device. An argument whose result is not finite, such as `log(0)`, is reported as `non-finite`.

Wrong, if a row of `x` may be zero:

    nisa.activation(dst=root, op=nl.sqrt, data=sums)

Right:

    nisa.activation(dst=root, op=nl.sqrt, data=sums, bias=epsilon)

`nl.sin` brings its argument into range itself, `nisa.activation(op=nl.sin)` does not. `nisa.reciprocal` on the vector engine has no such limits.";

    "float-register" (Suspicious), "a register gets the bits of a float, not its value", "
`nisa.register_load` copies the 32 bits of an element. A register holds an integer: 1.0 becomes 1065353216, and a loop that counts up to it
does not end. Convert the value first:

    nisa.tensor_copy(dst=count_int32, src=count_float32)         # rounds to the nearest integer
    nisa.register_load(register, count_int32)";

    "inexact-integer" (Suspicious), "an integer above 2^24 loses bits in fp32", "
The engines compute in fp32, which holds all integers up to 2^24 = 16777216 and only every second, fourth, ... above. The message has the first
operand or result that changes, and what it becomes. Exact are bitwise operators, `tensor_tensor` of 32-bit integers on GpSimd (the default engine for tiles of such in SBUF), copies between equal types,
and the address arithmetic of `tensor_scalar`.

    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add, engine=nisa.vector_engine)    # wrong for int32 above 2^24
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add, engine=nisa.gpsimd_engine)    # right";

    "non-finite" (Suspicious), "infinity or NaN arises from finite operands", "
The message names the instruction, its iteration, the first element and its operands. The first such instruction is the cause; what follows
from it is not reported. Reported is a result that is NaN where no operand that it is made of is NaN, or infinite where none is infinite or
NaN. So infinities and NaN do not count that the kernel writes itself (`memset`, scalar operands), that come with the inputs, or that are in memory that
nothing has written; an operand that is the largest fp32 number counts as infinite, because kernels mask with it. `exp(-inf) = 0` is
fine; `-inf - -inf = NaN` is not, a row of a softmax that is masked out as a whole, for example. A finite number that becomes infinity or NaN because its
tensor's type has a smaller range (float16: 65504) is reported, too.

Wrong:

    nisa.activation(dst=e, op=nl.exp, data=scores)                           # inf above 88.7

Right:

    nisa.tensor_reduce(dst=top, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.activation(dst=e, op=nl.exp, data=scores, bias=top)

Each line and tensor is reported once. A matmul, a collective, and other instructions that compute whole tiles look at all elements of their
operands where they cannot tell which ones a result is made of.";

    "saturated-store" (Suspicious), "a value is clipped to the range of an integer type", "
A value that is stored to an integer tensor is rounded and clipped to what its type holds: 300 in uint8 becomes 255, -1 becomes 0. The message has the
first value that changes so. Values that are quantised should be scaled or clamped by the kernel, so that clipping is its decision:

    nisa.tensor_scalar(dst=q, data=x, op0=nl.multiply, operand0=scale)       # wrong if |x * scale| may exceed 127 and q is int8

    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=scale, op1=nl.minimum, operand1=127.0)
    nisa.tensor_scalar(dst=q, data=y, op0=nl.maximum, operand0=-128.0)       # right

8-bit floats do not clip: a value beyond their range becomes infinity or NaN, which is `non-finite`.";

    "uninitialized-output" (Bug), "memory that nothing has written reaches an output", "
An instruction has read memory that nothing has written (`uninitialized-read` names it), and an element of an output is made of what it read. On
the device the output has another value with each run. The message has the first such element.

    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64], src=x[0:64])
    nisa.dma_copy(dst=out, src=t)                                            # wrong: rows 64 to 127 hold anything

Only what reaches an output is certain to be a bug: a kernel may compute with rows that it does not store.";
}
