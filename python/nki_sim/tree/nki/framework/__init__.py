"""Kernels as objects of a framework. See nki_sim."""
