"""Problems for each iterative method, and a script that kills a call at a random moment and resumes it.

`python -m tests.methods.resumable FOLDER COUNT` prints a line for each kill, and fails at the first call that
does not go on to the certified optimum.
"""

import multiprocessing
import os
import signal
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

import kernelopt as ko
import kernelopt.methods.checkpoint as checkpoint
from formulations import lanckriet, lp_norm, similarity, triplet_lp

TOL = 1e-6


@cache
def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    return ko.Grams.from_kernels([ko.gaussian(w) for w in (0.3, 1.0, 3.0, 10.0)], X), y


def near(fidelity):
    """A kernel near an indefinite similarity."""
    grams, y = data(16)
    noise = np.random.default_rng(1).normal(scale=0.1, size=(16, 16))
    return similarity.single_kernel(
        [grams[1] + noise + noise.T], y, trace=16.0, fidelity=fidelity, rho=0.5
    ).problem


def free_sign():
    """Weights of any sign on the half of the points that is labelled."""
    grams, y = data(80)
    return lanckriet.soft_margin(grams, y[:40], C=1.0, weights="free").problem


def compared():
    """Weak kernels on single features, with comparisons of labels: dominance needs several rounds."""
    rng = np.random.default_rng(0)
    labels, X = np.arange(24) % 3, rng.uniform(size=(24, 4))
    X[:, 0] += labels
    kernels = ko.per_feature([ko.gaussian(w) for w in (0.02, 0.05, 0.1)], 4)
    grams = ko.Grams.from_kernels([*kernels, ko.identity()], X)
    triplets = ko.sample_triplets(labels, 60, random_state=0)
    return triplet_lp.kernel_design(grams, triplets, gamma1=0.05, gamma2=0.01).problem


CASES = {
    "spectral-master": free_sign,
    "block-descent": lambda: lp_norm.primal(*data(), p=1.3).problem,
    "interleaved": lambda: lp_norm.primal(*data(120), p=1.1, loss=ko.hinge(C=10.0)).problem,
    "smooth-dual": lambda: lp_norm.primal(*data(), p=1.3, loss=ko.logistic()).problem,
    "newton": lambda: lp_norm.primal(*data(520), p=1.3).problem,
    "cutting-plane": lambda: lanckriet.soft_margin(*data(), C=1.0).problem,
    "cutting-plane relaxed": free_sign,
    "mirror-descent": lambda: lp_norm.primal(*data(), p=1).problem,
    "interior-point": compared,
    "column-generation": compared,
    "first-order-dual squared": lambda: near("squared_frobenius"),
    "first-order-dual frobenius": lambda: near("frobenius"),
    "first-order-dual l1": lambda: near("l1"),
}


def solve(case, path, **options):
    return ko.solve(CASES[case](), case.split()[0], tol=TOL, checkpoint=path, **options)


def kill(case, path, seconds, wait):
    """Start a call in a process of its own, and kill it after some seconds.

    With `wait` they are counted from the first checkpoint: on a slow machine a call may not have written one.
    """
    process = multiprocessing.get_context("fork").Process(target=solve, args=(case, path))
    process.start()
    while wait and process.is_alive() and not path.exists():
        time.sleep(1e-3)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def main(folder, count):
    checkpoint.EARLIEST_SECONDS, checkpoint.WRITE_SHARE = 0.0, 1.0
    rng = np.random.default_rng(0)
    optima, seconds = {}, {}
    for case in CASES:  # once in this process: the functions of numba are compiled, and the optimum is known
        solve(case, None)
        began = time.perf_counter()
        optima[case] = solve(case, None)
        seconds[case] = time.perf_counter() - began
    for k in range(count):
        case = list(CASES)[k % len(CASES)]
        path = Path(folder) / f"{k}.npz"
        kill(case, path, rng.uniform(0.0, 1.3) * seconds[case], wait=k % 2 == 0)
        begun = path.exists()
        resumed, full = solve(case, path), optima[case]
        assert resumed.gap <= TOL, (case, resumed.gap)
        assert max(resumed.lower, full.lower) <= min(resumed.upper, full.upper), (case, resumed, full)
        made = f"{resumed.iterations} of {full.iterations} iterations"
        print(f"{case}: {'resumed' if begun else 'started'}, {made}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
