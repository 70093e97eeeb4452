"""The compiled loops of the ascent: projections after a rank-one change, weights and intercepts."""
