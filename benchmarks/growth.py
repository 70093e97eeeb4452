"""How the time of method="newton" grows with the number of points and with the number of kernels.

Two studies on digits, odd against even, with Gaussian kernels whose squared widths are a geometric sequence
(the family "widths" of `mkl_problems.py`), hinge loss with C = 1, to a certified gap of 1e-3:

* points: n from 1000 on at M = 50, from the points, as far as the clock permits;
* kernels: M from 10 to 1000 at n = 1000, from the array and from the points. It is the scaling study of
  Kloft et al., l_p-norm multiple kernel learning, JMLR 12 (2011), section 5.

Every time of ours is that of the whole call with its float64 certificate. The peers are libsvm in a loop with
the analytic update, which needs all matrices and is run while they fit into `--memory`, and in the study of
points one fit of scikit-learn's SVC at a single one of the kernels, the middle one, without a certificate.

A slope is that of the least-squares line through the logarithms of a curve's finished runs. A run that did
not meet the gap in `--limit` seconds is an arrow in the figure, is no part of the slope, and is the last one
of its curve. Seconds are those of the processor on one thread; each run is a process of its own, and MB is
the peak of its resident memory.

    python benchmarks/growth.py [--study points kernels] [--points 1000 2000 ...] [--norms 1 2] [--limit 60]
        [--memory 2.5] [--data FOLDER WITH MNIST] [--output growth.json] [--figure growth.pdf]
    python benchmarks/growth.py --draw growth.json --figure growth.pdf
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from mkl_peers import libsvm_loop
from mkl_problems import digits, engine, first_below, in_process, parameters
from rich.console import Console
from rich.table import Table

GAP, FAMILY = 1e-3, "widths"
POINTS, KERNELS = (1000, 2000, 4000, 8000, 14000, 20000), (10, 30, 100, 300, 1000)
MNIST_POINTS = (*POINTS, 60000)
FIXED = {"points": 50, "kernels": 1000}  # kernels in the study of points, points in that of kernels
LOOP, SINGLE = "libsvm loop", "one SVC"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # by p, told apart with any vision of colours
STYLES = {"newton, array": ("-", "s"), "newton, points": ("-", "o"), LOOP: ("--", "D"), SINGLE: (":", "v")}


def one_machine(n, m, folder):
    """Fit one SVC at the middle kernel, from the points."""
    from sklearn.svm import SVC

    X, y = digits(n, folder)
    _, gamma = parameters(FAMILY, X, m)[m // 2]
    began = time.process_time()
    machine = SVC(C=1.0, gamma=gamma, cache_size=1000).fit(X, y)
    return {"seconds": time.process_time() - began, "support": len(machine.support_)}


def run(curve, n, m, p, chosen):
    """Return the run of a curve at one size, or None where its matrices do not fit."""
    fits = 8e-9 * m * n * n <= chosen.memory
    if curve == SINGLE:
        return in_process(one_machine, n, m, chosen.data)
    if curve != "newton, points" and not fits:
        return None
    if curve == LOOP:
        return first_below(in_process(libsvm_loop, FAMILY, n, m, p, GAP, chosen.limit, chosen.data), GAP)
    source = curve.removeprefix("newton, ")
    repeats = 3 if n * m <= 1e5 else 1
    found = in_process(engine, FAMILY, source, n, m, p, GAP, repeats, chosen.limit, chosen.data)
    if "gap" in found:
        found["capped"] = found["gap"] > GAP
    return found


def curves(study, norms):
    """Return (curve, p) of a study; p is None for the single machine."""
    names = ("newton, points", LOOP) if study == "points" else ("newton, array", "newton, points", LOOP)
    found = [(name, p) for name in names for p in norms]
    return [*found, (SINGLE, None)] if study == "points" else found


def measure(study, chosen, console, write):
    """Run a study, one size after the other, and return its rows."""
    rows, ended = [], set()
    sizes = chosen.points if study == "points" else chosen.kernels
    for size in sizes:
        n, m = (size, FIXED[study]) if study == "points" else (FIXED[study], size)
        for curve, p in curves(study, chosen.norms):
            if (curve, p) in ended:
                continue
            with console.status(f"{curve}, p = {p}, n = {n}, M = {m}"):
                found = run(curve, n, m, p, chosen)
            if found is None:
                ended.add((curve, p))
                continue
            if found.get("capped") or "seconds" not in found:
                ended.add((curve, p))
            rows.append({"study": study, "curve": curve, "p": p, "n": n, "m": m} | found)
            write(rows)
    return rows


def slope(rows, size):
    """Return the slope of log seconds over log size on the finished runs, or None below two of them."""
    done = [row for row in rows if "seconds" in row and not row.get("capped")]
    if len(done) < 2:
        return None
    return float(
        np.polyfit(np.log([row[size] for row in done]), np.log([row["seconds"] for row in done]), 1)[0]
    )


def of_curve(rows, curve, p):
    """Return the rows of one curve that have a time."""
    return [row for row in rows if (row["curve"], row["p"]) == (curve, p) and "seconds" in row]


def label(curve, p, steepness):
    """Return the name of a curve with its slope."""
    name = curve if p is None else f"{curve}, p = {p:.3g}"
    return name if steepness is None else f"{name}: slope {steepness:.2f}"


def show(console, study, rows):
    """Print the table of a study and the slopes."""
    size = "n" if study == "points" else "m"
    table = Table(title=f"growth with the {study}, gap {GAP:.0e}")
    for column in (
        "n",
        "M",
        "curve",
        "p",
        "seconds",
        "loop / ours",
        "gap",
        "solves",
        "passes",
        "MB",
        "provider",
    ):
        table.add_column(column, justify="left" if column in ("curve", "provider") else "right")
    loops = {(row["n"], row["m"], row["p"]): row for row in rows if row["curve"] == LOOP}
    for row in rows:
        loop = loops.get((row["n"], row["m"], row["p"]))
        ratio = "-"
        if row["curve"].startswith("newton") and loop and "seconds" in row and "seconds" in loop:
            ratio = f"{'>=' if loop['capped'] else ''}{loop['seconds'] / row['seconds']:.3g}x"
        figures = [
            "-" if row.get(name) is None else format(row[name], form)
            for name, form in (("gap", ".0e"), ("solves", "d"), ("passes", ".2f"), ("peak MB", ".0f"))
        ]
        seconds = f"{'>' if row.get('capped') else ''}{row['seconds']:.3g}" if "seconds" in row else "-"
        last = row.get("provider") or row.get("note") or ""
        norm = "-" if row["p"] is None else f"{row['p']:.3g}"
        table.add_row(str(row["n"]), str(row["m"]), row["curve"], norm, seconds, ratio, *figures, last)
    console.print(table)
    for curve, p in dict.fromkeys((row["curve"], row["p"]) for row in rows):
        found = slope(of_curve(rows, curve, p), size)
        if found is not None:
            console.print(f"  {label(curve, p, found)}")


def draw(rows, path):
    """Draw seconds over the size of each study, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    studies = list(dict.fromkeys(row["study"] for row in rows))
    figure, axes = plt.subplots(
        1, len(studies), figsize=(5.6 * len(studies), 5.4), squeeze=False, layout="constrained"
    )
    for ax, study in zip(axes[0], studies, strict=True):
        size, mine = ("n" if study == "points" else "m"), [row for row in rows if row["study"] == study]
        norms = sorted({row["p"] for row in mine if row["p"] is not None})
        for curve, p in dict.fromkeys((row["curve"], row["p"]) for row in mine):
            found = of_curve(mine, curve, p)
            if not found:
                continue
            line, marker = STYLES[curve]
            color = "#555555" if p is None else COLORS[norms.index(p) % len(COLORS)]
            x, t = [row[size] for row in found], [row["seconds"] for row in found]
            name = label(curve, p, slope(found, size))
            ax.plot(x, t, line, marker=marker, color=color, markersize=5, linewidth=1.4, label=name)
            for row in found:
                if row.get("capped"):
                    ax.annotate(
                        "",
                        (row[size], row["seconds"] * 1.6),
                        (row[size], row["seconds"]),
                        arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.4},
                    )
                    ax.update_datalim([(row[size], row["seconds"] * 2)])  # an arrow outside is not drawn
        ax.set(xscale="log", yscale="log", ylabel="processor seconds")
        what = "M = 50 kernels" if study == "points" else "n = 1000 points"
        ax.set_xlabel("number of points n" if study == "points" else "number of kernels M")
        ax.set_title(f"{what}, gap {GAP:.0e}", fontsize=10)
        ticks = sorted({row[size] for row in mine})
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45 if len(ticks) > 5 else 0)
        ax.autoscale_view()
        ax.minorticks_off()
        ax.grid(which="major", color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
    figure.savefig(path, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", nargs="*", choices=("points", "kernels"), default=("points", "kernels"))
    parser.add_argument("--points", nargs="*", type=int)
    parser.add_argument("--kernels", nargs="*", type=int, default=KERNELS)
    parser.add_argument("--norms", nargs="*", type=float, default=(1.0, 2.0))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a run may take")
    parser.add_argument("--memory", type=float, default=2.5, help="GB that the matrices may take")
    parser.add_argument("--data", type=Path, help="folder with load.py and mnist")
    parser.add_argument("--output", type=Path, default=Path("growth.json"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--draw", type=Path, nargs="+", help="show the rows of these files, run nothing")
    chosen = parser.parse_args()
    chosen.points = chosen.points or (POINTS if chosen.data is None else MNIST_POINTS)
    console, rows = Console(width=150), []
    if chosen.draw:
        rows = [row for path in chosen.draw for row in json.loads(path.read_text())]
        chosen.study = list(dict.fromkeys(row["study"] for row in rows))
    else:
        for study in chosen.study:
            before = list(rows)

            def write(found, before=before):
                chosen.output.write_text(json.dumps(before + found, indent=1))

            rows += measure(study, chosen, console, write)
    for study in chosen.study:
        show(console, study, [row for row in rows if row["study"] == study])
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
