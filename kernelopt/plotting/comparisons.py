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
LONGEST = 12  # characters of the name of a point, where there is room
FONT, CHARACTER = 8, 5.0  # points: the size of the labels, and the width of one of their characters
LABEL_AT = 7  # points outside the circle
SPACED = 1.25  # the distance of two labels on the circle over the font size
SMALLEST_RADIUS = 60.0  # points, so that arcs can be seen
SHORTEST = 4  # characters of the name of a point
LARGEST_SHARE = 0.35  # of the side, for one label
BENDS = (0.2, 0.2, 0.4)  # of the kinds of arcs: two arcs between the same pairs are two curves
SIZE = (6.4, 6.4)  # inches of a new figure
ARCS: dict[str, dict[str, Any]] = {
    "to the more similar pair": {"edge_color": "0.55", "width": 0.9, "style": "-"},
    "in a contradiction": {"edge_color": "#08306b", "width": 1.8, "style": "-"},
    "without these there is no contradiction": {"edge_color": "#d55e00", "width": 2.4, "style": "--"},
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
            f"names must be one name per point of the triplets (at least {points}), got {len(listed)} names "
            "in plot_comparisons. Pass the names of all points in their order."
        )
    ax = new_axes(ax, SIZE)
    angles, group = angles_of(compared), groups_of(compared)
    position = {pair: np.array([np.cos(a), np.sin(a)]) for pair, a in angles.items()}
    draw_arcs(ax, compared, angles, group)
    for marker, ink, pairs in (
        ("o", "white", [pair for pair in graph if group[pair] is None]),
        ("s", "#08306b", [pair for pair in graph if group[pair] is not None]),
    ):
        ax.plot(*np.array([position[pair] for pair in pairs]).reshape(-1, 2).T, marker, markersize=6,
                markerfacecolor=ink, markeredgecolor="black", zorder=3)  # fmt: skip
    draw_labels(ax, {pair: [str(listed[point]) for point in pair] for pair in graph}, angles)
    clashes = len(compared.contradictions)
    ax.set_title(
        f"Comparisons of {len(graph)} pairs, "
        + (f"{clashes} group{'s' * (clashes > 1)} with contradictions" if clashes else "no contradiction")
    )
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False)
    return ax


def draw_arcs(ax: Any, compared: Comparisons, angles: dict[Any, float], group: dict[Any, int | None]) -> None:
    """Draw the arcs of each kind in its look, all bent towards the centre, away from the other pairs."""
    import networkx as nx

    position = {pair: np.array([np.cos(a), np.sin(a)]) for pair, a in angles.items()}
    removed = set(compared.feedback)
    arcs: dict[tuple[str, int], list[Any]] = {(kind, sign): [] for kind in ARCS for sign in (1, -1)}
    for less, more, rows in compared.graph.edges(data="triplets"):
        inside = group[less] is not None and group[less] == group[more]
        clockwise = (angles[less] - angles[more]) % (2 * np.pi) < np.pi
        arcs[list(ARCS)[inside + (rows[0] in removed)], 1 if clockwise else -1].append((less, more))
    for (kind, look), bend in zip(ARCS.items(), BENDS, strict=True):
        for sign in (1, -1):
            style = f"arc3,rad={sign * bend}"
            if arcs[kind, sign]:
                nx.draw_networkx_edges(
                    compared.graph, position, edgelist=arcs[kind, sign], ax=ax, arrowsize=9, node_size=45,
                    connectionstyle=style, **look,
                )  # fmt: skip
        if arcs[kind, 1] or arcs[kind, -1]:
            legend = {"color": look["edge_color"], "linestyle": look["style"], "linewidth": look["width"]}
            ax.plot([], [], label=kind, **legend)


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


def draw_labels(ax: Any, names: dict[Any, list[str]], angles: dict[Any, float]) -> None:
    """Write the two names of each pair outside the circle, and set the limits of the axes.

    The names are cut so that the circle stays so large that neighbouring labels do not touch each other.
    """
    box = ax.get_window_extent()
    side = min(box.width, box.height) * 72 / ax.figure.dpi  # points
    radius = max(len(names) * FONT * SPACED / (2 * np.pi), SMALLEST_RADIUS)
    fitting = int(((side / 2 - radius - LABEL_AT) / CHARACTER - 1) / 2)  # characters of each of two names
    longest = min(max(fitting, SHORTEST), LONGEST)
    texts = {pair: "–".join(shortened_name(n, longest) for n in two) for pair, two in names.items()}
    for pair, text in texts.items():
        a = angles[pair]
        leftwards = np.cos(a) < 0
        ax.annotate(
            text, (np.cos(a), np.sin(a)), xytext=(LABEL_AT * np.cos(a), LABEL_AT * np.sin(a)),
            textcoords="offset points", fontsize=FONT, va="center", ha="right" if leftwards else "left",
            rotation=np.degrees(a) + 180 * leftwards, rotation_mode="anchor", annotation_clip=False,
        )  # fmt: skip
    room = LABEL_AT + CHARACTER * max(map(len, texts.values()))
    reach = 1 / (1 - 2 * min(room / side, LARGEST_SHARE))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
