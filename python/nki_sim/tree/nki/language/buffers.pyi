"""The names of `nki.language.buffers`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.language import sbuf as sbuf, psum as psum, hbm as hbm, private_hbm as private_hbm, shared_hbm as shared_hbm, is_hbm as is_hbm, is_on_chip as is_on_chip, is_psum as is_psum, is_sbuf as is_sbuf
