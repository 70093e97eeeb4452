"""How both stages are computed and bounded: filters, spectra, candidates, least squares."""
