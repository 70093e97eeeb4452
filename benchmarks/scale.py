"""How far method="newton" goes from points: n = 25,000 to 200,000 in memory, from a file, and on two workers.

Two sets of data, odd against even digits, 50 Gaussian kernels whose squared widths are a geometric sequence
around the median squared distance, hinge loss with C = 1, to a certified gap of 1e-3:

* the digits of scikit-learn, repeated with noise, d = 64;
* with `--data FOLDER` also MNIST in 64 principal components, repeated with noise beyond its 60,000 points.

Beside the processor seconds of the whole call on one thread and the peak of resident memory stand predicted
ones: those of `kernelopt.explain` before the call, which knows n alone, and the memory that follows from the
number of support vectors at its end. `before` is the memory of the process with the data, before the call,
and is part of each memory. A slope is the one of the least-squares line through the logarithms.
Every run is a process of its own, and a run before it, on few points, compiles what is missing.

`--points-from` names where the points are: an array, a memory map of a file, or two workers of a Dask cluster
on this machine, which read the file. `bits` is a digest of the bounds, of alpha and of the weights: it is
equal where a result is the same to the last bit. On workers the seconds are those of all processes, of which
`caller seconds` are those of the caller, and each sweep counts the bytes that all processes wrote to sockets
meanwhile, those of Dask's own messages among them, beside 4 * payload * workers + 8 n.

    python benchmarks/scale.py [--data FOLDER] [--sets digits mnist] [--points 25000 50000 100000 200000]
        [--norms 1 2] [--points-from array map workers] [--output scale.json] [--figure scale.png]
    python benchmarks/scale.py --draw scale.json [another.json ...] [--figure scale.png]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np

KERNELS, RATIO, GAP, WIDTH = 50, 1.2, 1e-3, 64
DIGITS, MNIST = "digits with noise", "MNIST-like"
NOISE = {DIGITS: 0.1, MNIST: 0.3}  # of digits in [0, 1]; of MNIST in standard deviations of its components
SETS = {"digits": DIGITS, "mnist": MNIST}
ARRAY, MAP, WORKERS = "array", "memory map", "two workers"
SOURCES = {"array": ARRAY, "map": MAP, "workers": WORKERS}
COLORS = {1.0: "#0072b2", 2.0: "#d55e00"}
STYLES = {DIGITS: ("-", "o"), MNIST: ("--", "s")}


def data(name, n, folder):
    """Points and labels; those beyond the data are others of them with noise."""
    rng = np.random.default_rng(0)
    if name == DIGITS:
        from sklearn.datasets import load_digits

        digits = load_digits()
        X, digit, repeated = digits.data / 16, digits.target, True
        scale = NOISE[DIGITS]
    else:
        sys.path.insert(0, str(folder))
        from load import load

        images, digit = load("mnist", split=True)[:2]
        images = images / 255.0
        centred = images - images.mean(axis=0)
        _, vectors = np.linalg.eigh(centred.T @ centred)
        X, repeated = centred @ vectors[:, ::-1][:, :WIDTH], n > len(images)
        scale = NOISE[MNIST] * X.std()
    chosen = rng.permutation(np.resize(np.arange(len(X)), max(n, len(X))))[:n]
    X = X[chosen] + scale * rng.standard_normal((n, WIDTH)) if repeated else X[chosen]
    return X, np.where(digit[chosen] % 2 == 1, 1.0, -1.0)


def write(name, n, folder, path):
    """Write the points to a file and return the labels: the process of a run has never made them."""
    X, y = data(name, n, folder)
    np.save(path, X)
    return y


def widths(X):
    """Widths with 2 width^2 = median squared distance * RATIO^k."""
    from scipy.spatial.distance import pdist

    chosen = np.sort(np.random.default_rng(1).permutation(len(X))[:1000])
    median = np.median(pdist(X[chosen], "sqeuclidean"))
    return np.sqrt(median * RATIO ** np.arange(-KERNELS // 2, KERNELS // 2) / 2)


def memory():
    """The peak resident memory of this process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def bits(solution):
    """A digest of a result."""
    found = hashlib.blake2b(digest_size=8)
    for part in (solution.lower, solution.upper, solution.alpha, solution.weights):
        found.update(np.ascontiguousarray(part, dtype=float).tobytes())
    return found.hexdigest()


def run(name, n, p, path, y, source):
    """One call from points to the certified solution, with what was predicted of it."""
    if source != WORKERS:
        return call(name, n, p, np.load(path, mmap_mode="r" if source == MAP else None), y, path)
    import kernelopt as ko

    with two_workers() as client:
        points = ko.cluster.rows([path], client)
        with counted(client, points) as (sweeps, spent):
            row = call(name, n, p, points, y, path)
            row["caller seconds"], row["seconds"] = row["seconds"], row["seconds"] + spent()
        return row | {"sweeps": sweeps}


def call(name, n, p, points, y, path):
    """The run from points in memory, in a file or on workers."""
    import kernelopt as ko
    from formulations import lp_norm
    from kernelopt.methods.engine.family import family
    from kernelopt.methods.engine.method import Newton
    from kernelopt.methods.engine.radial import radial_bytes
    from kernelopt.structure.structure import Structure

    X = np.load(path, mmap_mode="r")
    kernels = [ko.gaussian(width) for width in widths(X)]
    lp_norm.primal(ko.Grams.from_kernels(kernels, X[:3500]), y[:3500], p=p).solve("newton", tol=1e-2)
    before, began, wall = memory(), time.process_time(), time.perf_counter()
    grams = ko.Grams.from_kernels(kernels, points)
    built = lp_norm.primal(grams, y, p=p)
    solution = built.solve("newton", tol=GAP)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    method, structure = Newton(), Structure(built.problem)
    cost = method.cost(method.match(structure))
    support = int(np.count_nonzero(solution.alpha))
    return {
        "data": name,
        "n": n,
        "p": p,
        "seconds": seconds,
        "wall": wall,
        "predicted seconds": cost.seconds,
        "GB": memory(),
        "before": before,
        "predicted GB": before + cost.memory / 1e9,
        "GB of the support": before + radial_bytes(family(grams.storage), support, KERNELS, n) / 1e9,
        "support": support,
        "gap": solution.gap,
        "status": solution.status,
        "bits": bits(solution),
    }


@contextmanager
def two_workers():
    """A client of two processes with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", scheduler_port=0) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


def counting():
    """Let this process count the bytes that it writes to sockets."""
    from distributed.comm import tcp

    original = tcp.TCP.write
    tcp.written = 0

    async def write(self, *arguments, **options):
        count = await original(self, *arguments, **options)
        tcp.written += count
        return count

    tcp.TCP.write = write


@contextmanager
def counted(client, points):
    """Give the list of the sweeps, each with its bytes, and a function of the seconds of the workers."""
    from distributed.protocol.pickle import dumps

    sweeps, sweep = [], type(points)._run

    def written():
        from distributed.comm import tcp

        return tcp.written

    def everywhere():
        return written() + sum(client.run(written).values())

    def spent():
        return sum(client.run(time.process_time).values())

    def measured(self, task, payload, parts):
        before = everywhere()
        yield from sweep(self, task, payload, parts)
        moved, sent = everywhere() - before, len(dumps(payload))
        bound = 4 * sent * len(client.nthreads()) + 8 * len(self)
        found = {"task": task.__name__, "blocks": len(parts), "payload": sent, "moved": moved, "bound": bound}
        sweeps.append(found)

    counting()
    client.run(counting)
    list(points.each(points_at_hand, None))  # the blocks are loaded, and modules imported
    began = spent()
    type(points)._run = measured
    try:
        yield sweeps, lambda: spent() - began
    finally:
        type(points)._run = sweep


def points_at_hand(X, numbers, payload):
    """A sweep that computes nothing."""


def alone(function, *arguments):
    """Return what a function returns in a process of its own, which may have processes of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def curves(rows):
    """Yield the data, p and the rows of every curve: those from arrays, and others where there are none."""
    at = {(row["data"], row["p"], row["n"]): row for row in reversed(rows)}
    rows = sorted(at.values(), key=lambda row: (row["data"], row["p"], row["n"]))
    for name, p in dict.fromkeys((row["data"], row["p"]) for row in rows):
        yield name, p, [row for row in rows if (row["data"], row["p"]) == (name, p)]


def slope(rows, what):
    """Return the slope of the logarithm of a number over log n, or None of one run."""
    if len(rows) < 2:
        return None
    n, values = (np.log([row[key] for row in rows]) for key in ("n", what))
    return float(np.polyfit(n, values, 1)[0])


def show(row):
    """Print one run."""
    print(
        f"{row['data']}, p = {row['p']:g}, n = {row['n']:,}, {row['source']}: {row['seconds']:.1f} s "
        f"(predicted {row['predicted seconds']:.0f}), {row['GB']:.2f} GB (predicted "
        f"{row['predicted GB']:.2f}, by the support {row['GB of the support']:.2f}), "
        f"{row['support']:,} support vectors, "
        f"gap {row['gap']:.0e}, bits {row['bits']}",
        flush=True,
    )
    for sweep in row.get("sweeps", ()):
        print(
            "    {task} of {blocks} blocks: payload {payload:,}, moved {moved:,} of {bound:,}".format(**sweep)
        )


def draw(rows, path):
    """Draw seconds and memory over n; predicted ones are dotted, and the memory is that of the support."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator

    plt.rcParams.update({"font.size": 12})  # readable where the figure is as wide as a phone
    figure, axes = plt.subplots(2, 1, figsize=(5, 8.4), layout="constrained")
    kinds = (
        ("seconds", "predicted seconds", "processor seconds"),
        ("GB", "GB of the support", "peak memory, GB"),
    )
    for ax, (what, predicted, label) in zip(axes, kinds, strict=True):
        for name, p, mine in curves(rows):
            (line, marker), color = STYLES[name], COLORS.get(p, "#009e73")
            n, steep = [row["n"] for row in mine], slope(mine, what)
            curve = f"{name}, p = {p:g}" + ("" if steep is None else f", slope {steep:.2f}")
            ax.plot(n, [row[what] for row in mine], line, marker=marker, color=color, label=curve)
            ax.plot(n, [row[predicted] for row in mine], ":", color=color, linewidth=1.5)
        ticks = sorted({row["n"] for row in rows})
        ax.set(xscale="log", yscale="log", xlabel="points n")
        ax.set_title(label)
        ax.set_xticks(ticks, [f"{tick // 1000}k" for tick in ticks])
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.minorticks_off()
        ax.grid(which="major", color="#dddddd", linewidth=0.6)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
        ax.legend(frameon=False, fontsize=11, loc="upper left")
    figure.savefig(path, dpi=130)


def described(rows):
    """What a file of results keeps: the rows, with the command, the commit, the machine and the date."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    return {
        "command": " ".join(["python", "benchmarks/scale.py", *sys.argv[1:]]),
        "commit": commit.stdout.strip(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}",
        "date": time.strftime("%Y-%m-%d"),
        "rows": rows,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with load.py and MNIST")
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, help="default: digits, and mnist where there is --data"
    )
    parser.add_argument("--points", type=int, nargs="+", default=[25_000, 50_000, 100_000, 200_000])
    parser.add_argument("--norms", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--points-from", nargs="+", choices=SOURCES, default=["array"])
    parser.add_argument("--output", type=Path, default=Path("scale.json"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--draw", type=Path, nargs="+", help="JSON files of earlier runs: nothing is run")
    chosen = parser.parse_args()
    rows = [row for path in chosen.draw or () for row in json.loads(path.read_text())["rows"]]
    sets = chosen.sets or (["digits", "mnist"] if chosen.data else ["digits"])
    for name in [] if chosen.draw else [SETS[each] for each in sets]:
        for n in chosen.points:
            with TemporaryDirectory() as temporary:
                path = Path(temporary, "X.npy")
                y = alone(write, name, n, chosen.data, path)
                for p in chosen.norms:
                    for source in [SOURCES[each] for each in chosen.points_from]:
                        rows.append({"source": source} | alone(run, name, n, p, path, y, source))
                        show(rows[-1])
                        chosen.output.write_text(json.dumps(described(rows), indent=1))
    for name, p, mine in curves(rows):
        found = [slope(mine, what) for what in ("seconds", "GB", "support")]
        if None not in found:
            print(
                f"{name}, p = {p:g}: slopes in n of seconds {found[0]:.2f}, GB {found[1]:.2f}, "
                f"support {found[2]:.2f}"
            )
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
