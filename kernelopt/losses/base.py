"""The interface of a loss: value, cvxpy expression, conjugate, domain of the dual, best intercept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from kernelopt.errors import InputError, LabelError, ShapeError
from kernelopt.losses.curve import Curve, descent, piecewise_intercept
from kernelopt.losses.perspective import curve_perspective, read_scaling
from kernelopt.losses.weights import Weight, checked_weight, per_sample
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.roots import last_above
from kernelopt.numerics.rounding import TERM_ROUNDINGS
from kernelopt.validation import Array, as_labels, as_targets, positive, refuse_hidden, shown

LARGE = 1e12  # replaces an infinite entry of a point that is projected


class Primal(NamedTuple):
    """The best primal value of the functions scale * f + intercept, for a given f."""

    value: float
    scale: float
    intercept: float


OF_THE_CURVE = ("responder", "dual_value", "dual_gradient", "dual_expression")  # where l is quadratic


class Loss(ABC):
    r"""A convex loss V(t, y), summed over the samples with its weights.

    A loss is described by its conjugate. With the signed dual variable a,

    .. math:: \sum_i V(t_i, y_i) = \max_a\ \ell(a) - a't, \qquad \ell(a) = -\sum_i V^*(-a_i, y_i),

    and the maximiser a(t) is minus the derivative of the loss. A subclass defines `expression` and `curve`.
    If its dual is not piecewise quadratic, it has `quadratic = False` and also defines `responder`,
    `dual_value`, `dual_gradient` and `dual_expression`; a class that states these without the flag, or the
    flag without all of them, is refused. A subclass that is a dataclass with `repr=False` is printed on one
    short line.
    """

    kind: ClassVar[Literal["labels", "targets", "none"]] = "labels"
    default_bias: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Raise where a dual that is not quadratic would be taken from the curve: bounds would be false.

        Raise too where a field has the name of a method.
        """
        super().__init_subclass__(**options)
        refuse_hidden(cls)
        missing = [name for name in OF_THE_CURVE if getattr(cls, name) is getattr(Loss, name)]
        if len(missing) < len(OF_THE_CURVE) and cls.quadratic is Loss.quadratic:
            stated = [name for name in OF_THE_CURVE if name not in missing]
            raise InputError(
                f"the loss {cls.__name__}, which states {', '.join(stated)}, must say that its dual is not "
                "piecewise quadratic, got no `quadratic`: bounds would be taken from its curve. Set "
                "`quadratic = False` in the class, or leave these out."
            )
        if missing and cls.quadratic is not Loss.quadratic:
            raise InputError(
                f"the loss {cls.__name__}, whose dual is not piecewise quadratic, must state "
                f"{', '.join(OF_THE_CURVE)}, got none for {', '.join(missing)}. State them, or leave out "
                "`quadratic`."
            )

    @abstractmethod
    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        """Return the summed loss as a convex cvxpy expression.

        Parameters
        ----------
        fit : cvxpy expression of shape (n,)
            The predictions.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """

    @abstractmethod
    def curve(self, y: Array) -> Curve:
        """Return the coefficients of l(a). If l is not quadratic, only the bounds are used.

        Parameters
        ----------
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """

    def __repr__(self) -> str:
        arguments = (f"{name}={shown(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({', '.join(arguments)})"

    @property
    def quadratic(self) -> bool:
        """Whether l is given by `curve`, hence piecewise quadratic."""
        return True

    def targets(self, y: ArrayLike | None, n: int, what: str = "y") -> Array:
        """Return labels or targets after checking them.

        Parameters
        ----------
        y : array of shape (n,), or None
            What the user has passed. None stands for ones, where the loss has no targets.
        n : int
            The number of points of the kernel; the labelled ones come first.
        what : str, default "y"
            What messages call it.

        Raises
        ------
        ShapeError, LabelError
            If y is missing or longer than n, or its entries do not suit the `kind` of the loss.
        """
        if self.kind == "none" and y is None:
            return np.ones(n)
        if y is None:
            raise ShapeError(
                f"{self!r} needs {what}, got None. Pass the "
                f"{'labels' if self.kind == 'labels' else 'targets'}"
                " of the first points of the kernel."
            )
        checked = as_labels(y, what) if self.kind == "labels" else as_targets(y, what)
        for i in np.flatnonzero(checked != 1)[:1] if self.kind == "none" else ():
            raise LabelError(
                f"{what} must be None, or ones for the first points of the kernel: {self!r} has no labels, "
                f"got {checked[i]:g} at index {i}. Pass None, or the kernel of the points of one class."
            )
        if checked.size > n:
            raise ShapeError(
                f"{what} must have at most {n} entries (the points of the kernel), got {checked.size}. "
                "The labelled points come first."
            )
        return checked

    def scaled(self, factor: float) -> Self:
        """Return the loss times a positive number, which is the loss with the weight `factor` * C.

        A parameter C is replaced by its current value times the factor. A loss without C, or whose dual
        depends on other parameters that scale, overrides this method.

        Parameters
        ----------
        factor : float > 0
            The number.
        """
        C: Weight = vars(self)["C"]
        now = float(per_sample(C, 1)[0]) if isinstance(C, cp.Parameter) else C
        return replace(self, C=positive(factor, "factor") * now)  # type: ignore[type-var]

    def dilated(self, unit: float) -> Self | None:
        """Return the loss V' with V'(t / unit, y / unit) = V(t, y); None where targets have no unit.

        Parameters
        ----------
        unit : float > 0
            In the units of the targets, such as their standard deviation.
        """
        return None

    def responder(self, y: Array) -> Callable[[Array], Array]:
        r"""Return the function :math:`t \mapsto \arg\max_a \ell(a) - a't`, minus the loss's derivative.

        Parameters
        ----------
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        return self.curve(y).responder()

    def response(self, t: Array, y: Array) -> Array:
        """Return a(t), minus the derivative of the loss at t.

        Parameters
        ----------
        t : array of shape (n,)
            The predictions.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        return self.responder(y)(t)

    def hessian_diag(self, t: Array, y: Array) -> Array | None:
        """Return the second derivative of a smooth loss at t; None for a loss that is not smooth.

        Parameters
        ----------
        t : array of shape (n,)
            The predictions.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        return None

    def value(self, t: Array, y: Array) -> float:
        """Return the summed loss of the predictions `t`.

        Parameters
        ----------
        t : array of shape (n,)
            The predictions.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        if not self.quadratic:
            a = self.response(t, y)
            return self.dual_value(a, y) - float(a @ t)
        a, (linear, curvature, l1, _, _) = self.response(t, y), self.curve(y)
        # linear - t is computed first, which is exact near y
        return float(a @ (linear - t) - (curvature * a) @ a / 2 - l1 @ np.abs(a))

    def above(self, f: Array, error: Array, penalty: float, y: Array, intercept: float) -> float:
        """Return an upper bound of penalty + loss(f + b), whatever the errors of f are.

        Parameters
        ----------
        f : array of shape (n,)
            The predictions without the intercept, as computed.
        error : array of shape (n,)
            By how much each may be wrong.
        penalty : float
            Half of the squared norm of f.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        intercept : float
            b.
        """
        ball = Ball(f, error) + intercept
        t, reach, respond = ball.mid, ball.rad, self.responder(y)
        slopes = np.maximum(np.abs(respond(t - reach)), np.abs(respond(t + reach)))
        value, a = self.value(t, y), np.abs(respond(t))
        size = abs(value) + float((a * np.abs(t)).sum())
        if self.quadratic:
            linear, curvature, l1, _, _ = self.curve(y)
            size = float((a * (np.abs(linear - t) + curvature * a / 2 + l1)).sum())
        loss = Ball.computed(value, size, t.size + TERM_ROUNDINGS, slopes @ reach)
        return float((loss + penalty).above)

    def bounded_dual_value(self, alpha: Array, y: Array) -> Ball:
        """Return l(alpha) with a bound of its rounding error, for alpha in the domain of the dual.

        A conjugate that is not quadratic is assumed to be a sum of terms of one sign. Each term has an error
        of a few units in the last place, and its argument alpha_i / C_i is rounded too. For an entropy,
        whose derivative is at most -log u < 37 with the unit roundoff u, that changes a term by at most 37 u
        |alpha_i|.

        Parameters
        ----------
        alpha : array of shape (n,)
            A point of the domain of the dual.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        terms = alpha.size + TERM_ROUNDINGS
        if not self.quadratic:
            value = self.dual_value(alpha, y)
            return Ball.computed(value, abs(value) + np.abs(alpha).sum(), terms)
        linear, curvature, l1, _, _ = self.curve(y)
        rest = (curvature * alpha) @ alpha / 2 + l1 @ np.abs(alpha)
        return Ball(alpha).dots(linear[None])[0] - Ball.computed(rest, rest, terms)

    def dual_value(self, alpha: Array, y: Array) -> float:
        """Return l(alpha), for alpha in the domain of the dual.

        Parameters
        ----------
        alpha : array of shape (n,)
            A point of the domain of the dual.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        linear, curvature, l1, _, _ = self.curve(y)
        square = (curvature * alpha) @ alpha / 2 if curvature.any() else 0.0
        return float(linear @ alpha - square - l1 @ np.abs(alpha))

    def dual_gradient(self, alpha: Array, y: Array) -> Array:
        """Return the gradient of l in the interior of its domain, where it exists.

        Parameters
        ----------
        alpha : array of shape (n,)
            A point of the domain of the dual.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        linear, curvature, l1, _, _ = self.curve(y)
        return np.asarray(linear - curvature * alpha - l1 * np.sign(alpha))

    def concavity(self, y: Array) -> Array:
        r"""Return numbers nu >= 0, shape (n,), by which the dual is strongly concave.

        The function :math:`\ell(a) + \tfrac12 \sum_i \nu_i a_i^2` is still concave. They are zero for a loss
        that does not know them, and for one with a corner.

        Parameters
        ----------
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        return self.curve(y).curvature if self.quadratic else np.zeros(y.size)

    def dual_expression(self, alpha: cp.Expression, y: Array) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return l(alpha) as a concave cvxpy expression, and the constraints of its domain.

        Parameters
        ----------
        alpha : cvxpy expression of shape (n,)
            The dual variable.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        return curve_perspective(self.curve(y), alpha, y)

    def dual_perspective(
        self, alpha: cp.Expression, y: Array, weight: cp.Expression | None = None
    ) -> tuple[cp.Expression, list[cp.Constraint]] | None:
        r"""Return :math:`w\, \ell(\alpha / w)` as a concave expression of alpha and w, and its domain.

        None where it is not known. A parameter C stays a parameter.

        Parameters
        ----------
        alpha : cvxpy expression of shape (n,)
            The dual variable.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        weight : scalar cvxpy expression, optional
            w >= 0; None stands for one.
        """
        read = read_scaling(self, y) if self.quadratic else None
        if read is None:
            return None
        curve, reach, divisor = read
        if divisor is not None and weight is not None:
            return None  # a quotient by a parameter times a multiplier
        return curve_perspective(curve, alpha, y, reach, divisor, weight)

    def project(self, alpha: Array, y: Array, bias: bool) -> Array:
        """Return the projection of a point on the domain of the dual.

        Parameters
        ----------
        alpha : array of shape (n,)
            Any point.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        bias : bool
            Whether there is an intercept, so that the sum of alpha is zero.
        """
        _, _, _, lower, upper = self.curve(y)
        alpha = np.nan_to_num(np.asarray(alpha, dtype=float), nan=0.0, posinf=LARGE, neginf=-LARGE)
        return project_zero_sum(alpha, lower, upper) if bias else np.clip(alpha, lower, upper)

    def intercept(self, f: Array, y: Array) -> float:
        """Return the minimiser over b of the loss of f + b, or the midpoint of all minimisers.

        Parameters
        ----------
        f : array of shape (n,)
            The predictions without the intercept.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        """
        if self.quadratic:
            curve = self.curve(y)
            return piecewise_intercept(curve, f, curve.responder(), curve.steps())
        slope = descent(self.responder(y), f)
        reach = float(np.abs(f).max(initial=0.0) + np.abs(y).max(initial=1.0) + 1.0)
        while (slope(-reach) < 0 or slope(reach) > 0) and np.isfinite(reach):
            reach *= 2
        if not np.isfinite(reach):
            return 0.0
        # More steps than the 1100 halvings from the largest double to the tolerance.
        return float(brentq(slope, -reach, reach, xtol=1e-15, maxiter=2000))

    def primal(self, f: Array, penalty: float, y: Array, bias: bool) -> Primal:
        r"""Return the value of f + b with the best b.

        Parameters
        ----------
        f : array of shape (n,)
            The predictions without the intercept.
        penalty : float
            :math:`\tfrac12 \|f\|^2`.
        y : array of shape (n,)
            Checked labels or targets, as `targets` returns them.
        bias : bool
            Whether there is an intercept; otherwise b = 0.
        """
        b = self.intercept(f, y) if bias else 0.0
        return Primal(penalty + self.value(f + b, y), 1.0, b)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedLoss(Loss):
    r"""A loss :math:`\sum_i C_i v(t_i, y_i)` with weights C, which are checked.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    """

    C: Weight = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", checked_weight(self.C, "C"))


def project_zero_sum(alpha: Array, lower: Array, upper: Array) -> Array:
    """Return the Euclidean projection of alpha on {lower <= a <= upper, sum a = 0}.

    The projection is clip(alpha - nu, lower, upper), where nu is the root of a decreasing piecewise linear
    function. A point of the set, up to the rounding of its sum, is returned as it is, with all its zeros.
    """
    inside = bool(((lower <= alpha) & (alpha <= upper)).all())
    if inside and abs(float(alpha.sum())) <= np.finfo(float).epsneg * float(np.abs(alpha).sum()):
        return alpha.copy()
    ends = np.concatenate([alpha - lower, alpha - upper])
    ends = ends[np.isfinite(ends)]
    knots = ends if ends.size else alpha
    shift = last_above(lambda nu: float(np.minimum(np.maximum(alpha - nu, lower), upper).sum()), knots)
    a = np.clip(alpha - shift, lower, upper)
    cap = float(np.abs(alpha).max(initial=0.0) + 1.0)
    for _ in range(3):  # rounding leaves a small sum, which the entry farthest from its bound takes up
        excess = float(a.sum())
        distance = a - lower if excess > 0 else upper - a
        i = int(np.argmax(np.minimum(distance, cap)))
        a[i] -= np.sign(excess) * min(abs(excess), distance[i])
    return a
