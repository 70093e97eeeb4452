"""Feasible points near a candidate."""
