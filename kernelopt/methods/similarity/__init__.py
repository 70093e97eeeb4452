"""Kernels near similarity matrices, learned by accelerated gradient ascent on the dual."""
