"""The explicit conic problem, solved by the solvers that are installed."""
