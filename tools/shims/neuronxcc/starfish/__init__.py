"""Stands in for a package of the Neuron compiler: the names that nki-library imports."""
