"""One valid call of every method of the estimators, argument by argument, as in `public_calls.py`.

Samples and labels follow the conventions of scikit-learn, whose errors are good too: what it converts to
numbers, such as digits in a text among objects, is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelopt.estimators import (
    FormulationClassifier,
    KernelAlignment,
    LinearFunctionalMKLClassifier,
    LinearFunctionalMKLRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    SimilarityClassifier,
    TransductiveKernelClassifier,
    TripletKernel,
)
from tests.problems import points
from tests.validation.careless import DEFAULT, Arg, Call, array, exponent, flag, number, size, vector, word

N = 8
X = points(N, d=3)
NEW = X[:4] + 0.1
Y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
T = X[:, 0] - X[:, 1] ** 2
S = X @ X.T + np.eye(N)
KERNELS = {"kernels": ["gaussian(1.0)", "linear()"]}

OPTIONS = {"normalize": word("trace"), "tol": number(1e-3), "time_limit": number(30.0, DEFAULT)}
C = {"C": number(1.0)}
ESTIMATORS: dict[Callable[..., Any], tuple[dict[str, Any], Any, dict[str, Arg]]] = {
    MKLClassifier: (
        KERNELS,
        Y,
        OPTIONS
        | C
        | {
            "p": exponent(),
            "loss": word("hinge"),
            "multiclass": word("shared"),
            "verbose": flag(False),
            "method": word("auto"),
        },
    ),
    MKLClassifierCV: (
        KERNELS | {"Cs": [0.1, 1.0], "cv": 2},
        Y,
        {"Cs": vector([0.1, 1.0], "generator of it, longer, much longer", named="C")},
    ),
    MKLRegressor: (
        KERNELS,
        T,
        OPTIONS
        | C
        | {"epsilon": number(0.1), "loss": word("squared"), "target_scale": word("none")}
        | {"multioutput": word("shared")},
    ),
    MKLRegressorCV: (
        KERNELS | {"Cs": [0.1, 1.0], "cv": 2},
        T,
        {"n_jobs": size(1, DEFAULT)},
    ),
    OneClassMKL: (KERNELS | {"nu": 0.5}, None, OPTIONS | {"nu": number(0.5), "p": exponent()}),
    LinearFunctionalMKLRegressor: (
        KERNELS | {"regularization": 0.1},
        T,
        {
            "regularization": vector([0.1, 0.2], "number"),
            "ridge": number(0.1),
            "weights": word("free"),
            "columns": word("training"),
        },
    ),
    LinearFunctionalMKLClassifier: (KERNELS | {"regularization": 0.1}, Y, {}),
    FormulationClassifier: (
        KERNELS | {"options": {"p": 2.0}},
        Y,
        {"formulation": word("lp_norm.primal", skips="function"), "takes": word("labels", DEFAULT)},
    ),
    SimilarityClassifier: (
        {},
        Y,
        C | {"rho": number(1.0), "trace": number(1.0, DEFAULT), "fidelity": word("l1", skips="function")},
    ),
    TransductiveKernelClassifier: (KERNELS, Y, C | {"margin": word("l1"), "weights": word("nonnegative")}),
    KernelAlignment: (KERNELS, Y, {"center": flag(True)}),
    TripletKernel: (
        KERNELS | {"cone": "nonnegative"},
        Y,
        {"gamma1": number(0.01), "gamma2": number(0.01), "cone": word("nonnegative"), "n_triplets": size(10)},
    ),
}

TEXTS = "as text, as bytes, as objects of text, text entry"  # scikit-learn reads numbers in them
LABELS = "as text, as objects of text"  # of any type that can be sorted
SAMPLES = "grams|kernels|samples|similarities"  # what messages call X


def said(model: Any) -> Any:
    """Return what a fitted model says of new samples."""
    method = next(m for m in ("decision_function", "transform", "predict") if hasattr(model, m))
    return getattr(model, method)(S[:4] if isinstance(model, SimilarityClassifier) else NEW)


def fit(
    kind: Any, fixed: dict[str, Any], X: Any = X, y: Any = None, sample_weight: Any = None, **more: Any
) -> Any:
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return said(kind(**fixed | more).fit(X, y, **weights))


def calls() -> dict[str, Call]:
    """Return the calls by name."""
    found: dict[str, Call] = {}
    for kind, (fixed, y, parameters) in ESTIMATORS.items():
        name, samples = kind.__name__, S if kind is SimilarityClassifier else X
        regression = y is T
        objects = "" if regression else "objects"  # "unknown labels" to scikit-learn
        forms = TEXTS if y is not None else f"{TEXTS}, sparse, sparse matrix"  # of three points
        data = {"X": array(samples, forms, named=SAMPLES)}
        if y is not None:
            takes = "" if regression else LABELS if kind is MKLClassifierCV else f"{LABELS}, records"
            data["y"] = vector(y, takes, named="targets", refuses=objects)
        if "sample_weight" in kind.fit.__code__.co_varnames:
            data["sample_weight"] = vector(np.arange(1.0, N + 1), f"{DEFAULT}, number", named="C")
        found[f"{name}.fit"] = Call(partial(fit, kind, fixed), data, np.asarray)
        if parameters:
            fixed_data = {"X": samples, "y": y}
            found[name] = Call(partial(fit, kind, fixed, **fixed_data), parameters, np.asarray)
        model = kind(**fixed).fit(samples, y)
        new = {"X": array(samples[:4], TEXTS, named="kernels|samples|n_new")}
        for method in ("predict", "decision_function", "transform"):
            if hasattr(model, method):
                found[f"{name}.{method}"] = Call(getattr(model, method), new, np.asarray)
        again = {"X": array(samples, TEXTS.removesuffix(", text entry"), named=SAMPLES, refuses="float32")}
        if y is not None:
            kept = takes if kind is TripletKernel else ""  # any names of the classes draw the same triplets
            again["y"] = vector(y, kept, named="targets", refuses="float32" if regression else objects)
        found[f"{name}.certify"] = Call(model.certify, again, lambda c: np.array([c.lower, c.upper]))
    return found
