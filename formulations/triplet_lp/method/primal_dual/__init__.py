"""A primal-dual interior-point method on the kernel weights, for all cones of the triplet programmes."""
