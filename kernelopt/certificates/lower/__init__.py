"""Lower bounds in closed form: minorants of the risks, and their minima over the sets of a problem."""
