"""Where kernels do not fit into memory, the error says what was to be stored and what would fit."""

from __future__ import annotations

import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.estimators import MKLClassifier
from kernelopt.kernels import Kernel

SAID = r"3 kernels on 40 points must fit into memory.*\(3, 40, 40\).*got: 53 GiB.*newton"


class TooLarge(Kernel):
    """A kernel whose matrices do not fit."""

    def gram(self, X, Z):
        raise MemoryError("53 GiB")

    def diagonal(self, X, /):
        return np.ones(len(X))


def kernels():
    return [TooLarge(), ko.linear(), ko.gaussian(1.0)]


def data():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return X, np.sign(X[:, 0])


ones = np.ones(40)
EVALUATIONS = {
    "array": np.asarray,
    "a matrix": lambda grams: grams[0],
    "a sum": lambda grams: grams.combine(np.ones(3)),
    "rows": lambda grams: grams.rows([0, 1]),
    "images": lambda grams: grams.apply(ones),
    "forms": lambda grams: grams.forms(ones),
    "entries": lambda grams: grams.entries([0], [1]),
    "inner products": lambda grams: grams.inner(),
    "a factor": lambda grams: grams.factor(0),
    "new points": lambda grams: grams.cross(np.zeros((2, 2))),
    "centring": lambda grams: np.asarray(grams.center()),
    "normalisation": lambda grams: np.asarray(grams.normalize("multiplicative")),
    "fit": lambda grams: MKLClassifier(kernels()).fit(*data()),
    **{method: lambda grams, method=method: solved(grams, method) for method in ("auto", "cutting-plane")},
}


def solved(grams, method):
    mu = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(mu, grams), data()[1], ko.hinge())
    return ko.solve(cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 1)), method)


@pytest.mark.parametrize("name", EVALUATIONS)
def test_whatever_is_evaluated_the_error_says_what_was_to_be_stored(name):
    grams = ko.Grams.from_kernels(kernels(), data()[0])
    with pytest.raises(MemoryError, match=SAID) as caught:
        EVALUATIONS[name](grams)
    assert isinstance(caught.value, ko.KerneloptError)


LIMITED = """
import resource
import numpy as np
import kernelopt as ko

grams = ko.Grams.from_kernels([ko.gaussian(float(k)) for k in range(1, 51)], np.zeros((12_000, 2)))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))
try:
    np.asarray(grams)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS limits the memory of a process on Linux")
def test_a_limit_of_the_process_is_named_with_the_kernels():
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("50 kernels on 12,000 points must fit"), done.stderr
    assert "53.6 GiB" in done.stdout and "Unable to allocate" in done.stdout
