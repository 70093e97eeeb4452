"""Cutting planes below the risks, with a Taylor model for weights in a ball."""
