"""The peers of `engine.py` and `growth.py`, each measured in a process of its own.

* `libsvm_loop`: the loop that anybody would write, libsvm at the combined kernel, then the analytic update
  of the weights of Kloft et al. (2011). libsvm takes no initial alpha, so every training starts cold. Its
  tolerance follows the gap, which is faster than a fixed one, and the forms alpha'K_m alpha are compiled.
* `reduced_gradient`: the algorithm of SimpleMKL (Rakotomamonjy et al., 2008) around libsvm, p = 1. It is
  written here after the paper; SimpleMKL itself needs Matlab.
* `conic`: the dual at p = 1 as one problem of cvxpy, with factors of the kernels by pivoted Cholesky.
* `easymkl`: EasyMKL of MKLpy, in the interpreter of an environment in which MKLpy is installed. It has no
  certificate, and its objective is another one: it is named for its time.

Seconds are those of the processor from the matrices on. Run as a script this file is the process of EasyMKL.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from mkl_problems import digits, matrices

TIGHTEST, LOOSEST, SHARE = 1e-6, 1e-3, 0.1  # tolerance of libsvm: this share of the gap, in these bounds
CACHE = 1000  # MB of libsvm's cache
GOLDEN = (np.sqrt(5) - 1) / 2  # the line search of SimpleMKL
BRACKET = 0.1  # its length at the end, relative to the step
ACTIVE = 1e-8  # weights below are zero, as in SimpleMKL
PIVOT = 1e-10  # relative to the largest diagonal entry: where the pivoted Cholesky factorisation ends


def _forms(Ks, support, alpha):
    """Return alpha'K_m alpha from the rows of the support vectors."""
    found = np.zeros(len(Ks))
    for m in range(len(Ks)):
        for i in range(len(support)):
            row, total = Ks[m, support[i]], 0.0
            for j in range(i):
                total += alpha[j] * row[support[j]]
            found[m] += alpha[i] * (2 * total + alpha[i] * row[support[i]])
    return found


class Machine:
    """libsvm at combined kernels; `history` has (seconds, lower, upper) after every training.

    The bounds are those that alpha and the weights prove for the problem with weights in the l_p ball.
    """

    def __init__(self, Ks, y, p, clock=time.process_time):
        from numba import njit
        from sklearn.svm import SVC

        self.Ks, self.y, self.p, self.svc = Ks, y, p, SVC
        self.flat = Ks.reshape(len(Ks), -1)
        self.forms = njit(_forms, fastmath=True)
        self.forms(Ks, np.arange(1), np.ones(1))  # compiles
        SVC(kernel="precomputed").fit(np.eye(2), [-1, 1])
        self.lower, self.upper, self.gap, self.history = -np.inf, np.inf, 1.0, []
        self.clock, self.began = clock, clock()

    def train(self, theta):
        """Return the value of the machine, and the forms of all kernels."""
        K = (theta @ self.flat).reshape(self.Ks.shape[1:])
        tol = np.clip(SHARE * self.gap, TIGHTEST, LOOSEST)
        machine = self.svc(kernel="precomputed", tol=tol, cache_size=CACHE).fit(K, self.y)
        support, alpha = machine.support_.astype(np.intp), np.ascontiguousarray(machine.dual_coef_[0])
        coefficients = np.zeros(len(self.y))
        coefficients[support] = alpha
        forms = np.maximum(self.forms(self.Ks, support, alpha), 0)
        fit = K @ coefficients + machine.intercept_[0]
        norm = forms.max() if self.p == 1 else np.linalg.norm(forms, self.p / (self.p - 1))
        total = float(np.abs(alpha).sum())
        self.lower = max(self.lower, total - norm / 2)
        self.upper = min(self.upper, float(np.maximum(1 - self.y * fit, 0).sum() + theta @ forms / 2))
        self.gap = float((self.upper - self.lower) / self.upper)
        self.history.append((self.seconds, float(self.lower), self.upper))
        return total - theta @ forms / 2, forms

    @property
    def seconds(self):
        return self.clock() - self.began


def analytic_updates(Ks, y, p, tol, limit, clock=time.process_time):
    """Return the machine after libsvm and the update theta_m ~ |w_m|^(2/(p+1)) in turn, to `tol`."""
    machine = Machine(Ks, y, p, clock)
    theta = np.full(len(Ks), len(Ks) ** (-1 / p))
    while machine.gap > tol and machine.seconds < limit:
        _, forms = machine.train(theta)
        powers = (theta * np.sqrt(forms)) ** (2 / (p + 1))
        theta = powers / np.linalg.norm(powers, p)
    return machine


def libsvm_loop(family, n, m, p, tol, limit, folder=None):
    """Return seconds and bounds after every update of the weights, until `tol` or `limit` seconds."""
    X, y = digits(n, folder)
    return {"history": analytic_updates(matrices(family, X, m), y, p, tol, limit).history}


def reduced_gradient(family, n, m, tol, limit):
    """Return seconds and bounds of SimpleMKL's algorithm after every training."""
    X, y = digits(n)
    machine = Machine(matrices(family, X, m), y, 1)
    theta = np.full(m, 1 / m)
    value, forms = machine.train(theta)

    def ended():
        return machine.gap <= tol or machine.seconds >= limit

    while not ended():
        top = theta.argmax()
        direction = (forms - forms[top]) / 2
        step = longest_step(theta, direction, top)
        while step > 0 and not ended():  # from one face of the simplex to the next, while the value falls
            further = np.maximum(theta + step * direction, 0)
            there = machine.train(further)
            if there[0] >= value:
                break
            theta, (value, forms) = further, there
            step = longest_step(theta, direction, top)
        low, high, known = 0.0, step, {}
        while high - low > BRACKET * step and not ended():
            inner = (high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            for t in inner:
                if not any(abs(t - u) < ACTIVE * step for u in known):
                    known[t] = machine.train(theta + t * direction)
            left, right = (min(known, key=lambda u, t=t: abs(u - t)) for t in inner)
            low, high = (low, inner[1]) if known[left][0] < known[right][0] else (inner[0], high)
        if known:
            best = min(known, key=lambda t: known[t][0])
            if known[best][0] < value:
                theta, (value, forms) = theta + best * direction, known[best]
    return {"history": machine.history}


def longest_step(theta, direction, top):
    """Let the direction leave weights of zero, with sum zero; return the step at which a weight vanishes."""
    direction[(theta <= ACTIVE) & (direction < 0)] = 0
    direction[top] = 0
    direction[top] = -direction.sum()
    falling = np.flatnonzero(direction < 0)
    return (theta[falling] / -direction[falling]).min() if falling.size else 0.0


def conic(solver, family, n, m, limit):
    """Return seconds and value of the dual at p = 1, max sum(alpha) - max_m alpha'K_m alpha / 2."""
    import cvxpy as cp
    from scipy.linalg.lapack import dpstrf

    if solver not in cp.installed_solvers():
        return {"note": f"{solver} is not installed"}
    X, y = digits(n)
    Ks = matrices(family, X, m)
    began = time.process_time()
    a, t, forms = cp.Variable(n), cp.Variable(), []
    for K in Ks:
        factor, order, rank, _ = dpstrf(K, tol=PIVOT * K.diagonal().max(), lower=1)
        L = np.zeros((n, rank))
        L[order - 1] = np.tril(factor)[:, :rank]
        forms.append(cp.sum_squares((L.T * y) @ a) <= t)
    problem = cp.Problem(cp.Maximize(cp.sum(a) - t / 2), [a >= 0, a <= 1, y @ a == 0, *forms])
    options = {"CLARABEL": {"time_limit": limit, "max_threads": 1}, "SCS": {"time_limit_secs": limit}}
    try:
        problem.solve(solver=solver, **options.get(solver, {}))
    except cp.SolverError as error:
        return {"seconds": time.process_time() - began, "note": str(error)[:60]}
    return {"seconds": time.process_time() - began, "value": problem.value, "note": problem.status}


def easymkl(python, family, n, m):
    """Return the seconds of EasyMKL's `fit`, from an interpreter that can import MKLpy."""
    command = [python, str(Path(__file__).resolve()), family, str(n), str(m)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own file
    if ended.returncode:
        return {"note": (ended.stderr.strip().splitlines() or ["no output"])[-1][:80]}
    return json.loads(ended.stdout.splitlines()[-1])


def main():
    """Fit EasyMKL of MKLpy once and print the seconds.

    Its last step trains a machine at the weights found. With libsvm that takes half as long as by default.
    """
    family, n, m = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    torch.set_num_threads(1)
    X, y = digits(n)
    Ks = torch.from_numpy(matrices(family, X, m))
    labels = torch.from_numpy(y.astype(int))
    EasyMKL(lam=0.1, learner=SVC(C=1.0)).fit(Ks[:, :50, :50], labels[:50])
    began = time.process_time()
    EasyMKL(lam=0.1, learner=SVC(C=1.0)).fit(Ks, labels)
    print(json.dumps({"seconds": time.process_time() - began}))


if __name__ == "__main__":
    main()
