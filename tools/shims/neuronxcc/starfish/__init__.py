"""Replaces a package of the Neuron compiler: provides the names that nki-library imports."""
