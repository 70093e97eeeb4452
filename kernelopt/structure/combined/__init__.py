"""Weights of any sign whose combination of kernels is PSD and has a given trace."""
