"""The tables and figures of `lanckriet.py`, from its finished cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import Cell, Table, column, text_of, where

TABLES = {
    "Table 1": ("breast_original", "ionosphere"),
    "Table 2": ("heart_statlog", "sonar"),
    "Table 3": ("twonorm",),
}
CRITERIA = ("HM", "SM1", "SM2")
MANY = (0.01, 0.1, 1.0, 10.0, 100.0)  # sigma of the five Gaussians, recalled
LARGE_C = 1e6  # a learned tau = 1/C below this is zero up to the tolerance
VIEWS = ("bbc", "guardian")


def summary(finished: list[Cell]) -> tuple[list[Table], dict[str, str]]:
    tables, figures = [], {}
    own = where(finished, experiment="benchmark")
    for title, names in TABLES.items() if "wine" not in {c["set"] for c in own} else [("Table 1", ("wine",))]:
        chosen = [c for c in own if c["set"] in names]
        if chosen:
            tables.append(benchmark_table(title, names, chosen))
            figures[title] = order_text(chosen)
    many = where(finished, experiment="gaussians")
    if many:
        tables.append(gaussians_table(many))
        figures["Table 4"] = rival_text(many)
    text = where(finished, experiment="text")
    if text:
        tables.append(text_table(text))
        figures["Figure 1"] = "accuracy of both text kernels minus the better one's, in %: " + ", ".join(
            combined(text, topic) for topic in topics_of(text)
        )
    return tables, figures


def benchmark_table(title: str, names: tuple[str, ...], own: list[Cell]) -> Table:
    rows = []
    for name in [name for name in names if where(own, set=name)]:
        chosen = where(own, set=name)
        for criterion in (*CRITERIA, "SM2,C"):
            for kind in ("K1", "K2", "K3", "free", ">= 0"):
                key = f"{criterion} {kind}"
                if any(f"{key} cost" in cell for cell in chosen):
                    rows.append([name, criterion, kind, *numbers(key, chosen)])
        rows.append([name, "RBF SVM", "", "", text_of(column(chosen, "RBF"), 1, 100), "", "", ""])
    head = [
        "data set",
        "criterion",
        "kernel",
        "γ (HM) or ω",
        "test accuracy, %",
        "weights",
        "C",
        "largest gap",
    ]
    return {"title": title, "head": head, "rows": rows}


def numbers(key: str, chosen: list[Cell]) -> list[str]:
    """Return the cells of a row: the margin or the cost, the accuracy, the weights, C and the gap."""
    cost = column(chosen, f"{key} cost")
    cost = cost**-0.5 if key.startswith("HM") else cost
    weights = [cell[f"{key} weights"] for cell in chosen if cell.get(f"{key} weights")]
    C = np.array([np.inf if cell.get("C") is None else cell["C"] for cell in chosen])
    gaps = column(chosen, f"{key} gap")
    return [
        text_of(cost, 4 if key.startswith("HM") else 2),
        text_of(column(chosen, f"{key} accuracy"), 1, 100),
        " / ".join(f"{w:.2f}" for w in np.mean(weights, axis=0)) if len(weights) else "",
        (f"{np.median(C):.2g}" if np.median(C) < LARGE_C else "∞") if key.startswith("SM2,C") else "",
        f"{gaps.max():.0e}" if gaps.size else "–",
    ]


def order_text(own: list[Cell]) -> str:
    """Return in how many runs the theorems hold, the gain of free signs, and the distance to the rival."""
    ordered = sum(cell["ordered"] for cell in own)
    parts = [f"costs in the order of the theorems in {ordered} of {len(own)} runs"]
    for name in dict.fromkeys(cell["set"] for cell in own):
        chosen = where(own, set=name)
        saved = 1 - column(chosen, "SM1 free cost") / column(chosen, "SM1 >= 0 cost")
        parts.append(
            f"{name}: SDP's cost (SM1) {text_of(saved, 1, 100)} % below the QCQP's, accuracy of SM2,C "
            f"minus the RBF SVM's {text_of(ahead(chosen), 1, 100)} %"
        )
    return "; ".join(parts)


def ahead(own: list[Cell]) -> np.ndarray:
    """Return the accuracy of SM2 with a learned C minus the rival's, on each partition."""
    return column(own, "SM2,C >= 0 accuracy") - column(own, "RBF")


def rival_text(own: list[Cell]) -> str:
    parts = [
        f"{name} {text_of(ahead(where(own, set=name)), 1, 100)}"
        for name in dict.fromkeys(c["set"] for c in own)
    ]
    return "accuracy of SM2,C minus the RBF SVM's, in %: " + ", ".join(parts)


def combined(own: list[Cell], topic: str) -> str:
    """Return the accuracy of both text kernels minus the better one's, on the partitions that have both."""
    single = max((column(own, f"{topic} {key} accuracy") for key in ("K1", "K2")), key=np.mean)
    return f"{topic} {text_of(column(own, f'{topic} both accuracy') - single, 1, 100)}"


def gaussians_table(own: list[Cell]) -> Table:
    rows = []
    for name in dict.fromkeys(cell["set"] for cell in own):
        chosen = where(own, set=name)
        row = numbers("SM2,C >= 0", chosen)
        weights = row[2].split(" / ")
        rows.append([name, *weights, row[3], row[1], text_of(column(chosen, "RBF"), 1, 100), row[4]])
    head = [
        "data set",
        *(f"σ = {s:g}" for s in MANY),
        "median C",
        "SM2,C accuracy, %",
        "RBF SVM, %",
        "largest gap",
    ]
    return {"title": "Table 4", "head": head, "rows": rows}


def topics_of(own: list[Cell]) -> list[str]:
    return sorted(
        {key.removesuffix(" both accuracy") for cell in own for key in cell if "both accuracy" in key}
    )


def text_table(own: list[Cell]) -> Table:
    rows = [
        [
            *(topic, *(text_of(column(own, f"{topic} {k} accuracy"), 1, 100) for k in ("K1", "K2", "both"))),
            *(numbers(f"{topic} both", own)[2], f"{column(own, f'{topic} both gap').max():.0e}"),
        ]
        for topic in topics_of(own)
    ]
    head = ["", *VIEWS, "both", "weights", "largest gap"]
    return {"title": "Text, in place of Reuters: test accuracy in %", "head": head, "rows": rows}


def draw(finished: list[Cell], figure: Any) -> None:
    """Draw the bars of the two text kernels and their combination, as errors, with standard errors."""
    own = where(finished, experiment="text")
    figure.set_size_inches(7.5, 4)
    axes, topics = figure.subplots(), topics_of(own)
    bars = {"K1": (VIEWS[0], "black"), "K2": (VIEWS[1], "0.6"), "both": ("combination", "white")}
    for k, (key, (title, color)) in enumerate(bars.items()):
        values = [100 * (1 - column(own, f"{topic} {key} accuracy")) for topic in topics]
        errors = [v.std(ddof=min(1, v.size - 1)) / np.sqrt(v.size) for v in values]
        places, means = np.arange(len(topics)) + (k - 1) / 4, [v.mean() for v in values]
        axes.bar(places, means, 0.25, yerr=errors, label=title, color=color, edgecolor="black", ecolor="C1")
    axes.set_xticks(np.arange(len(topics)), topics)
    axes.set_ylabel("test error, %")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
