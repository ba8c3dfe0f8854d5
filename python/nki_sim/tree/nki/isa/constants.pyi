"""The names of `nki.isa.constants`. Written by python/stubs.py from the registry of the simulator; do not edit."""

from nki.isa import engine as engine
from nki.isa import dge_mode as dge_mode
from nki.isa import dependency as dependency
from nki.isa import oob_mode as oob_mode
from nki.isa import reduce_cmd as reduce_cmd
from nki.isa import matmul_perf_mode as matmul_perf_mode
from nki.isa import nc_version as nc_version
from nki.isa import dma_engine as dma_engine
