"""The value of a learning problem at a kernel, as a convex expression of that kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.caching import read_only
from kernelopt.language.adapter import ValuedWrap
from kernelopt.language.combination import Combination, as_kernel
from kernelopt.language.penalty import Form, Penalty, penalty
from kernelopt.learner import (
    BlockMachine,
    Machine,
    blocks_at,
    learn,
    learn_blocks,
    machine_at,
)
from kernelopt.losses import Loss
from kernelopt.numerics.factors import nearest_psd
from kernelopt.threads import Watch
from kernelopt.validation import Array, as_vector, boolean, exponent, shown


@dataclass(frozen=True, eq=False)
class Learner:
    """The parts of a risk: what `expand`, the certificate and the methods read."""

    kernels: tuple[cp.Expression, ...]
    y: Array
    loss: Loss
    norm: float
    penalties: tuple[Penalty, ...]
    bias: cp.Variable | None
    fit: cp.Expression  # the predictions f + b on the labelled points, shape (n,)
    half_square: cp.Expression  # 1/2 |(|f_m|)_m|_norm^2
    summed_loss: cp.Expression  # of `fit`

    @property
    def n(self) -> int:
        """The number of labelled points."""
        return self.y.size

    @property
    def forms(self) -> tuple[Form, ...]:
        """The cone in which each kernel enters."""
        return tuple(part.form for part in self.penalties)

    def kernel_values(self) -> list[Array] | None:
        """Return the current values of the kernels on the labelled points, shape (n, n) each."""
        return on_labelled(self.kernels, self.n)

    def train(self, Ks: list[Array], watch: Watch | None = None) -> Machine | BlockMachine:
        """Return the machine at the kernels Ks on the labelled points, with an infinite value at none.

        There is none where a kernel is indefinite beyond 1e-8 of its largest eigenvalue, or where a hard
        margin cannot be met. A `watch` is called while it works; what it raises goes on.
        """
        clipped = [nearest_psd((K + K.T) / 2) for K in Ks]
        kernels = [K for K in clipped if K is not None]
        if len(kernels) < len(Ks):
            return Machine(np.inf, np.zeros(self.n), np.nan)
        if len(kernels) == 1:
            return learn(kernels[0], self.y, self.loss, self.bias is not None, watch=watch)
        return learn_blocks(kernels, self.y, self.loss, self.bias is not None, self.norm, watch)

    def at(
        self, Ks: Sequence[Any], alpha: Array, scales: Array | None = None, watch: Watch | None = None
    ) -> Machine | BlockMachine:
        """Return the machine of a given alpha at the kernels Ks, arrays or what else gives K @ alpha.

        It is f = sum_i scales_i K_i alpha + b, with all scales one by default and the best b. Several
        kernels under a norm other than 2 need scales: without them alpha determines no machine, and one is
        trained.
        """
        bias = self.bias is not None
        if len(Ks) == 1:
            return machine_at(Ks[0], alpha, self.y, self.loss, bias)
        if scales is None and self.norm != 2:
            return self.train(list(Ks), watch)
        scales = np.ones(len(Ks)) if scales is None else scales
        return blocks_at(Ks, alpha, scales, self.y, self.loss, bias, self.norm)


def on_labelled(kernels: Sequence[cp.Expression], n: int) -> list[Array] | None:
    """Return the current values of kernels on the first n points; None where one has no value."""
    values = [K.value for K in kernels]
    if any(v is None for v in values):
        return None
    return [np.asarray(v.toarray() if hasattr(v, "toarray") else v)[:n, :n] for v in values]


def half_square(penalties: tuple[Penalty, ...], norm: float) -> cp.Expression:
    """Return 1/2 |(|f_m|)_m|_norm^2 as a convex expression."""
    squares = [part.square for part in penalties]
    if len(squares) == 1 or norm == 2:
        return cp.sum(squares) / 2
    if norm == np.inf:
        return cp.max(cp.hstack(squares)) / 2
    if norm > 2:
        return cp.pnorm(cp.hstack(squares), norm / 2, approx=False) / 2
    lengths = cp.hstack([part.length for part in penalties])
    size = cp.sum(lengths) if norm == 1 else cp.pnorm(lengths, norm, approx=False)
    return cp.square(size) / 2


class Risk(ValuedWrap):
    """min over f, b of loss(f + b, y) + 1/2 |f|_K^2; made by `risk`.

    Attributes
    ----------
    alpha : array of shape (n,) or None
        The signed dual variable of the learned machine, filled by `kernelopt.solve`.
    intercept : float or None
        Its intercept, filled likewise.
    """

    def __init__(self, expression: cp.Expression, learner: Learner) -> None:
        self.learner = learner
        self.alpha: Array | None = None
        self.intercept: float | None = None
        self._known: tuple[list[Any], Machine | BlockMachine] | None = None
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.learner]

    def name(self) -> str:
        return f"risk({', '.join(K.name() for K in self.learner.kernels)})"

    def sign_from_args(self) -> tuple[bool, bool]:
        return True, False

    def known_value(self) -> float | None:
        return None if self._key() is None else self.oracle().value

    def oracle(self) -> Machine | BlockMachine:
        """Return the machine at the current value of the kernel: value, alpha, intercept, ...

        The value is attained by that machine, infinite where the kernel is indefinite beyond 1e-8 of
        its largest eigenvalue or a hard margin cannot be met.

        Raises
        ------
        ParameterError
            If a variable of the kernel has no value.
        """
        key, known = self._key(), self._known
        if key is not None and known is not None and all(map(np.array_equal, key, known[0])):
            return known[1]
        Ks = None if key is None else self.learner.kernel_values()
        if key is None or Ks is None:
            raise ParameterError(
                "the kernel must have a value, got None. Solve the problem or set its variables' .value."
            )
        machine = sealed(self.learner.train(Ks))
        self._known = key, machine
        return machine

    def _key(self) -> list[Any] | None:
        """Return what the machine depends on, the values of variables and parameters; None without them."""
        leaves = [v for K in self.learner.kernels for v in K.variables()] + self.parameters()
        if any(leaf.value is None for leaf in leaves):
            return None
        return [np.array(leaf.value.toarray() if sp.issparse(leaf.value) else leaf.value) for leaf in leaves]

    def remember(self, machine: Machine | BlockMachine) -> None:
        """Take `machine` for the one at the current values."""
        key = self._key()
        self._known = None if key is None else (key, sealed(machine))

    def forget(self) -> None:
        """Train anew the next time that a machine is asked for."""
        self._known = None

    def at(self, alpha: Array, scales: Array | None = None) -> Machine | BlockMachine:
        """Return the machine of a given alpha at the current kernel, with its best intercept.

        Several kernels under another norm than 2 also need scales (m,): f = sum_i scales_i K_i alpha + b.
        Without them a machine is trained.
        """
        Ks = self.learner.kernel_values()
        if Ks is None:
            raise ParameterError("the kernel must have a value, got None. Solve the problem first.")
        alpha = as_vector(alpha, "alpha", size=self.learner.n)
        scales = None if scales is None else as_vector(scales, "scales", size=len(Ks))
        if len(Ks) > 1 and scales is None and self.learner.norm != 2:
            return self.oracle()
        return self.learner.at(Ks, alpha, scales)

    def gradient(self) -> Array | list[Array]:
        """Return the derivative at the current kernel, -1/2 (alpha'K_i alpha)_i of shape (m,).

        For a kernel that is not a combination it is the matrix -1/2 alpha alpha', shape (n, n); for
        several kernels a list. With `norm` != 2 each is multiplied by the square of its scale.
        """
        machine = self.oracle()
        several = isinstance(machine, BlockMachine)
        scales = np.ones(1)
        if isinstance(machine, BlockMachine):
            length = max(float(np.linalg.norm(machine.alpha)), 1e-300)
            scales = np.linalg.norm(machine.coefficients, axis=1) / length
        slopes: list[Array] = []
        for K, scale in zip(self.learner.kernels, scales, strict=True):
            if isinstance(K, Combination):
                slope = K.grams.forms(machine.alpha)
            else:
                slope = np.outer(machine.alpha, machine.alpha)
            slopes.append(-(scale if several and self.learner.norm != 2 else 1.0) * slope / 2)
        return slopes if several else slopes[0]


def sealed(machine: Machine | BlockMachine) -> Machine | BlockMachine:
    """Return a copy of a machine whose arrays refuse to be written to: a risk keeps it."""
    alpha = read_only(machine.alpha.copy())
    if isinstance(machine, BlockMachine):
        return machine._replace(alpha=alpha, coefficients=read_only(machine.coefficients.copy()))
    return machine._replace(alpha=alpha)


def tree(expression: Any) -> Iterator[Any]:
    """Walk an expression and all its arguments."""
    yield expression
    for arg in expression.args:
        yield from tree(arg)


def risk(K: Any, y: ArrayLike | None, loss: Loss, bias: bool | None = None, norm: float = 2) -> Risk:
    r"""The regularised empirical risk at a kernel, a convex and decreasing expression of the kernel.

    .. math:: \min_{f, b}\ \sum_i V(f_i + b, y_i) + \tfrac12 \|f\|_K^2

    and for a list of kernels
    :math:`\tfrac12 \|(\|f_1\|_{K_1}, \dots, \|f_m\|_{K_m})\|_r^2` with :math:`f = \sum_m f_m`.

    Parameters
    ----------
    K : cvxpy expression or array of shape (N, N), or a list of them
        The kernel on N >= n points, the labelled ones first. Positive semidefinite where the problem
        is feasible; a combination with non-negative weights is so by itself.
    y : array of shape (n,)
        Labels in {-1, +1}, real targets for the regression losses, or None for `one_class`.
    loss : Loss
        Such as `hinge(C=1.0)`.
    bias : bool, optional
        Whether there is an unpenalised intercept b; by default the loss decides.
    norm : float, default 2
        The exponent r of the block norm over a list of kernels: r >= 1 for constant kernels, r >= 2
        otherwise (below 2 the risk is not convex in the kernels). `numpy.inf` is the convex risk of
        several similarities.

    Returns
    -------
    Risk
        A scalar convex expression. `.value` is the exact risk at the current kernel at any time,
        `.oracle()` the machine there, `.alpha` the machine learned by `kernelopt.solve`.

    Notes
    -----
    Cone: second-order for constant kernels and for combinations whose weights carry `nonneg=True`
    (also `V @ diag(mu) @ V.T`, also plus `tau * I`); semidefinite of order n + 1 for everything else.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorem 16.
    .. [2] Kloft et al., JMLR 12 (2011), equations (7), (28), (32)-(33).

    Examples
    --------
    Two points with K = I: alpha = y and the risk is 1.

    >>> import numpy as np, kernelopt as ko
    >>> round(float(ko.risk(np.eye(2), [1, -1], ko.hinge(C=2.0)).value), 6)
    1.0
    """
    if not isinstance(loss, Loss):
        raise ParameterError(
            f"loss must be a loss such as hinge(C=1.0), got {shown(loss)}. Create one first."
        )
    several = isinstance(K, list | tuple)
    kernels = tuple(as_kernel(k, f"K[{i}]") for i, k in enumerate(K)) if several else (as_kernel(K),)
    if not kernels or len({k.shape for k in kernels}) > 1:
        raise ShapeError(
            f"K, the kernels of a risk, must have one shape, got {[k.shape for k in kernels]}. "
            "Evaluate all of them on the same points."
        )
    for k in kernels:
        loose = [v for v in k.variables() if v.ndim == 2 and v.shape == k.shape and not v.is_symmetric()]
        if loose and not k.is_symmetric() and "transpose" not in {type(a).__name__ for a in tree(k)}:
            raise ParameterError(
                f"a kernel must be symmetric, got the variable {loose[0].name()} without symmetry in risk. "
                f"Create it with cp.Variable({loose[0].shape}, PSD=True) or symmetric=True."
            )
    fixed = all(k.is_constant() and not k.parameters() for k in kernels)
    norm = exponent(
        norm,
        "norm",
        1.0 if fixed else 2.0,
        f" for {'constant' if fixed else 'variable'} kernels",
        "Below 2 the risk is not convex in the kernels: learn weights with combine() and lp_ball() instead.",
    )
    targets = loss.targets(y, kernels[0].shape[0])
    use_bias = loss.default_bias if bias is None else boolean(bias, "bias")
    labels = [str(i) for i in range(len(kernels))] if several else [""]
    penalties = tuple(penalty(k, targets.size, label) for k, label in zip(kernels, labels, strict=True))
    b = cp.Variable(name="b") if use_bias else None
    f = cp.sum([part.f for part in penalties])
    fit = f if b is None else f + b
    square, summed = half_square(penalties, norm), loss.expression(fit, targets)
    learner = Learner(kernels, targets, loss, norm, penalties, b, fit, square, summed)
    return Risk(square + summed, learner)
