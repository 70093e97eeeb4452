"""The value of a learning problem at a kernel, as a convex expression of that kernel."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.transpose import transpose
from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.caching import read_only
from kernelopt.language.adapter import ValuedWrap
from kernelopt.language.combination import Combination, as_kernel
from kernelopt.language.learner import Learner, on_labelled
from kernelopt.language.penalty import penalty
from kernelopt.learner import Machine, half_square
from kernelopt.losses import Loss
from kernelopt.validation import Array, as_vector, boolean, exponent, shown


class Risk(ValuedWrap):
    r"""The function :math:`\min_{f, b}\ \mathrm{loss}(f + b, y) + \tfrac12 \|f\|_K^2` of K; made by `risk`.

    Parameters
    ----------
    expression : convex cvxpy expression
        The value, by cones.
    learner : Learner
        The kernels, the labels and the loss.

    Attributes
    ----------
    alpha : array of shape (n,) or None
        The signed dual variable of the learned machine, set by `kernelopt.solve`.
    intercept : float or None
        The intercept of that machine.
    """

    def __init__(self, expression: cp.Expression, learner: Learner) -> None:
        self.learner = learner
        self.alpha: Array | None = None
        self.intercept: float | None = None
        self._known: tuple[list[Any], Machine] | None = None
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.learner]

    def name(self) -> str:
        return f"risk({', '.join(K.name() for K in self.learner.kernels)})"

    def sign_from_args(self) -> tuple[bool, bool]:
        return True, False

    def is_convex(self) -> bool:
        """Whether the rules find it convex. The squares of thousands of kernels are not read one by one."""
        if self._is_compiled:
            return bool(super().is_convex())
        return bool(self.learner.summed_loss.is_convex()) and all(p.convex for p in self.learner.penalties)

    def is_concave(self) -> bool:
        return self._is_compiled and bool(super().is_concave())

    @property
    def _is_compiled(self) -> bool:
        """Whether the argument is not the sum of half the square and the loss, but what cvxpy makes of it."""
        return all(arg is not self.learner.half_square for arg in self.args[0].args[:1])

    def known_value(self) -> float | None:
        return None if self._key() is None else self.oracle().value

    def oracle(self) -> Machine:
        """Return the machine at the current value of the kernel: value, alpha, intercept, ...

        Its value is infinite if the kernel has an eigenvalue below -1e-8 of its largest one, or if a hard
        margin cannot be met.

        Raises
        ------
        ParameterError
            If a variable of the kernel has no value.
        """
        key, known = self._key(), self._known
        if key is not None and known is not None and all(map(np.array_equal, key, known[0])):
            return known[1]
        if key is None:
            raise ParameterError(
                "the kernel must have a value, got None. Solve the problem or set its variables' .value."
            )
        machine = with_read_only_arrays(self.learner.train(on_labelled(self.learner.kernels, self.learner.n)))
        self._known = key, machine
        return machine

    def _key(self) -> list[Any] | None:
        """Return the values of all variables and parameters of the risk; None if one has no value."""
        leaves = [v for K in self.learner.kernels for v in K.variables()] + self.parameters()
        if any(leaf.value is None for leaf in leaves):
            return None
        return [np.array(leaf.value.toarray() if sp.issparse(leaf.value) else leaf.value) for leaf in leaves]

    def remember(self, machine: Machine) -> None:
        """Store a machine as the one at the current values.

        Parameters
        ----------
        machine : Machine
            Value, alpha and intercept.
        """
        key = self._key()
        self._known = None if key is None else (key, with_read_only_arrays(machine))

    def forget(self) -> None:
        """Delete the stored machine, so that the next request trains a new one."""
        self._known = None

    def at(self, alpha: Array, scales: Array | None = None) -> Machine:
        r"""Return the machine of a given alpha at the current kernel, with the best intercept.

        Parameters
        ----------
        alpha : array of shape (n,)
            The dual variables.
        scales : array of shape (m,), optional
            Of several kernels under a norm other than 2: :math:`f = \sum_i \mathrm{scales}_i K_i \alpha + b`.
            Where they are missing, a machine is trained.
        """
        learner = self.learner
        if self._key() is None:
            raise ParameterError("the kernel must have a value, got None. Solve the problem first.")
        alpha = as_vector(alpha, "alpha", size=learner.n)
        scales = None if scales is None else as_vector(scales, "scales", size=len(learner.kernels))
        if not learner.is_determined(scales):
            return self.oracle()
        return learner.at(on_labelled(learner.kernels, learner.n), alpha, scales)

    def gradient(self) -> Array | list[Array]:
        r"""Return the derivative at the current kernel.

        For a combination it is :math:`(-\tfrac12 \alpha'K_i\alpha)_i`, shape (m,), and for any other kernel
        the matrix :math:`-\tfrac12 \alpha\alpha'` of shape (n, n). For several kernels it is a list. If
        `norm` is not 2, each member is multiplied by the scale s of its part :math:`f_i = s K_i \alpha`.
        """
        machine = self.oracle()
        scales = machine.scales if self.learner.norm != 2 else np.ones(len(self.learner.kernels))
        slopes: list[Array] = []
        for K, scale in zip(self.learner.kernels, scales, strict=True):
            if isinstance(K, Combination):
                slope = K.grams.forms(machine.alpha)
            else:
                slope = np.outer(machine.alpha, machine.alpha)
            slopes.append(-scale * slope / 2)
        return slopes if len(slopes) > 1 else slopes[0]


def with_read_only_arrays(machine: Machine) -> Machine:
    """Return a copy of a machine with read-only arrays."""
    parts = None if machine.parts is None else read_only(machine.parts.copy())
    return machine._replace(alpha=read_only(machine.alpha.copy()), parts=parts)


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
        Labels in {-1, +1}, real targets for the regression losses, of at most 1e150 in size, or None for
        `one_class`; ones stand there for the first n points of the kernel.
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
        asymmetric = [v for v in k.variables() if v.ndim == 2 and v.shape == k.shape and not v.is_symmetric()]
        if asymmetric and not k.is_symmetric() and transpose not in k.atoms():
            raise ParameterError(
                f"a kernel must be symmetric, got the variable {asymmetric[0].name()} without symmetry in "
                f"risk. Create it with cp.Variable({asymmetric[0].shape}, PSD=True) or symmetric=True."
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
    square = half_square([part.square for part in penalties], [part.length for part in penalties], norm)
    summed = loss.expression(fit, targets)
    learner = Learner(kernels, targets, loss, norm, penalties, b, fit, square, summed)
    return Risk(square + summed, learner)
