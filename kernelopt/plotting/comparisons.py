"""`plot_comparisons`: the graph of relative comparisons, with its contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.comparisons import Comparisons, comparisons
from kernelopt.errors import InputError
from kernelopt.figures import new_axes, shortened_name
from kernelopt.validation import as_list

MOST_PAIRS = 60  # whose labels on a circle do not touch each other in a figure of the default size
LONGEST = 12  # characters of the name of a point
FONT, CHARACTER = 8, 5.0  # points: the size of the labels, and the width of one of their characters
LABEL_AT = 7  # points outside the circle
LARGEST_SHARE = 0.35  # of the side, for one label
ARC_BEND = 0.1  # so that two arcs between the same pairs are two curves
SIZE = (6.4, 6.4)  # inches of a new figure
ARCS: dict[str, dict[str, Any]] = {
    "to the more similar pair": {"edge_color": "0.55", "width": 0.9, "style": "-"},
    "in a contradiction": {"edge_color": "#08306b", "width": 1.8, "style": "-"},
    "without these there is none": {"edge_color": "#d55e00", "width": 2.4, "style": "--"},
}
"""How arcs look: those outside contradictions, those in one, and those of `feedback`."""


def plot_comparisons(
    compared: Comparisons | ArrayLike, names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw the pairs of points that are compared, with an arc from the less similar pair to the more similar.

    The pairs stand on a circle, clockwise from the top, in an order in which arcs lead forward. Where the
    triplets contradict each other no such order exists: the arcs of all cycles are dark, and those of
    `feedback`, a small set without which there is no contradiction, are dashed. The pairs in contradictions
    are squares. Parts of the graph that share no pair stand side by side with a gap between them.

    Parameters
    ----------
    compared : Comparisons, or integer array of shape (T, 3)
        The result of `kernelopt.comparisons(triplets)`, or the triplets. At most 60 pairs of points.
    names : sequence of N str, optional
        Names of the points; by default their numbers.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If there are more pairs, fewer names than points, or the triplets are wrong.
    """
    compared = compared if isinstance(compared, Comparisons) else comparisons(compared)
    graph = compared.graph
    if len(graph) > MOST_PAIRS:
        raise InputError(
            f"plot_comparisons draws at most {MOST_PAIRS} pairs of points, got {len(graph)} pairs in "
            f"{len(compared.triplets)} triplets. Draw some of the triplets, such as "
            "triplets[list(compared.parts[-1])] of the smallest part, or "
            "triplets[list(compared.contradictions[0])] of a shortest contradiction."
        )
    points = int(compared.triplets.max()) + 1
    listed = list(range(points)) if names is None else as_list(names, "names", "one name per point")
    if len(listed) < points:
        raise InputError(
            f"names must be one name per point (at least {points}), got {len(listed)} names in "
            "plot_comparisons. Pass the names of all points in their order."
        )
    import networkx as nx

    ax = new_axes(ax, SIZE)
    angles = angles_of(compared)
    position = {pair: np.array([np.cos(a), np.sin(a)]) for pair, a in angles.items()}
    group = groups_of(compared)
    removed = set(compared.feedback)
    kinds: dict[str, list[Any]] = {kind: [] for kind in ARCS}
    for less, more, rows in graph.edges(data="triplets"):
        inside = group[less] is not None and group[less] == group[more]
        kinds[list(ARCS)[inside + (rows[0] in removed)]].append((less, more))
    bend = {"arrowsize": 9, "node_size": 45, "connectionstyle": f"arc3,rad={ARC_BEND}"}
    for kind, arcs in kinds.items():
        if arcs:
            nx.draw_networkx_edges(graph, position, edgelist=arcs, ax=ax, **ARCS[kind], **bend)
            look = {"color": ARCS[kind]["edge_color"], "linestyle": ARCS[kind]["style"]}
            ax.plot([], [], linewidth=ARCS[kind]["width"], label=kind, **look)
    for marker, ink, pairs in (
        ("o", "white", [pair for pair in graph if group[pair] is None]),
        ("s", "#08306b", [pair for pair in graph if group[pair] is not None]),
    ):
        ax.plot(*np.array([position[pair] for pair in pairs]).reshape(-1, 2).T, marker, markersize=6,
                markerfacecolor=ink, markeredgecolor="black", zorder=3)  # fmt: skip
    texts = {pair: "–".join(shortened_name(listed[point], LONGEST) for point in pair) for pair in graph}
    draw_labels(ax, texts, angles)
    clashes = len(compared.contradictions)
    ax.set_title(
        f"Comparisons of {len(graph)} pairs, "
        + (f"{clashes} group{'s' * (clashes > 1)} with contradictions" if clashes else "no contradiction")
    )
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False)
    return ax


def groups_of(compared: Comparisons) -> dict[Any, int | None]:
    """Return the number of each pair's group with contradictions, None for pairs outside of them."""
    import networkx as nx

    components = list(nx.strongly_connected_components(compared.graph))
    return {pair: g if len(pairs) > 1 else None for g, pairs in enumerate(components) for pair in pairs}


def angles_of(compared: Comparisons) -> dict[Any, float]:
    """Return the angle of each pair, clockwise from the top, part by part in a topological order."""
    import networkx as nx

    forward = nx.DiGraph(compared.graph)
    removed = set(compared.feedback)
    forward.remove_edges_from(
        [(u, v) for u, v, rows in compared.graph.edges(data="triplets") if rows[0] in removed]
    )
    parts = sorted(
        nx.weakly_connected_components(compared.graph), key=lambda pairs: (-len(pairs), min(pairs))
    )
    places: list[Any] = []
    for part in parts:
        places += [*nx.lexicographical_topological_sort(forward.subgraph(part)), None]
    if len(parts) == 1:
        places.pop()
    turn = 2 * np.pi / len(places)
    return {pair: np.pi / 2 - (k + 0.5) * turn for k, pair in enumerate(places) if pair is not None}


def draw_labels(ax: Any, texts: dict[Any, str], angles: dict[Any, float]) -> None:
    """Write the labels outside the circle, along its radii, and leave room for the longest one."""
    for pair, text in texts.items():
        a = angles[pair]
        leftwards = np.cos(a) < 0
        ax.annotate(
            text, (np.cos(a), np.sin(a)), xytext=(LABEL_AT * np.cos(a), LABEL_AT * np.sin(a)),
            textcoords="offset points", fontsize=FONT, va="center", ha="right" if leftwards else "left",
            rotation=np.degrees(a) + 180 * leftwards, rotation_mode="anchor", annotation_clip=False,
        )  # fmt: skip
    box = ax.get_window_extent()
    side = min(box.width, box.height) * 72 / ax.figure.dpi  # points
    longest = LABEL_AT + CHARACTER * max(map(len, texts.values()))
    reach = 1 / (1 - 2 * min(longest / side, LARGEST_SHARE))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
