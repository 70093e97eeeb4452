"""Mirror descent over semidefinite matrices and simplices."""
