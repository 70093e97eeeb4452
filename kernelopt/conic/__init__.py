"""Conic solvers: the ladder of installed ones, interruptible solves, and predicted costs."""
