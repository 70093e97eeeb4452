"""Conic solvers: the ladder of those that are installed, interruptible solves, and predicted costs."""
