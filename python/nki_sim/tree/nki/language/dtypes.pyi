"""The names of `nki.language.dtypes`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.language import bool as bool
from nki.language import int8 as int8
from nki.language import int16 as int16
from nki.language import int32 as int32
from nki.language import int64 as int64
from nki.language import uint8 as uint8
from nki.language import uint16 as uint16
from nki.language import uint32 as uint32
from nki.language import float16 as float16
from nki.language import bfloat16 as bfloat16
from nki.language import float32 as float32
from nki.language import tfloat32 as tfloat32
from nki.language import float8_e4m3 as float8_e4m3
from nki.language import float8_e4m3fn as float8_e4m3fn
from nki.language import float8_e5m2 as float8_e5m2
from nki.language import float8_e8m0fnu as float8_e8m0fnu
from nki.language import float8_e4m3fn_x4 as float8_e4m3fn_x4
from nki.language import float8_e5m2_x4 as float8_e5m2_x4
from nki.language import float4_e2m1fn_x4 as float4_e2m1fn_x4
from nki.language import bool_ as bool_
