"""Lower bounds of conic problems from multipliers that need not be feasible, and Farkas rays."""
