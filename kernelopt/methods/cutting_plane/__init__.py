"""Cutting-plane methods (Kelley's, the level method), and a Taylor model for weights in an l_p ball."""
