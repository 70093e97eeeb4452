"""Random problems of all atoms that cvxpy documents as convex or concave, with active constraints.

A problem has a point in the interior of all domains, from which the levels of its constraints are set: a
little
above the value there, so that they are active, and far above, so that their multipliers are exactly zero.
"""

# ruff: noqa: E501 - a table
from __future__ import annotations

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import symmetric_wrap

VECTOR, MATRIX = 3, 2  # sizes: 3 entries, 2 x 2 matrices


def spd(rng, n):
    """A positive definite matrix."""
    B = rng.normal(size=(n, n))
    return B @ B.T + 0.3 * np.eye(n)


def affine_vector(rng, x):
    """An affine function of the entries of a variable, with 3 entries."""
    v = cp.vec(x, order="F") if x.ndim == 2 else x
    n = v.size
    return (
        lambda: rng.normal(size=(VECTOR, n)) @ v - rng.normal(size=VECTOR),
        lambda: v[:VECTOR] - rng.normal(size=VECTOR),
        lambda: rng.normal(size=VECTOR) - 2 * v[:VECTOR],
        lambda: cp.multiply(rng.normal(size=VECTOR), v[:VECTOR]) + 0.5,
        lambda: cp.hstack([v[0] - v[1], cp.sum(v), 1 - v[2]]),
        lambda: v[:VECTOR],
    )[rng.integers(6)]()


def affine_square(rng, x):
    """An affine function of a variable with 2 x 2 entries."""
    if x.ndim == 2:
        C = rng.normal(size=(MATRIX, MATRIX))
        return (lambda: x - C, lambda: C @ x, lambda: x.T + 1, lambda: x)[rng.integers(4)]()
    return cp.reshape(rng.normal(size=(4, x.size)) @ x - rng.normal(size=4), (2, 2), order="F")


def positive_vector(rng, x):
    """An affine function of a variable that is positive near the point of the problem."""
    e = affine_vector(rng, x)
    return e + (0.5 - float(e.value.min()) + float(rng.uniform(0, 1)))


def positive_definite(rng, x):
    """A symmetric affine function of a variable that is positive definite near the point."""
    S = symmetric_square(rng, x) / 2
    return S + (0.5 - float(np.linalg.eigvalsh(S.value)[0])) * np.eye(MATRIX)


def symmetric_square(rng, x):
    """A symmetric affine function of a variable."""
    S = affine_square(rng, x)
    return S if S.is_symmetric() else symmetric_wrap(S + S.T)


CONVEX = {
    "norm1": lambda r, x: cp.norm1(affine_vector(r, x)),
    "norm1 of columns": lambda r, x: cp.sum(cp.norm1(affine_square(r, x), axis=0)),
    "norm2": lambda r, x: cp.norm2(affine_vector(r, x)),
    "norms of rows": lambda r, x: cp.sum(cp.norm2(affine_square(r, x), axis=1)),
    "norm_inf": lambda r, x: cp.norm_inf(affine_vector(r, x)),
    "Frobenius": lambda r, x: cp.norm(affine_square(r, x), "fro"),
    "pnorm": lambda r, x: cp.pnorm(affine_vector(r, x), r.choice([1.5, 3, 4]), approx=False),
    "mixed norm": lambda r, x: cp.mixed_norm(affine_square(r, x), 2, 1),
    "nuclear norm": lambda r, x: cp.normNuc(affine_square(r, x)),
    "spectral norm": lambda r, x: cp.sigma_max(affine_square(r, x)),
    "sum_squares": lambda r, x: cp.sum_squares(affine_vector(r, x)),
    "squares of a matrix": lambda r, x: cp.sum_squares(affine_square(r, x)),
    "square": lambda r, x: cp.sum(cp.square(affine_vector(r, x))),
    "quad_form": lambda r, x: cp.quad_form(affine_vector(r, x), spd(r, VECTOR)),
    "quad_over_lin": lambda r, x: cp.quad_over_lin(affine_vector(r, x), positive_vector(r, x)[0]),
    "matrix_frac": lambda r, x: cp.matrix_frac(affine_vector(r, x)[:MATRIX], positive_definite(r, x)),
    "huber": lambda r, x: cp.sum(cp.huber(affine_vector(r, x), 0.7)),
    "power 3": lambda r, x: cp.sum(cp.power(positive_vector(r, x), 3, approx=False)),
    "power 1.5": lambda r, x: cp.sum(cp.power(positive_vector(r, x), 1.5, approx=False)),
    "power 4": lambda r, x: cp.sum(cp.power(affine_vector(r, x), 4)) / 9,
    "inv_pos": lambda r, x: cp.sum(cp.inv_pos(positive_vector(r, x))),
    "inv_prod": lambda r, x: cp.inv_prod(positive_vector(r, x)[:2]),
    "exp": lambda r, x: cp.sum(cp.exp(affine_vector(r, x) / 3)),
    "logistic": lambda r, x: cp.sum(cp.logistic(affine_vector(r, x))),
    "log_sum_exp": lambda r, x: cp.log_sum_exp(affine_vector(r, x)),
    "log_sum_exp of columns": lambda r, x: cp.sum(cp.log_sum_exp(affine_square(r, x), axis=0)),
    "kl_div": lambda r, x: cp.sum(cp.kl_div(positive_vector(r, x), positive_vector(r, x))),
    "rel_entr": lambda r, x: cp.sum(cp.rel_entr(positive_vector(r, x), positive_vector(r, x))),
    "xexp": lambda r, x: cp.sum(cp.xexp(cp.pos(affine_vector(r, x)))) / 9,
    "max": lambda r, x: cp.max(affine_vector(r, x)),
    "max of columns": lambda r, x: cp.sum(cp.max(affine_square(r, x), axis=0)),
    "maximum": lambda r, x: cp.sum(cp.maximum(affine_vector(r, x), affine_vector(r, x), 0)),
    "maximum of norms": lambda r, x: cp.maximum(cp.norm1(affine_vector(r, x)), cp.sum_squares(affine_vector(r, x))),
    "pos": lambda r, x: cp.sum(cp.pos(affine_vector(r, x))),
    "neg": lambda r, x: cp.sum(cp.neg(affine_square(r, x))),
    "abs": lambda r, x: r.uniform(0.2, 1, size=VECTOR) @ cp.abs(affine_vector(r, x)),
    "abs of a matrix": lambda r, x: cp.sum(cp.multiply(r.uniform(size=(2, 2)), cp.abs(affine_square(r, x)))),
    "sum_largest": lambda r, x: cp.sum_largest(affine_vector(r, x), 2),
    "dotsort": lambda r, x: cp.dotsort(affine_vector(r, x), r.normal(size=VECTOR)),
    "scalene": lambda r, x: cp.sum(cp.scalene(affine_vector(r, x), 2, 0.5)),
    "cummax": lambda r, x: cp.sum(cp.cummax(affine_vector(r, x))),
    "cvar": lambda r, x: cp.cvar(affine_vector(r, x), 0.5),
    "std": lambda r, x: cp.std(affine_vector(r, x)),
    "tv": lambda r, x: cp.tv(affine_vector(r, x)),
    "lambda_max": lambda r, x: cp.lambda_max(symmetric_square(r, x)),
    "lambda_sum_largest": lambda r, x: cp.lambda_sum_largest(symmetric_square(r, x), 1),
    "tr_inv": lambda r, x: cp.tr_inv(positive_definite(r, x)),
    "square of a norm": lambda r, x: cp.square(cp.norm2(affine_vector(r, x))),
    "exp of a norm": lambda r, x: cp.exp(cp.norm2(affine_vector(r, x)) / 3),
    "huber of abs": lambda r, x: cp.sum(cp.huber(cp.abs(affine_vector(r, x)))),
    "norm of squares": lambda r, x: cp.norm2(cp.square(affine_vector(r, x))),
    "quadratic over concave": lambda r, x: cp.quad_over_lin(affine_vector(r, x), cp.geo_mean(positive_vector(r, x))),
    "loggamma": lambda r, x: cp.sum(cp.loggamma(positive_vector(r, x))) / 3,
    "negative von Neumann entropy": lambda r, x: -cp.von_neumann_entr(symmetric_wrap(positive_definite(r, x))),
}  # fmt: skip
CONCAVE = {
    "sqrt": lambda r, x: cp.sum(cp.sqrt(positive_vector(r, x))),
    "power 0.3": lambda r, x: cp.sum(cp.power(positive_vector(r, x), 0.3, approx=False)),
    "log": lambda r, x: cp.sum(cp.log(positive_vector(r, x))),
    "log1p": lambda r, x: cp.sum(cp.log1p(positive_vector(r, x))),
    "entr": lambda r, x: cp.sum(cp.entr(positive_vector(r, x))),
    "geo_mean": lambda r, x: cp.geo_mean(positive_vector(r, x), [1, 2, 1]),
    "harmonic_mean": lambda r, x: cp.harmonic_mean(positive_vector(r, x)),
    "pnorm 0.5": lambda r, x: cp.pnorm(positive_vector(r, x), 0.5, approx=False),
    "min": lambda r, x: cp.min(affine_vector(r, x)),
    "minimum": lambda r, x: cp.sum(cp.minimum(affine_vector(r, x), affine_vector(r, x))),
    "sum_smallest": lambda r, x: cp.sum_smallest(affine_vector(r, x), 2),
    "log_det": lambda r, x: cp.log_det(positive_definite(r, x)),
    "lambda_min": lambda r, x: cp.lambda_min(symmetric_square(r, x)),
    "log of a minimum": lambda r, x: cp.log(cp.min(positive_vector(r, x))),
    "log_normcdf": lambda r, x: cp.sum(cp.log_normcdf(affine_vector(r, x))),
}  # fmt: skip
ATOMS = CONVEX | {name: (lambda r, x, g=g: -g(r, x)) for name, g in CONCAVE.items()}
KINDS = {
    "free": (VECTOR, {}),
    "nonneg": (VECTOR, {"nonneg": True}),
    "nonpos": (VECTOR, {"nonpos": True}),
    "bounded": (VECTOR, {"bounds": [np.array([-1, -np.inf, 0]), np.array([1, 2, np.inf])]}),
    "matrix": ((MATRIX, MATRIX), {}),
    "symmetric": ((MATRIX, MATRIX), {"symmetric": True}),
    "PSD": ((MATRIX, MATRIX), {"PSD": True}),
    "diagonal": ((MATRIX, MATRIX), {"diag": True}),
}


def variable_of(rng, kind):
    """A variable of a kind with a value inside its set."""
    shape, attributes = KINDS[kind]
    x = cp.Variable(shape, name="X" if isinstance(shape, tuple) else "x", **attributes)
    value = rng.normal(size=shape)
    if kind in ("symmetric", "PSD"):
        value = value @ value.T + 0.1 * np.eye(MATRIX) if kind == "PSD" else value + value.T
    elif kind == "diagonal":
        value = np.diag(np.diag(value))
    elif kind in ("nonneg", "nonpos"):
        value = np.abs(value) + 0.1 if kind == "nonneg" else -np.abs(value) - 0.1
    elif kind == "bounded":
        value = np.clip(value, [-0.9, -9, 0.1], [0.9, 1.9, 9])
    x.save_value(value)
    return x


def weighed(rng, atom):
    """An atom times a number, or a Parameter."""
    price = float(rng.uniform(0.2, 1.5))
    if rng.random() < 0.3:
        return cp.Parameter(nonneg=True, name="price", value=price) * atom
    return price * atom


def random_problem(seed):
    """A problem of one or two atoms in its objective and two constraints, with the names of its atoms."""
    rng = np.random.default_rng(seed)
    x = variable_of(rng, str(rng.choice(list(KINDS))))
    names = [str(name) for name in rng.choice(list(ATOMS), size=4)]
    # cvxpy cannot evaluate norms and eigenvalues of a diagonal variable, whose value is sparse: the values of
    # its product with the identity are dense.
    entries = x @ np.eye(MATRIX) if x.attributes["diag"] else x
    first, *rest = [ATOMS[name](rng, entries) for name in names]
    objective = weighed(rng, first) + 0.05 * cp.sum_squares(x)
    if rng.random() < 0.6:
        objective = objective + weighed(rng, rest[0])
    constraints = []
    for atom in rest[1:]:
        level = float(np.sum(atom.value))
        slack = float(rng.choice([0.02, 0.3, 50.0]))  # active at the last, and a multiplier of zero
        if rng.random() < 0.7:
            constraints.append(atom <= level + slack)
            if rng.random() < 0.3:
                constraints.append(atom <= level + slack + 50)
    if rng.random() < 0.4:
        row = rng.normal(size=x.shape)
        constraints.append(cp.sum(cp.multiply(row, x)) == float(np.sum(row * dense(x.value))))
    x.save_value(None)
    if rng.integers(2):
        return cp.Problem(cp.Maximize(-objective), constraints), names
    return cp.Problem(cp.Minimize(objective), constraints), names


def dense(value):
    """A value as a dense array."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)
