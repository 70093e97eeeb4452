"""Points, kernels and oracles for the linear functional strategy."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from formulations import linear_functional as lf
from tests.problems import points, targets

N, ALPHA = 20, 0.03


X = points(N, d=2)


V = targets(N)


KERNELS = [ko.gaussian(0.5), ko.gaussian(1.0), ko.gaussian(4.0), ko.linear(), ko.polynomial(3)]


GRAMS = ko.Grams.from_kernels(KERNELS, X)


KS = np.asarray(GRAMS)


M = len(KERNELS)


CASES = [(w, ridge) for w in ("free", "nonnegative", "simplex") for ridge in (0.0, 0.02)]


cases = pytest.mark.parametrize(("weights", "ridge"), CASES)


COLUMNS = ("training", "leave-one-out", "split")


def learn(grams=GRAMS, v=V, **options):
    return lf.functional_strategy(grams, v, **{"regularization": ALPHA, **options})


def by_hand(K, v, level):
    return np.linalg.solve(K + level * np.eye(len(K)), v)


def value(**options):
    return learn(**options).solve().value
