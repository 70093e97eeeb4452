"""Conic solvers: the ladder of those that are installed, calls that a watch can end, and predicted costs."""
