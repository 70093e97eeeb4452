"""Planted optima: data made from a primal-dual pair, so that the optimal value is known in closed form.

Every construction has three steps. First the dual variable alpha is chosen. Then the predictions
f = K alpha + b are chosen, for which alpha is minus a subgradient of the loss. Last come the kernels, whose
products with alpha are prescribed:

    K_m = g_m g_m' / s_m + R_m,    R_m alpha = 0,    s_m = g_m'alpha > 0,    hence    K_m alpha = g_m.

The optimality conditions of the weights are conditions on the numbers s_m = alpha'K_m alpha. The value
is l(alpha) - 1/2 alpha'K alpha, the value of the dual, plus the price of the weights or of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import kernelopt as ko
from kernelopt.extend import Array, Entry, Planted, boolean, positive, whole


def two_classes(rng: np.random.Generator, N: int, n: int) -> tuple[Array, Array]:
    """Return N points in the plane, and labels of the first n by the first coordinate and some noise."""
    X = rng.normal(size=(N, 2))
    return X, np.where(X[:n, 0] + 0.3 * rng.normal(size=n) > np.median(X[:n, 0]), 1.0, -1.0)


def labelled_kernels(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return three kernels on sixteen points, twelve of them labelled, and the labels."""
    X, y = two_classes(rng, 16, 12)
    return np.asarray(ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(2.0), ko.linear()], X)), y


@dataclass(frozen=True)
class Knobs:
    """The options of a planted problem.

    Attributes
    ----------
    n : int >= 6, even, default 10
        Points with a label or target; the points of a problem without any. There are three pairs of points at
        least: with alpha between its bounds, at a bound, and at zero.
    m : int >= 1, default 3
        Kernels, before duplicates. From three on the last one has weight zero at the optimum.
    unlabelled : int >= 0, default 2
        Further points, where the formulation takes them.
    condition : float >= 1, default 100
        Largest over smallest eigenvalue of the part R_m of every kernel.
    degenerate : bool, default False
        Whether kernels have low rank, and strict complementarity fails: points lie where two pieces of the
        loss meet, and kernels without a weight satisfy their condition with equality.
    duplicates : int from 0 to m, default 0
        How many kernels occur twice.
    infeasible : bool, default False
        Whether two equal points have opposite labels, which no hard margin allows.
    """

    n: int = 10
    m: int = 3
    unlabelled: int = 2
    condition: float = 100.0
    degenerate: bool = False
    duplicates: int = 0
    infeasible: bool = False

    def __post_init__(self) -> None:
        for name, low in {"n": 6, "m": 1, "unlabelled": 0, "duplicates": 0}.items():
            whole(vars(self)[name], name, low, f"an integer from {low} on")
        for name in ("degenerate", "infeasible"):
            boolean(vars(self)[name], name)
        n, m, twice, condition = self.n, self.m, self.duplicates, positive(self.condition, "condition")
        for wrong, message in (
            (n % 2, f"n must be even, got {n}. Pass n={n + 1}: points come in pairs."),
            (twice > m, f"duplicates must be at most m = {m}, got {twice}. No kernel occurs three times."),
            (condition < 1, f"condition must be at least 1, got {condition:g}. Pass its inverse."),
        ):
            if wrong:
                raise ko.errors.ParameterError(message)

    @property
    def N(self) -> int:
        """The number of points."""
        return self.n + self.unlabelled

    @property
    def owners(self) -> NDArray[np.intp]:
        """For every kernel of the stack, duplicates included, the one of the m that it is."""
        return np.concatenate([np.arange(self.m), np.arange(self.duplicates)])

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which of the m kernels have a weight."""
        return (np.arange(self.m) < self.m - 1) | (self.m < 3)

    @property
    def level(self) -> Array:
        """The size of a condition over its bound, for the m kernels: one where there is a weight.

        For the others it is below one, or one if strict complementarity is to fail.
        """
        return np.where(self.active | self.degenerate, 1.0, 0.5)

    def shared(self, weights: Array) -> Array:
        """Return the weights of the stack: a kernel and its duplicate have one half each."""
        return np.asarray((weights / np.bincount(self.owners))[self.owners])

    def sharp(self, rng: np.random.Generator) -> float:
        """Return the distance of a point from the next piece of its loss: positive, or zero if degenerate."""
        return 0.0 if self.degenerate else float(rng.uniform(0.1, 0.5))


@dataclass(frozen=True)
class Machine:
    """A learner at its optimum: f = g + b on the labelled points, where g = K alpha at the kernel to come.

    Attributes
    ----------
    y : array of shape (n,), labels or targets
    alpha : array of shape (n,)
    z : array of shape (N,), alpha with zeros at the unlabelled points
    g : array of shape (N,)
    form : z'g = alpha'K alpha > 0
    gain : l(alpha)
    """

    y: Array
    alpha: Array
    z: Array
    g: Array
    form: float
    gain: float

    @property
    def risk(self) -> float:
        """The risk at the optimum, l(alpha) - 1/2 alpha'K alpha."""
        return self.gain - self.form / 2


def machine(rng: np.random.Generator, loss: ko.Loss, knobs: Knobs) -> Machine:
    """Return a learner at its optimum.

    The points come in pairs, with one alpha up to the sign. The second pair has alpha at its bound and the
    third at zero, where the loss allows it; all other pairs are between.
    """
    n, bias = knobs.n, loss.default_bias
    signs = np.where(np.arange(n) % 2, -1.0, 1.0) if bias else np.ones(n)
    y = signs if loss.kind == "labels" else np.zeros(n) if loss.kind == "targets" else np.ones(n)
    _, _, _, lower, upper = loss.curve(y)
    bound = np.where(signs > 0, upper, -lower)
    bounded = bool((bound < np.inf).all())
    unit = np.where(bound < np.inf, bound, 1.0)
    share = np.repeat(rng.uniform(0.15, 0.45, n // 2), 2)
    if loss.quadratic:
        share[2:4] = 1.0 if bounded else share[2:4]
        share[4:6] = 0.0
    alpha = signs * share * unit
    distances = np.repeat([knobs.sharp(rng) for _ in range(n // 2)], 2)
    f = loss.dual_gradient(alpha, y)
    f = f + np.where(alpha <= lower, distances, 0.0) - np.where(alpha >= upper, distances, 0.0)
    if loss.kind == "targets":  # the predictions are chosen, and the targets follow
        wanted = alpha + rng.normal(scale=0.2, size=n)
        y, f = wanted - f, wanted
    g = np.concatenate(
        [f - (rng.uniform(-0.3, 0.3) if bias else 0.0), 0.3 * rng.normal(size=knobs.unlabelled)]
    )
    z = np.pad(alpha, (0, knobs.unlabelled))
    return Machine(y, alpha, z, g, float(z @ g), loss.dual_value(alpha, y))


def orthogonal_part(
    rng: np.random.Generator, knobs: Knobs, vectors: list[Array], trace: float | None = None
) -> Array:
    """Return a positive semidefinite matrix that maps the given vectors to zero."""
    size, k = vectors[0].size, len(vectors)
    Q, _ = np.linalg.qr(np.column_stack([*vectors, rng.normal(size=(size, size - k))]))
    spectrum = np.geomspace(1.0, 1 / knobs.condition, size - k)
    if knobs.degenerate:
        spectrum[2:] = 0.0
    R = (Q[:, k:] * spectrum) @ Q[:, k:].T
    R = R if trace is None else R * (trace / spectrum.sum())
    return np.asarray((R + R.T) / 2)


def singular_kernel(rng: np.random.Generator, knobs: Knobs, z: Array, g: Array) -> tuple[Array, Array]:
    """Return a positive semidefinite K with Kz = g, and a unit vector u with Ku = 0."""
    frame, _ = np.linalg.qr(np.column_stack([z, g]))
    u = rng.normal(size=z.size)
    u -= frame @ (frame.T @ u)
    u /= np.linalg.norm(u)
    K = np.outer(g, g) / float(z @ g) + orthogonal_part(rng, knobs, [z, u])
    return K, u


def kernels(
    rng: np.random.Generator,
    knobs: Knobs,
    m: Machine,
    weights: Array,
    forms: Array,
    traces: Array | None = None,
    total: float | None = None,
) -> Array:
    """Return K_m with z'K_m z = forms_m up to a common factor, and sum_m weights_m K_m z = g.

    Weights and forms belong to the m kernels of `knobs`. A kernel K_m = g_m g_m' / s_m + R_m with R_m >> 0
    has a trace of at least |g_m|^2 / s_m, and every larger one is possible. `traces` are given up to a
    common factor, by which sum_m weights_m tr K_m is `total`; without it the factor is a fifth more, and one
    more, than the least that is possible: then R_m is not small beside the first part, however large that is.
    """
    z, g = m.z, m.g
    forms = forms * (float(z @ g) / float(weights @ forms))
    spread = 0.2 * np.linalg.norm(g) / np.sqrt(g.size) * rng.normal(size=(weights.size, g.size))
    spread -= np.outer(spread @ z, z) / (z @ z)
    spread -= (weights @ spread) / (float(weights.sum()) or np.inf)
    parts = np.outer(forms / float(z @ g), g) + spread  # z'g_m = forms_m, and sum_m weights_m g_m = g
    least, rests = (parts**2).sum(axis=1) / forms, [None] * weights.size
    if traces is not None:
        enough = 1.2 * float((least / traces).max()) + 1.0
        rests = list(traces * (enough if total is None else total / float(weights @ traces)) - least)
    pairs = zip(parts, forms, rests, strict=True)
    return np.array([np.outer(p, p) / s + orthogonal_part(rng, knobs, [z], rest) for p, s, rest in pairs])


def split(
    rng: np.random.Generator, knobs: Knobs, K: Array, W: Array, weights: Array, targets: Array
) -> Array:
    """Return symmetric K_m with sum_m weights_m K_m = K and <W, K_m> = targets_m.

    All but the first are positive semidefinite and of size one; weights'targets must be <W, K>. W needs
    eigenvalues of both signs.
    """
    curvature, basis = np.linalg.eigh(W)
    stack = [K]
    for target in targets[1:]:
        root = rng.normal(size=K.shape)
        A = root @ root.T / len(K)
        missing = target - float((W * A).sum())
        k = -1 if missing > 0 else 0  # a direction in which W has the sign of what is missing
        A = A + missing / curvature[k] * np.outer(basis[:, k], basis[:, k])
        stack.append((A + A.T) / 2)
    others = sum((w * A for w, A in zip(weights[1:], stack[1:], strict=True)), np.zeros_like(K))
    stack[0] = (K - others) / weights[0]
    return np.array(stack)


def planted(formulation: ko.Formulation, value: float, alpha: Array | None, /, **point: Any) -> Planted:
    """Return the record of a planted optimum; the keywords are values by the name of the variable."""
    variables = {v.name(): v for v in ko.Structure(formulation.problem).user_variables}
    values = {variables[name]: np.asarray(values, dtype=float) for name, values in point.items()}
    return Planted(formulation, float(value), values, () if alpha is None else (alpha,))


def weighted(
    rng: np.random.Generator,
    knobs: Knobs,
    m: Machine,
    weights: Array,
    forms: Array,
    build: Callable[[Array, Array], ko.Formulation],
    *,
    price: float = 0.0,
    factor: float = 1.0,
    traces: Array | None = None,
    **more: Any,
) -> Planted:
    """Return the problem that is built from kernels with these optimal weights, and from the labels.

    Its value is factor * (the risk + price). Weights and forms z'K_m z, the latter up to a common factor,
    belong to the stack with the duplicates. `more` is the total trace of `kernels`, and values of variables.
    """
    own = np.bincount(knobs.owners, weights=weights).astype(float)
    stack = kernels(rng, knobs, m, own, forms[: knobs.m], traces, more.pop("total", None))[knobs.owners]
    if knobs.infeasible:
        return planted(build(contradicting(stack), m.y), np.inf, None)
    found = build(stack, m.y)
    point = {found.weights.name(): weights} if isinstance(found.weights, cp.Variable) else {}
    value = factor * (m.risk + price)
    return planted(found, value, m.alpha if found.risks else None, **point, **more)


def contradicting(stack: Array) -> Array:
    """Return the kernels with the second point, of the other label, in the place of the first."""
    order = np.arange(stack.shape[1])
    order[0] = 1
    return stack[:, order][:, :, order]


def entry(
    build: Callable[..., ko.Formulation],
    takes: Any,
    plant: Callable[..., Planted],
    example: Callable[[np.random.Generator], ko.Formulation],
    can_be_infeasible: bool = False,
) -> Entry:
    """Return the entry of a builder in the catalogue.

    `plant` takes a Generator, `Knobs`, and options of its own by name.
    """
    name = build.__module__.removeprefix("formulations.")

    def with_knobs(rng: np.random.Generator, **chosen: Any) -> Planted:
        knobs = Knobs(**{f.name: chosen.pop(f.name) for f in fields(Knobs) if f.name in chosen})
        if knobs.infeasible and not can_be_infeasible:
            raise ko.errors.ParameterError(
                f"{name} has a feasible point for all data, got infeasible=True. Leave it out, or plant a "
                "hard margin."
            )
        return plant(rng, knobs, **chosen)

    return Entry(name, build, takes, example, with_knobs)
