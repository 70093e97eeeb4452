"""The tables and figures of `kloft.py`, from its finished cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import Cell, Table, column, gap_of, text_of, where

TOY_P = (1.0, 4 / 3, 2.0, 4.0, np.inf)
VIEW_P = (1.0, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, np.inf)
TIMED_P = (1.0, 4 / 3, 2.0)
D = 50  # dimensions of the controlled experiment
BAYES = 4.0  # its error in %, 100 Phi(-1.75)
PRECISION = 1e-3  # of the running times: the paper's gaps are about this


def title_of(p: float) -> str:
    return "∞" if np.isinf(p) else f"{p:.4g}"


STYLES = {  # of the curves of running times
    "SVC": {"color": "black", "marker": "o"},
    **{
        f"{before}p = {title_of(p)}": {"color": f"C{k}", "marker": marker, "linestyle": line}
        for before, line in (("", "-"), ("loop, ", "--"))
        for k, (p, marker) in enumerate(zip(TIMED_P, "sD^", strict=True))
    },
}


def summary(finished: list[Cell]) -> tuple[list[Table], dict[str, str]]:
    tables, figures = [], {}
    toys = where(finished, experiment="toy")
    for n in dict.fromkeys(c["n"] for c in toys):
        own = where(toys, n=n)
        tables += [toy_table(own, n, "error"), toy_table(own, n, "weights")]
        figures[f"Figure 1, n = {n}"] = best_norms(own)
    several = where(finished, experiment="views")
    if several:
        rows = [
            [name, *(text_of(1 - column(own, f"mcc {title_of(p)}"), 2, 100) for p in VIEW_P), gap_of(own)]
            for name in dict.fromkeys(c["set"] for c in several)
            for own in [where(several, set=name)]
        ]
        head = ["1 - MCC in %", *(f"p = {title_of(p)}" for p in VIEW_P), "largest gap"]
        tables.append({"title": "The protocol of Table 1", "head": head, "rows": rows})
        best = [
            min(zip(row[1:-1], head[1:-1], strict=True), key=lambda x: float(x[0].split()[0])) for row in rows
        ]
        parts = [f"{row[0]} best at {which} ({text})" for row, (text, which) in zip(rows, best, strict=True)]
        figures["Table 1"] = "1 - MCC in %: " + ", ".join(parts)
    sizes = where(finished, experiment="scaling")
    if sizes:
        tables.append(scaling_table(sizes))
        largest = max(sizes, key=lambda c: c["n"] * c["M"])
        own = where(sizes, n=largest["n"], M=largest["M"])
        loops = [
            f"{column(own, f'loop, p = {title_of(p)}').mean() / column(own, f'p = {title_of(p)}').mean():.1f}"
            f" times as long at p = {title_of(p)}"
            + (f", without a gap of {PRECISION:g}" if short_of(own, p) else "")
            for p in TIMED_P
        ]
        figures["Figure 5"] = (
            f"at n = {largest['n']} and M = {largest['M']} one SVC takes {column(own, 'SVC').mean():.2g} s, "
            f"l1-MKL {column(own, 'p = 1').mean():.2g} s, and the loop of SVCs {'; '.join(loops)}"
        )
    return tables, figures


def toy_table(own: list[Cell], n: int, what: str) -> Table:
    title = {"error": "test errors in %", "weights": "errors of the weights"}[what]
    factor, digits = (100, 2) if what == "error" else (1, 3)
    rows = []
    for ones in dict.fromkeys(c["ones"] for c in own):
        chosen = where(own, ones=ones)
        values = [text_of(column(chosen, f"{what} {title_of(p)}"), digits, factor) for p in TOY_P]
        rows.append([f"{100 - 100 * ones // D} %", *values, len(chosen), gap_of(chosen)])
    head = ["noise kernels", *(f"p = {title_of(p)}" for p in TOY_P), "repetitions", "largest gap"]
    return {"title": f"Figure 1, n = {n}: {title}", "head": head, "rows": rows}


def best_norms(own: list[Cell]) -> str:
    parts = []
    for ones in dict.fromkeys(c["ones"] for c in own):
        errors = {p: column(where(own, ones=ones), f"error {title_of(p)}").mean() for p in TOY_P}
        best = min(errors, key=errors.get)
        parts.append(f"{100 - 100 * ones // D} %: p = {title_of(best)} ({100 * errors[best]:.1f} %)")
    return "best norm (test error) by noise kernels: " + ", ".join(parts)


def short_of(own: list[Cell], p: float) -> bool:
    """Return whether a loop of SVCs ended above the precision."""
    return bool(column(own, f"loop gap, p = {title_of(p)}").max() > PRECISION)


def scaling_table(own: list[Cell]) -> Table:
    titles = ["SVC"]
    for p in TIMED_P:
        titles += [f"p = {title_of(p)}", f"loop, p = {title_of(p)}"]
    rows = []
    for n, M in dict.fromkeys((c["n"], c["M"]) for c in own):
        chosen = where(own, n=n, M=M)
        short = [p for p in TIMED_P if short_of(chosen, p)]
        rows.append(
            [
                *(n, M, *(text_of(column(chosen, title), 2) for title in titles), gap_of(chosen)),
                ", ".join(f"p = {title_of(p)}" for p in short) or "none",
            ]
        )
    head = ["n", "M", *titles, "largest gap", "loops that end above it"]
    return {"title": "Figure 5: seconds of the processor", "head": head, "rows": rows}


def draw_norms(finished: list[Cell], figure: Any) -> None:
    """Draw Figure 1: errors of tests and of weights against the share of noise kernels, a row a size."""
    toys = where(finished, experiment="toy")
    sizes = list(dict.fromkeys(c["n"] for c in toys))
    figure.set_size_inches(7.5, 3.5 * len(sizes))
    for row, n in zip(figure.subplots(len(sizes), 2, sharex=True, squeeze=False), sizes, strict=True):
        own = where(toys, n=n)
        ones = list(dict.fromkeys(c["ones"] for c in own))
        for axes, what, factor in zip(row, ("error", "weights"), (100, 1), strict=True):
            for p, marker in zip(TOY_P, "osD^v", strict=True):
                values = [factor * column(where(own, ones=k), f"{what} {title_of(p)}") for k in ones]
                errors = [v.std(ddof=min(1, v.size - 1)) / np.sqrt(v.size) for v in values]
                shares = [100 - 100 * k / D for k in ones]
                means = [v.mean() for v in values]
                axes.errorbar(shares, means, errors, marker=marker, markersize=4, label=f"p = {title_of(p)}")
            axes.set_title(f"n = {n}")
            axes.spines[["top", "right"]].set_visible(False)
        row[0].axhline(BAYES, color="0.5", linestyle=":", label="error of Bayes")
        row[0].set_ylabel("test error, %")
        row[1].set_ylabel("error of the weights")
    for axes in row:
        axes.set_xlabel("noise kernels, %")
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)


def draw_times(finished: list[Cell], figure: Any) -> None:
    """Draw Figure 5: seconds against the number of points and of kernels, on logarithmic scales."""
    sizes = where(finished, experiment="scaling")
    figure.set_size_inches(7.5, 4.5)
    panels = (("n", "points n (M = 50)", "M", 50), ("M", "kernels M (n = 1000)", "n", 1000))
    for axes, (key, title, fixed, value) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
        own = where(sizes, **{fixed: value}) or sizes
        places = sorted({c[key] for c in own})
        for name, style in STYLES.items():
            values = [column(where(own, **{key: place}), name) for place in places]
            errors = [v.std(ddof=min(1, v.size - 1)) / np.sqrt(v.size) for v in values]
            axes.errorbar(places, [v.mean() for v in values], errors, markersize=4, label=name, **style)
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.set_xticks(places, places)
        axes.minorticks_off()
        axes.grid(visible=True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("seconds of the processor")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
