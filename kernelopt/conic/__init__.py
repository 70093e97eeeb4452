"""Conic solvers: the ladder of those that are installed, calls that can be ended, and predicted costs."""
