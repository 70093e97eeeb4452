"""Newton steps on the weights over a working set of points: `method="newton"`."""
