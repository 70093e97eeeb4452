"""Kernels from similarities: bad input."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity
from kernelopt import InputError
from kernelopt.errors import LabelError, NotFiniteError, NotSymmetricError, ParameterError, ShapeError
from tests.every import every
from tests.formulations.similarity.cases import BUILDERS, TAU, N, S, Y, builders, learned


@builders
@every(
    ("given", "error", "message"),
    [
        (
            {"similarities": S + np.triu(np.ones((N, N)), 1)},
            NotSymmetricError,
            r"similarities\[0\] must be symm",
        ),
        ({"similarities": S + 1e-6 * np.triu(S, 1)}, NotSymmetricError, "symmetric to 1e-08 relative"),
        (
            {"similarities": np.full((2, N, N), np.nan)},
            NotFiniteError,
            "similarities must be finite, got nan",
        ),
        ({"similarities": S[:, :5]}, ShapeError, r"must have shape \(m, N, N\), got \(2, 5, 8\)"),
        ({"similarities": S[0, 0]}, ShapeError, r"must have shape \(m, N, N\), got \(8,\)"),
        ({"similarities": S[0, :5]}, ShapeError, r"must have shape \(m, N, N\), got \(1, 5, 8\)"),
        ({"similarities": S[:0]}, ShapeError, "at least one"),
        ({"similarities": [np.eye(2), np.eye(3)]}, ShapeError, "real matrices of one size, got list"),
        ({"y": Y[:0]}, LabelError, "y must hold both labels, got no label"),
        ({"y": np.arange(8.0)}, LabelError, "labels -1 and \\+1, got 0"),
        ({"y": np.ones(N)}, LabelError, "both labels"),
        ({"y": np.tile(Y, 2)}, ShapeError, "at most 8 entries"),
        ({"y": None}, ShapeError, "needs y, got None"),
        ({"rho": -1.0}, ParameterError, "rho must be a non-negative finite number, got -1"),
        ({"rho": np.nan}, ParameterError, "rho must be"),
        ({"C": 0.0}, ParameterError, "C must be a positive"),
        ({"C": np.inf}, ParameterError, "C must be finite"),
        ({"trace": 0.0}, ParameterError, "trace must be a positive finite number, got 0"),
        ({"trace": "mean"}, ParameterError, "trace must be a positive"),
        ({"trace": None, "rho": 0.0}, ParameterError, "trace must be given where rho is 0, got None"),
        ({"fidelity": "l2"}, ParameterError, "fidelity must be 'l1', 'frobenius'.* got 'l2'"),
        (
            {"fidelity": lambda X: cp.abs(X)},
            ParameterError,
            "must return a convex cvxpy expression of one entry",
        ),
        ({"fidelity": lambda X: -cp.sum_squares(X)}, ParameterError, "must return a convex"),
        ({"fidelity": lambda X: 1.0}, ParameterError, "must return a convex .* got 1.0"),
        ({"loss": "hinge"}, ParameterError, "loss must be a loss such as"),
        ({"loss": ko.logistic(1.0), "C": np.ones(N)}, ParameterError, "Write it into the loss"),
        ({"loss": ko.logistic(1.0), "C": 2.0}, ParameterError, "got C = 2.0 beside loss"),
    ],
)
def test_bad_input_is_refused(name, given, error, message):
    arguments = {"similarities": S, "y": Y, "rho": 1.0, "trace": TAU} | given
    with pytest.raises(error, match=message):
        BUILDERS[name](arguments.pop("similarities"), arguments.pop("y"), **arguments)


def test_bad_input_of_the_helpers_is_refused():
    with pytest.raises(ParameterError, match="some similarity must have a positive eigenvalue"):
        similarity.default_trace(-np.eye(3))
    with pytest.raises(ParameterError, match="rho must be a positive finite number, got 0"):
        similarity.indefinite_svm(S, Y, rho=0)
    with pytest.raises(ShapeError, match="alpha must be finite of shape"):
        similarity.optimal_kernel(S, np.ones(N + 1), rho=1)
    for transform in (similarity.denoise, similarity.flip, similarity.shift):
        with pytest.raises(NotSymmetricError, match=r"similarities\[0\]"):
            transform(np.triu(np.ones((3, 3))))
    extend = similarity.spectral_extension
    with pytest.raises(InputError, match="got 'shift'. The shift has no rule at new points"):
        extend("shift", S, S)
    with pytest.raises(ShapeError, match=r"S_new must be finite of shape \(m, n_new, N\) with m = 2"):
        extend("flip", S, S[:1])
    with pytest.raises(ShapeError, match="mu must be finite of shape"):
        extend(np.ones(N), S, S)
    for name in ("ESKL", "EMKL"):
        with pytest.raises(InputError, match="the kernel must have the eigenvectors of the similarities"):
            extend(learned(name, "frobenius")[1], S, S)
        with pytest.raises(InputError, match="new points need a combination"):
            learned(name, "frobenius")[1].decision_function(S)
    with pytest.raises(InputError, match="the kernel must have the eigenvectors"):
        extend(learned("REKL", "frobenius")[1], S[::-1], S)
    with pytest.raises(ParameterError, match="Call its solve"):
        ko.solve(learned("ESKL", "l1")[0])
