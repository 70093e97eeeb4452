"""Mirror descent with entropies over spectrahedra and simplices."""
