"""The distance of a kernel from a given matrix, as a convex expression of that kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
from cvxpy.atoms.affine.wraps import Wrap
from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.fidelities import Fidelity, Radial, as_fidelity
from kernelopt.grams import Grams
from kernelopt.language.combination import as_kernel
from kernelopt.language.measures import stacked
from kernelopt.language.terms import terms
from kernelopt.validation import (
    as_expression,
    as_float_array,
    as_symmetric,
    asymmetry,
    numeric,
    taken_as_symmetric,
)


class Difference(Wrap):  # type: ignore[misc]
    """K - S inside of a `Distance`, marked so that a reader finds it in the copy of a tree too."""

    def is_symmetric(self) -> bool:
        return bool(self.args[0].is_symmetric())


class Distance(Wrap):  # type: ignore[misc]
    """L(K - S); made by `fidelity`, it remembers the fidelity L."""

    assumes: tuple[str, ...] = ()

    def __init__(self, expression: cp.Expression, fidelity: Fidelity) -> None:
        self.fidelity = fidelity
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.fidelity]

    def name(self) -> str:
        return f"fidelity({self.difference.name()}, {self.fidelity!r})"

    @property
    def difference(self) -> cp.Expression:
        """K - S, or for a `Radial` fidelity a vector of the same length."""
        found: cp.Expression = next(differences(self.args[0])).args[0]
        return found


def differences(expression: Any) -> Iterator[Difference]:
    """Yield the subexpressions of an expression that are a `Difference`, from left to right."""
    if isinstance(expression, Difference):
        yield expression
    else:
        for arg in expression.args:
            yield from differences(arg)


def fidelity(K: Any, S: ArrayLike, kind: str | Fidelity = "squared_frobenius") -> Distance:
    r"""The distance L(K - S) of a kernel from a given matrix, such as a similarity that is no kernel.

    .. math::

        \sum_{ij} |K_{ij} - S_{ij}|, \qquad \|K - S\|_F, \qquad \|K - S\|_F^2,

    for "l1", "frobenius" and "squared_frobenius", or a convex L of one's own.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        A PSD variable, a combination, or any affine expression. Also the spectrum of a kernel with fixed
        eigenvectors, an expression of shape (N,).
    S : array of shape (N, N), symmetric to 1e-8 relative, of any signature; (N,) where K is a spectrum
        The matrix, or the spectrum, to which K is near.
    kind : "l1", "frobenius", "squared_frobenius" or a Fidelity, default "squared_frobenius"
        Its name, or L itself.

    Returns
    -------
    Distance
        A scalar cvxpy expression, convex and non-negative.

    Raises
    ------
    ShapeError
        If K and S are not of one shape.
    NotSymmetricError, NotFiniteError
        If S is not symmetric, or not finite.
    ParameterError
        If `kind` is no fidelity, or its expression is not convex with one entry, or not of K - S alone.

    Notes
    -----
    The cone is the cone of `Fidelity.expression`: linear for "l1", with N^2 variables, second-order for the
    others. At a combination of m kernels the Frobenius norm and its square take a vector of m + 1 entries
    and not N^2; the triangular factor that it needs costs N^2 m^2 operations once, as in `frobenius`.
    The spellings `cp.sum(cp.abs(K - S))`, `cp.norm(K - S, "fro")` and `cp.sum_squares(K - S)` are read as
    fidelities too.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equations (4) and (6).

    Examples
    --------
    The nearest kernel to diag(2, -1) is diag(2, 0).

    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> K = cp.Variable((2, 2), PSD=True, name="K")
    >>> distance = ko.fidelity(K, np.diag([2.0, -1.0]))
    >>> round(float(cp.Problem(cp.Minimize(distance)).solve(solver=cp.CLARABEL)), 4)
    1.0
    >>> float(ko.fidelity(np.eye(2), np.diag([2.0, -1.0]), "l1").value)
    3.0
    """
    L = as_fidelity(kind)
    given = K if isinstance(K, cp.Expression | Grams) else numeric(K, "K")
    spectrum = len(given.shape) == 1
    kernel = as_expression(given, "K", ndim=1) if spectrum else as_kernel(given)
    target = as_float_array(S, "S").copy()
    if target.shape != kernel.shape:
        raise ShapeError(
            f"S must have the shape of K, {kernel.shape}, got {target.shape} in fidelity. Pass the matrix on "
            "the points of the kernel."
        )
    D = kernel - cp.Constant(target if spectrum else as_symmetric(target, "S"), name="S0")
    if isinstance(L, Radial) and not (spectrum or kernel.is_constant()) and terms(kernel) is not None:
        D = stacked(D)
    marked = Difference(D)
    distance = Distance(checked(L, L.expression(marked), marked), L)
    distance.assumes = () if spectrum else taken_as_symmetric({"S": asymmetry(target)})
    return distance


def checked(L: Fidelity, value: Any, D: Difference) -> cp.Expression:
    """Return the expression of a fidelity of D, or say what is wrong with it."""
    if not (isinstance(value, cp.Expression) and value.size == 1 and value.is_convex()):
        raise ParameterError(
            f"the expression of a fidelity must be convex with one entry, got {value!r:.80} from {L!r}. "
            "Return such as cp.sum(cp.abs(D))."
        )
    alone = {variable.id for variable in value.variables()} <= {variable.id for variable in D.variables()}
    if not alone or not any(True for _ in differences(value)):
        raise ParameterError(
            f"the expression of a fidelity must be made of D = K - S alone, got {value!r:.80} from {L!r}. "
            "Write it with atoms of cvxpy, without variables of its own."
        )
    return value
