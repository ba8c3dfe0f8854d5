"""Random inputs of MX kernels, generated at once instead of one block of 32 elements after the
other."""

import numpy as np

# Rows and columns of elements that share a scale.
BLOCK = (8, 4)


def pin_exponents(data: np.ndarray, exponent: int) -> None:
    """Gives one element of every block of `data` [rows, columns] the largest exponent, in place:
    sign * [1, 1.5) * 2**exponent.

    Quantising such a block recovers that exponent regardless of its other elements, so that values
    survive the round trip.
    """
    rows, columns = (extent // of_block for extent, of_block in zip(data.shape, BLOCK))
    row = np.arange(rows)[:, None] * BLOCK[0] + np.random.randint(0, BLOCK[0], (rows, columns))
    column = np.arange(columns)[None, :] * BLOCK[1] + np.random.randint(0, BLOCK[1], (rows, columns))
    sign = np.random.choice([-1.0, 1.0], (rows, columns))
    data[row, column] = sign * np.random.uniform(1.0, 1.5, (rows, columns)) * 2.0**exponent
