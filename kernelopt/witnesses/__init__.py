"""Searches for multipliers of good lower bounds, in plain floats; certificates evaluate what they find."""
