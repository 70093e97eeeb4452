"""Plain functions of arrays: norms, factors, roots, projections, rounding errors, compiled loops."""
