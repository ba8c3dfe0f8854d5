"""The names of `nki.language.buffers`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.language import sbuf as sbuf
from nki.language import psum as psum
from nki.language import hbm as hbm
from nki.language import private_hbm as private_hbm
from nki.language import shared_hbm as shared_hbm
from nki.language import is_hbm as is_hbm
from nki.language import is_on_chip as is_on_chip
from nki.language import is_psum as is_psum
from nki.language import is_sbuf as is_sbuf
