"""`Solution`: the certified value, the learned machines, and how they were found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import InputError
from kernelopt.figures import draw_histories, new_axes
from kernelopt.methods.control import listed
from kernelopt.methods.learned import Learned, Part, chosen_machine, single, values, weights_of
from kernelopt.methods.saved import Solved, saved
from kernelopt.plain_tables import html_table
from kernelopt.records import write
from kernelopt.validation import (
    PSD_TOLERANCE,
    Array,
    as_model_path,
    boolean,
    smallest_relative_eigenvalue,
)

__all__ = ["Learned", "Part", "Solution", "weights_of"]

WEIGHTS_SHOWN = 20  # weights up to which a notebook shows all of them


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Solved):
    """A certified solution. It can be pickled and copied; it is equal only to itself.

    Parameters
    ----------
    status : "optimal" or "inaccurate"
        "optimal" if the gap meets the tolerance.
    method, solver : str
        The method, and the solver that found the point.
    value : float
        The objective at the point: `upper` for Minimize, `lower` for Maximize.
    certificate : Certificate
        The bounds with their proof.
    weights_unique : bool or None
        Whether the optimum determines the weights; None where that is not known.
    iterations : int or None
        Of the method.
    history : tuple of (seconds, lower, upper)
        The best bounds, one entry per report of a method.
    build_time, solve_time, certify_time : float
        Seconds spent on compilation, in solvers, and on certificates.
    tol : float or None
        The relative gap that was asked for.
    weights : array, tuple of arrays or None
        Kernel weights of shape (m,), without the weight of the identity. Where all risks have the same
        weights it is one array, and otherwise a tuple with one array for each risk, in the order of `risk=`.
    learned : tuple of Learned
        The machine and the kernel of each risk.
    details : dict from name to number, text or tuple
        What the method tells of its work beside the bounds. Of "newton" they are the `provider` of its
        kernels, its `passes` over all their entries, and the number of machines it has trained, `solves`. At
        p = 1, for one risk, `dropped` is a tuple of names: kernels proved to have weight zero at every
        optimum.
    ended_by_caller : bool
        Whether Ctrl-C, the callback or the time limit ended the call.
    problem : cp.Problem or None
        The problem that was solved; None for a solution that was pickled.

    Attributes
    ----------
    lower, upper, gap : float
        Certified bounds, and their distance relative to max(|upper|, |lower|, floor).
    kernel : array of shape (N, N), tuple, or None
        The learned kernel for prediction, without the ridge tau I.
    alpha : array of shape (n,), of shape (m, n) where every kernel has its own, tuple, or None
        Signed dual variables: f = K alpha + intercept for one kernel (or a list with norm 2).
    intercept : float, tuple, or None
        b.
    tau : float or None
        Weight of the identity kernel: Lanckriet's ridge.
    """

    weights: Any = None
    learned: tuple[Learned, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    ended_by_caller: bool = False
    problem: cp.Problem | None = None

    @property
    def kernel(self) -> Any:
        """The learned kernel on all N points without tau I, one per risk where there are several."""
        return single([part.kernel for part in self.learned])

    @property
    def is_psd(self) -> Any:
        """Whether the learned kernel is positive semidefinite on all N points, to 1e-8 of its size.

        With non-negative weights it is so at any points. With other weights it need not be so at new points.
        """
        return single([smallest_relative_eigenvalue(part.kernel) >= -PSD_TOLERANCE for part in self.learned])

    @property
    def alpha(self) -> Any:
        """The signed dual variables, one array per risk where there are several."""
        return single([part.alpha for part in self.learned])

    @property
    def intercept(self) -> Any:
        """The intercept, one per risk where there are several."""
        return single([part.intercept for part in self.learned])

    @property
    def tau(self) -> Any:
        """The weight of the identity kernel, None where there is none."""
        return single([part.tau for part in self.learned])

    @property
    def margin(self) -> float:
        r""":math:`\omega^{-1/2}` with omega = 2 x risk: for a hard margin the geometric margin."""
        values = [machine.value for machine in self.learned if np.isfinite(machine.value)]
        if len(values) != 1:
            raise InputError(f"margin needs a problem with one risk, got {len(values)}. Read `risk.value`.")
        return float((2 * values[0]) ** -0.5)

    def decision_function(self, cross: ArrayLike | None = None, *, risk: int | None = None) -> Array:
        """Return the predictions of the learned machine; classify by their sign.

        Parameters
        ----------
        cross : array of shape (m, n_new, N), optional
            The m kernels between new points and the N points (or their first n, the labelled ones).
            Without it the predictions are for all N points: the labelled ones and, by transduction,
            the others.
        risk : int from 0 to k - 1, optional
            Which machine; needed where the problem has k > 1 risks. They count from 0, in the order in which
            the problem names them and `explain` lists them.

        Returns
        -------
        array of shape (N,) or (n_new,)
            f, with the intercept.

        Raises
        ------
        InputError
            With `cross`, if the weights have no sign or the kernel is not a combination: it need not
            be positive semidefinite at new points. Learn with the new points among the N instead.
            Also if `risk` is missing, and of class ParameterError if there is no such risk.
        ShapeError
            If `cross` has another shape: points are passed as `grams.cross(X)`.
        """
        machine = chosen_machine(self.learned, risk) if self.learned else None
        if machine is None or not machine.n:
            raise InputError(
                "this problem has no risk, so no machine was learned. Train one on `kernel`, or use the "
                "formulation's own prediction."
            )
        n = machine.n
        if cross is None:
            return machine.intercept + np.asarray(sum(part.predictions(n) for part in machine.own))
        if not machine.inductive:
            raise InputError(
                "new points need a combination with non-negative weights, got a kernel with free signs or "
                "without kernel functions: it need not be positive semidefinite there. Learn with the new "
                "points among the N (unlabelled, after the labelled ones) and call decision_function()."
            )
        stack, weights = machine.crossed(cross, "decision_function")
        return machine.intercept + values(stack[:, :, :n], weights, machine.coefficients)

    def kernel_at(self, cross: ArrayLike, *, risk: int | None = None) -> Array:
        """Return the learned kernel between new points and the N, shape (n_new, N), without the ridge.

        Parameters
        ----------
        cross : array of shape (m, n_new, N)
            The m kernels between them.
        risk : int from 0 to k - 1, optional
            Whose kernel; needed where the problem has k > 1 risks.
        """
        if not self.learned:
            raise InputError("this problem has no combination of kernels, so there is none at new points.")
        stack, weights = chosen_machine(self.learned, risk).crossed(cross, "kernel_at")
        return np.asarray(np.tensordot(weights, stack, 1))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the learned machines, the weights and the certificate to a file.

        The file has the points of the support and no Gram matrices. Of centred kernels it has all points,
        which their mean needs. It is written at once: an interrupted call leaves what was there before.

        Parameters
        ----------
        path : str or path-like
            The name of an NPZ archive, which is taken as it is; an existing file is replaced.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the path ends in .pkl, .pickle or .joblib, or its folder does not exist.
        MethodError
            If the machine does not predict at new points, since its weights have no sign or its kernel is no
            combination, or if a kernel is a function that cannot be written as text.
        OSError
            If the folder cannot be written to.
        """
        target = as_model_path(path, "path")
        write(target, saved(self))
        return target

    def plot_history(self, ax: Any = None, *, gap: bool = False) -> Any:
        """Draw the certified bounds against the seconds of the solve, with the gap between them shaded.

        A second, logarithmic axis has the relative gap. The last point is the certificate of this solution.
        `kernelopt.plotting.plot_history` compares several solutions.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        gap : bool, default False
            Whether to draw the relative gap on a logarithmic axis instead of the bounds.

        Returns
        -------
        matplotlib axes
            What was drawn on.

        Raises
        ------
        InputError
            If no report of the method and no bound of the certificate is finite.
        """
        gap = boolean(gap, "gap")
        rows = self.certified_history(gap)
        ax = new_axes(ax)
        draw_histories(ax, {self.method_and_solver: rows}, gap)
        ax.set_title(f"Certified {'gap' if gap else 'bounds'}, {self.method_and_solver}")
        return ax

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all but the problem, which keeps a solver after a solve."""
        return {**vars(self), "problem": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Solution:
        """Copy everything except the problem and its variables, which are the keys of `certificate.point`."""
        known = memo | {id(v): memo.get(id(v), v) for v in (*self.certificate.point, self.problem)}
        return replace(self, **{f.name: deepcopy(getattr(self, f.name), known) for f in fields(self)})

    @property
    def method_and_solver(self) -> str:
        """The method, with the solver where its name differs, as in "exact (CLARABEL)"."""
        return self.method if self.solver == self.method else f"{self.method} ({self.solver})"

    def _repr_html_(self) -> str:
        rows = [
            ["status", self.status], ["method", self.method_and_solver], ["value", f"{self.value:.9g}"],
            ["lower bound", f"{self.lower:.9g}"], ["upper bound", f"{self.upper:.9g}"],
            ["relative gap", f"{self.gap:.1e}"],
        ]  # fmt: skip
        rows += [["assumes", text] for text in self.certificate.assumes]
        if isinstance(self.weights, np.ndarray):
            rows.append(["weights", np.array2string(self.weights, precision=4, threshold=WEIGHTS_SHOWN)])
        times = (("build", self.build_time), ("solve", self.solve_time), ("certify", self.certify_time))
        if self.details:
            rows.append(["details", "".join(listed(self.details))[2:]])
        rows.append(["seconds", ", ".join(f"{name} {seconds:.2f}" for name, seconds in times)])
        return html_table(rows, caption="Solution")

    def __repr__(self) -> str:
        return f"<Solution: {self}>"

    def __str__(self) -> str:
        trained = [machine for machine in self.learned if machine.n]
        labelled = ""
        if any(machine.n < machine.n_points for machine in trained):
            counts, sizes = (span(m.n for m in trained), span(m.n_points for m in trained))
            labelled = f"{counts} of {sizes} points labelled, "
        return (
            f"{self.status} by {self.method_and_solver}: {self.certificate}, {labelled}"
            f"build {self.build_time:.2f} s, solve {self.solve_time:.2f} s, "
            f"certify {self.certify_time:.2f} s{''.join(listed(self.details))}"
        )


def span(counts: Iterable[int]) -> str:
    """Return "9" where all counts are 9, else the smallest and the largest, as in "9 to 12"."""
    ordered = sorted(set(counts))
    return " to ".join(str(count) for count in dict.fromkeys([ordered[0], ordered[-1]]))
