"""How the programmes are solved and bounded: columns, interior points, multipliers, certificates."""

from formulations.triplet_lp.method.column_generation import ColumnGeneration
from formulations.triplet_lp.method.interior_point import InteriorPointMethod
from formulations.triplet_lp.method.problem import TripletProgramme

__all__ = ["ColumnGeneration", "InteriorPointMethod", "TripletProgramme"]
