"""Methods and the driver that runs them: `solve`, `explain` and `Solution`."""

from kernelopt.solvers.block_descent import BlockDescent
from kernelopt.solvers.cutting_plane import CuttingPlane
from kernelopt.solvers.exact import Exact
from kernelopt.solvers.explain import Explanation, explain
from kernelopt.solvers.first_order import FirstOrderDual
from kernelopt.solvers.interleaved import Interleaved
from kernelopt.solvers.method import Cost, Method, Outcome
from kernelopt.solvers.mirror_descent import MirrorDescent
from kernelopt.solvers.programme import Programme
from kernelopt.solvers.smooth_dual import SmoothDual
from kernelopt.solvers.solution import Learned, Solution
from kernelopt.solvers.solve import SolveOptions, register_method, solve

for method in (
    Exact(),
    BlockDescent(),
    SmoothDual(),
    MirrorDescent(),
    CuttingPlane(),
    Interleaved(),
    FirstOrderDual(),
):
    register_method(method)

__all__ = [
    "Cost",
    "Explanation",
    "Learned",
    "Method",
    "Outcome",
    "Programme",
    "Solution",
    "SolveOptions",
    "explain",
    "register_method",
    "solve",
]
