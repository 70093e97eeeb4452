"""Methods and the driver that runs them: `solve`, `explain` and `Solution`."""

from kernelopt.methods.cutting_plane.method import CuttingPlane
from kernelopt.methods.engine.method import Newton
from kernelopt.methods.exact.method import Exact
from kernelopt.methods.exact.programme import Programme
from kernelopt.methods.explain import Explanation, explain
from kernelopt.methods.lp_ball.block_descent import BlockDescent
from kernelopt.methods.lp_ball.interleaved import Interleaved
from kernelopt.methods.lp_ball.smooth_dual import SmoothDual
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.mirror_descent.method import MirrorDescent
from kernelopt.methods.pricing import Price, price, screen
from kernelopt.methods.similarity.method import FirstOrderDual
from kernelopt.methods.solution import Learned, Solution
from kernelopt.methods.solve import DEFAULT_TOL, SolveOptions, register_method, solve
from kernelopt.methods.spectral_master.method import SpectralMaster

for method in (
    Exact(),
    BlockDescent(),
    SmoothDual(),
    MirrorDescent(),
    CuttingPlane(),
    Interleaved(),
    Newton(),
    FirstOrderDual(),
    SpectralMaster(),
):
    register_method(method)

__all__ = [
    "DEFAULT_TOL",
    "Cost",
    "Explanation",
    "Learned",
    "Method",
    "Outcome",
    "Price",
    "Programme",
    "Solution",
    "SolveOptions",
    "explain",
    "price",
    "register_method",
    "screen",
    "solve",
]
