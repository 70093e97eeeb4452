"""Figures of solutions, kernels, conditions of optimality and comparisons. They need matplotlib.

Every function draws one picture on one axes: it takes `ax=`, draws there, and returns it. Several pictures in
one figure are several calls with the axes of `pyplot.subplots`, best with `layout="constrained"`. Without
`ax` the picture is on the axes of a new figure of pyplot, which a notebook shows; with `ax`, pyplot is not
used. Axes that need several panels or a colour bar divide their own place in the figure. A figure is saved
by `ax.figure.savefig(path)`. Where a solution is wanted, a fitted estimator of `kernelopt.estimators` will
do, and what `kernelopt.load` returns as far as files hold what is drawn.

==================== =====================================================================================
`plot_weights`       weights of one solution as bars, of several as shares of the largest
`plot_bounds`        certified bounds of several solutions
`plot_history`       bounds and gap of one solution, or gaps of several, against the time
`plot_kernels`       the learned kernel and the base kernels, sorted by label, group or cluster
`plot_kkt`           the residuals of the conditions of optimality
`plot_comparisons`   the graph of relative comparisons, with its contradictions
`plot_duality`       primal and dual values along a path of dual variables
==================== =====================================================================================

`Solution.plot_history`, `Path.plot` and `Path.plot_bounds` draw one solution against the time, and the
weights and bounds along a parameter.
"""

from kernelopt.plotting.bounds import plot_bounds, plot_history
from kernelopt.plotting.comparisons import plot_comparisons
from kernelopt.plotting.duality import plot_duality
from kernelopt.plotting.kernels import plot_kernels
from kernelopt.plotting.kkt import plot_kkt
from kernelopt.plotting.weights import plot_weights

__all__ = [
    "plot_bounds",
    "plot_comparisons",
    "plot_duality",
    "plot_history",
    "plot_kernels",
    "plot_kkt",
    "plot_weights",
]
