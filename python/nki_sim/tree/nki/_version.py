"""The version of the language and of the simulator."""

from nki_sim import _native

#: The newest version of the language that runs, then that of the simulator.
__version__ = f"0.7.0+sim.{_native.__version__}"
