"""A module that the kernels of the tests import."""

import nki.isa as nisa
import nki.language as nl

OFFSET = 4.0


def scale_tile(tile, by):
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=by)
