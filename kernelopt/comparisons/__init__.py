"""Relative comparisons "i is more similar to j than to k": validation, sampling, scores, contradictions."""

from kernelopt.comparisons.pairs import Comparisons, comparisons
from kernelopt.comparisons.triplets import as_triplets, sample_triplets, triplet_score

__all__ = ["Comparisons", "as_triplets", "comparisons", "sample_triplets", "triplet_score"]
