"""Weights of any sign with a PSD combination of given trace, by a master problem on few vectors."""
