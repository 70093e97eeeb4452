"""The whole call of l_p-norm multiple kernel learning: what the gate, the method and the certificate cost.

Digits, odd against even, n points, M Gaussian kernels of widths sqrt(1.2^k / 2) as one precomputed stack,
hinge loss with C = 1. Points beyond the 1797 digits are digits with noise. Three tables:

* the gate of a stack in float64 and in float32;
* the call `lp_norm.primal(grams, y, p=p).solve()` from the array to the certified solution, next to the loop
  that anybody would write, libsvm at the combined kernel, then the analytic update of the weights;
* the same call from points, whose kernels are evaluated, with the share of the certificate;
* the path over ten exponents p on 300 points with 10 kernels, `lp_norm.path(grams, y, p=...)`, next to ten
  such calls from the start, and to ten fits of scikit-learn's SVC at equal weights, which learn none.

Seconds are those of the processor, and the unit is a streaming pass, `Ks.sum()`: read the ratios. Every cell
of kernelopt ends in a float64 certificate, whose gap is listed.

    python benchmarks/whole_call.py [--points 2000] [--kernels 50] [--gap 1e-3] [--output whole_call.json]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from mkl_peers import analytic_updates
from rich.console import Console
from rich.table import Table

NORMS = (1.0, 4 / 3, 2.0, 4.0)
LIMIT = 60.0  # seconds a run may take
EXPONENTS = (1.0, 1.1, 1.2, 4 / 3, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0)
PATH_POINTS, PATH_KERNELS, PATH_GAP = 300, 10, 1e-5
WARM = 100  # points of the call that compiles the loops


def data(points, kernels):
    """Points, labels and kernel functions."""
    from sklearn.datasets import load_digits

    import kernelopt as ko

    rng, digits = np.random.default_rng(0), load_digits()
    chosen = rng.permutation(len(digits.data))
    if points > chosen.size:
        chosen = np.concatenate([chosen, rng.integers(0, chosen.size, points - chosen.size)])
    chosen = chosen[:points]
    X, y = digits.data[chosen] / 16, np.where(digits.target[chosen] % 2 == 1, 1.0, -1.0)
    X[len(digits.data) :] += 0.01 * rng.normal(size=X[len(digits.data) :].shape)
    return X, y, [ko.gaussian(np.sqrt(1.2**k / 2)) for k in range(kernels)]


def clocked(call, times=1):
    """The least processor seconds of a call, and its last result."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        result = call()
        seconds.append(time.process_time() - started)
    return min(seconds), result


def gate(Ks):
    """Processor seconds of the gate for each kind of array."""
    import kernelopt as ko

    found = {}
    for array in (Ks, Ks.astype(np.float32)):
        found[f"{array.dtype}"] = clocked(lambda array=array: ko.extend.as_grams(array), 3)[0]
    return found


def call(given, y, p, tol, method):
    """One whole call: processor seconds, wall seconds of its certificate, its gap and its status."""
    from formulations import lp_norm

    seconds, solution = clocked(
        lambda: lp_norm.primal(given(), y, p=p).solve(method, tol=tol, time_limit=LIMIT)
    )
    spent = solution.certify_time
    return {
        "seconds": seconds,
        "certificate, share of the wall": spent / (solution.solve_time + spent),
        "gap": solution.certificate.gap,
        "method": solution.method,
    }


def path(Ks, y, tol, method):
    """Processor seconds of a path over the exponents, of the calls one by one, and of as many SVC fits."""
    from sklearn.svm import SVC

    from formulations import lp_norm

    def fits():
        for _ in EXPONENTS:
            SVC(kernel="precomputed", C=1.0).fit(Ks.mean(axis=0), y)

    def apart():
        return [lp_norm.primal(Ks, y, p=p).solve(method, tol=tol) for p in EXPONENTS]

    seconds, solved = clocked(lambda: lp_norm.path(Ks, y, p=EXPONENTS, method=method, tol=tol), 3)
    return {
        "seconds": seconds,
        "gap": float(solved.gap.max()),
        "apart": clocked(apart, 3)[0],
        "SVC": clocked(fits, 3)[0],
    }


def show(console, title, columns, rows):
    """One table."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column in ("array", "method") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--output", default="whole_call.json")
    chosen = parser.parse_args()
    import kernelopt as ko

    console = Console(width=110)
    warnings.simplefilter("ignore", ko.ConvergenceWarning)
    X, y, functions = data(chosen.points, chosen.kernels)
    Ks = np.array(ko.Grams.from_kernels(functions, X))
    small = np.ascontiguousarray(Ks[:, :WARM, :WARM])
    call(lambda: small, y[:WARM], 2.0, chosen.gap, chosen.method)
    gate(np.zeros((1, 2048, 2048)))  # compiles the passes of both types
    unit = clocked(Ks.sum, 3)[0]
    report = {"GB": Ks.nbytes / 1e9, "streaming pass": unit, "gate": gate(Ks), "calls": {}, "points": {}}
    rows = [[name, f"{s:.3f} s", f"{s / unit:.1f}"] for name, s in report["gate"].items()]
    show(console, f"the gate of {report['GB']:.2g} GB", ("array", "seconds", "passes"), rows)
    rows = []
    for p in NORMS:
        loop = analytic_updates(Ks, y, p, chosen.gap, LIMIT)
        peer, gap = loop.seconds, loop.gap
        cell = call(lambda: Ks, y, p, chosen.gap, chosen.method)
        cell |= {"peer": peer, "peer's gap": gap, "ratio": peer / cell["seconds"]}
        report["calls"][f"p={p:g}"] = cell
        ours = [f"{cell['seconds']:.2f} s", f"{cell['seconds'] / unit:.1f}", f"{cell['gap']:.0e}"]
        theirs = [f"{peer:.2f} s", f"{gap:.0e}", f"{cell['ratio']:.1f}x"]
        rows.append([f"{p:.2f}", cell["method"], *ours, *theirs])
    columns = ("p", "method", "seconds", "passes", "gap", "libsvm loop", "its gap", "ratio")
    show(console, "from the array to the certified solution", columns, rows)
    rows = []
    for p in NORMS[:2]:
        cell = call(lambda: ko.Grams.from_kernels(functions, X), y, p, chosen.gap, "interleaved")
        report["points"][f"p={p:g}"] = cell
        share = cell["certificate, share of the wall"]
        rows.append([f"{p:.2f}", f"{cell['seconds']:.2f} s", f"{cell['gap']:.0e}", f"{share:.0%}"])
    show(console, "from the points, interleaved", ("p", "seconds", "gap", "certificate"), rows)
    every = max(1, len(Ks) // PATH_KERNELS)
    part = np.ascontiguousarray(Ks[::every][:PATH_KERNELS, :PATH_POINTS, :PATH_POINTS])
    cell = path(part, y[:PATH_POINTS], PATH_GAP, chosen.method)
    report["path"] = cell
    row = [f"{cell['seconds']:.2f} s", f"{cell['gap']:.0e}"]
    row += [f"{cell[name]:.2f} s, {cell[name] / cell['seconds']:.2g}x" for name in ("apart", "SVC")]
    columns = ("seconds", "largest gap", "call by call", "ten SVC fits")
    show(console, f"path over {len(EXPONENTS)} exponents, n = {PATH_POINTS}", columns, [row])
    report["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"peak memory {report['peak MB']:.0f} MB; written: {chosen.output}")


if __name__ == "__main__":
    main()
