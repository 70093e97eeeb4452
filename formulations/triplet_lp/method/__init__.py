"""How the linear programmes are solved and bounded: columns, multipliers, certificates."""
