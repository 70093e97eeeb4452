"""Lower bounds over weights of any sign whose combination is PSD and has a given trace."""
