"""`screen`: the kernels of a solution that are proved to have weight zero at every optimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError, MethodError
from kernelopt.learner import Machine
from kernelopt.methods.gap_safe import screened
from kernelopt.methods.solution import Solution
from kernelopt.structure import Structure
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.validation import Array, shown


def screen(solution: Solution) -> tuple[str, ...]:
    """Return the names of kernels that are proved to have weight zero at every optimum.

    The proof is a gap-safe rule for weights on a simplex: an l_1 ball, or a trace. From the bounds of the
    solution it follows how far its dual variables are from optimal ones, and hence how large alpha'K_m alpha
    can be there. A kernel is named if that is below the largest. Rounding errors are included. A smaller gap
    names more kernels, but never one of two equal kernels that tie for the largest.

    Several kernels are proved together, by a Cholesky factorisation whose order is the number of samples that
    are not far from the kinks of their losses.

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk and p = 1.

    Returns
    -------
    tuple of str
        Names of `grams.names`, in their order. The problem without these kernels has the same optima.

    Raises
    ------
    InputError
        If the solution is of no such problem.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> kernels = ko.Grams.from_array([np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]], ["identity", "labels"])
    >>> ko.screen(lp_norm.primal(kernels, [1, -1], p=1).solve("exact"))
    ('identity',)
    """
    read = ball_of(solution, "screen")
    if read.p != 1:
        raise InputError(
            f"screen needs weights on a simplex, p = 1, got p = {read.p:g}: for p > 1 no weight of a kernel "
            "with alpha'K alpha > 0 is zero. Read solution.weights."
        )
    return zero_kernels(solution.certificate, read)


def zero_kernels(certificate: Certificate, read: BallProblem, most: float = np.inf) -> tuple[str, ...]:
    """Return the names of kernels whose weight is zero at every optimum, by the bounds of a certificate.

    Parameters
    ----------
    certificate : Certificate, of a feasible point
    read : BallProblem, with p = 1 and without prices
    most : float
        As for `screened`.
    """
    machine, theta = machine_of(certificate)
    proved = screened(read, theta / read.reach, machine, certificate.lower, most)
    return tuple(name for name, gone in zip(read.whole.names, proved, strict=True) if gone)


def ball_of(solution: Any, caller: str) -> BallProblem:
    """Return the problem of a solution as a `BallProblem`, or raise where it is none."""
    if not isinstance(solution, Solution):
        raise InputError(
            f"solution must be a Solution in {caller}, got {shown(solution)} ({type(solution).__name__}). "
            "Pass what solve has returned."
        )
    if solution.problem is None:
        raise InputError(
            f"{caller} needs the problem of the solution, got a solution that was pickled. Solve it again."
        )
    read = read_ball(Structure(solution.problem))
    if isinstance(read, str):
        raise MethodError(
            f"{caller} needs one risk and weights in an l_p ball or of a given trace, got another problem: "
            f"{read}. Solve it with and without the kernel instead."
        )
    return read


def machine_of(certificate: Certificate) -> tuple[Machine, Array]:
    """Return the machine that attains the upper bound of a certificate, and the weights of its kernel."""
    values = [np.ravel(value) for value in certificate.point.values()]
    if not certificate.feasible or not isinstance(certificate.machines[0], Machine):
        raise InputError("the solution must have a feasible point, got none. Solve the problem longer.")
    theta = np.concatenate(values)
    return certificate.machines[0], np.maximum(theta, 0.0)
