"""`method="newton"` against the conic optimum, on degenerate data too."""

import numpy as np

import kernelopt as ko
from formulations import lp_norm
from tests.every import every

PS = [1, 1.1, 4 / 3, 2, 4, np.inf]


def stack(rng, n, m=4):
    """Return Gaussian, linear and low-rank kernels, two that are equal, and one that is zero."""
    X = rng.standard_normal((n, 3))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    Ks = [np.exp(-g * D) for g in np.geomspace(0.05, 3, m - 2)] + [X @ X.T, np.outer(X[:, 0], X[:, 0])]
    return np.array([*Ks, Ks[0], np.zeros((n, n))]), X


def labels(rng, X, share=0.5):
    score = X[:, 0] + 0.7 * rng.standard_normal(len(X))
    y = np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    return y


def agrees(Ks, y, p, loss, bias=None, tol=1e-6):
    """Solve by the method and by a conic programme: the bounds of each enclose the other's optimum."""
    built = lp_norm.primal(Ks, y, p=p, loss=loss, bias=bias)
    found = built.solve("newton", tol=tol)
    assert found.status == "optimal" and found.method == "newton"
    exact = built.solve("exact", tol=1e-6)
    slack = 1e-9 * abs(exact.upper)
    assert found.lower <= exact.upper + slack and exact.lower <= found.upper + slack
    return found


@every("p", PS)
def test_the_hinge_on_degenerate_kernels_and_points(p):
    rng = np.random.default_rng(0)
    for C, share in ((1e-4, 0.5), (1e-2, 0.2), (1.0, 0.5), (1.0, 0.1), (1e4, 0.5)):
        Ks, X = stack(rng, 18)
        twice = np.r_[np.arange(18), 3, 4, 4]
        y = labels(rng, X, share)[twice]
        y[-1] = -y[4]  # one point with both labels
        agrees(Ks[:, twice][:, :, twice], y, p, ko.hinge(C), bias=bool(rng.integers(2)) or None)


def test_the_same_random_state_gives_the_same_solution():
    rng = np.random.default_rng(1)
    Ks, X = stack(rng, 420)
    y = labels(rng, X)
    built = lp_norm.primal(Ks, y, p=4 / 3)
    one, two = (built.solve("newton", tol=1e-4) for _ in range(2))
    assert (one.weights == two.weights).all() and (one.alpha == two.alpha).all()
    assert one.lower == two.lower and one.upper == two.upper
