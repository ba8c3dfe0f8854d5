"""The tensor class, for annotations and for arguments without values.

`nl.tensor` is an older name of the class. Python gives the package an attribute for each module that is
imported, so this module is the class, which has itself as an attribute.
"""

import sys as _sys

from nki_sim._objects import NkiTensor

NkiTensor.NkiTensor = NkiTensor
_sys.modules[__name__] = NkiTensor
