"""`plot_comparisons`: the graph of relative comparisons, with its contradictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.comparisons import Comparisons, comparisons
from kernelopt.errors import InputError
from kernelopt.figures import STYLE, in_points, legend_below, new_axes, shortened_name, write_beside
from kernelopt.validation import Array, as_list

MOST_PAIRS = 60  # whose labels on a circle do not touch each other in a figure of the default size
# How arcs look, and how far they are bent: two arcs between the same pairs are two curves.
ARCS: dict[str, tuple[dict[str, Any], float]] = {
    "to the more similar pair": ({"edge_color": "0.55", "width": 0.9, "style": "-"}, 0.2),
    "in a contradiction": ({"edge_color": STYLE.dark, "width": 1.8, "style": "-"}, 0.2),
    "without these there is no contradiction": ({"edge_color": "#d55e00", "width": 2.4, "style": "--"}, 0.4),
}


def plot_comparisons(
    compared: Comparisons | ArrayLike, names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw the pairs of points that are compared, with an arc from the less similar pair to the more similar.

    The pairs stand on a circle, clockwise from the top, in an order in which arcs lead forward. Where the
    triplets contradict each other no such order exists: the arcs of all cycles are dark, and the arcs of
    `feedback`, a small set without which there is no contradiction, are dashed. The pairs in contradictions
    are squares. Parts of the graph that share no pair stand side by side with a gap between them.

    Parameters
    ----------
    compared : Comparisons, or integer array of shape (T, 3)
        The result of `kernelopt.comparisons(triplets)`, or the triplets. At most 60 pairs of points.
    names : sequence of N str, optional
        Names of the points; by default their numbers.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If there are more pairs, fewer names than points, or the triplets are wrong.

    Examples
    --------
    >>> import kernelopt as ko
    >>> ax = ko.plotting.plot_comparisons([[0, 1, 2], [1, 2, 0]])
    >>> ax.get_title()
    'Comparisons of 3 pairs, no contradiction'
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
    ax = new_axes(ax, (6.4, 6.4))
    angles = angles_of(compared)
    position = {pair: np.array([np.cos(a), np.sin(a)]) for pair, a in angles.items()}
    components = list(nx.strongly_connected_components(graph))
    group = {pair: g for g, pairs in enumerate(components) if len(pairs) > 1 for pair in pairs}
    draw_arcs(ax, compared, position, group)
    for marker, ink, inside in (("o", "white", False), ("s", STYLE.dark, True)):
        places = np.array([position[pair] for pair in graph if (pair in group) == inside]).reshape(-1, 2)
        ax.plot(*places.T, marker, markersize=6, mfc=ink, mec="black", zorder=3)
    draw_labels(ax, {pair: [listed[point] for point in pair] for pair in graph}, angles)
    clashes = len(compared.contradictions)
    found = f"{clashes} group{'s' * (clashes > 1)} with contradictions" if clashes else "no contradiction"
    ax.set_title(f"Comparisons of {len(graph)} pairs, {found}")
    legend_below(ax, 3)
    return ax


def draw_arcs(ax: Any, compared: Comparisons, position: dict[Any, Array], group: dict[Any, int]) -> None:
    """Draw the arcs of each kind in its look, all bent towards the centre, away from the other pairs."""
    removed, arcs = set(compared.feedback), defaultdict(list)
    for less, more, rows in compared.graph.edges(data="triplets"):
        (x, y), (u, v) = position[less], position[more]
        inside = less in group and group[less] == group.get(more)
        sign = 1 if u * y > v * x else -1  # clockwise or not
        arcs[list(ARCS)[inside + (rows[0] in removed)], sign].append((less, more))
    for kind, (look, bend) in ARCS.items():
        for sign in (1, -1):
            style = {"connectionstyle": f"arc3,rad={sign * bend}", "arrowsize": 9, "node_size": 45, **look}
            nx.draw_networkx_edges(compared.graph, position, arcs[kind, sign], ax=ax, **style)
        if arcs[kind, 1] or arcs[kind, -1]:
            legend = {"color": look["edge_color"], "linestyle": look["style"], "linewidth": look["width"]}
            ax.plot([], [], label=kind, **legend)


def angles_of(compared: Comparisons) -> dict[Any, float]:
    """Return the angle of each pair, clockwise from the top, part by part in a topological order."""
    graph, removed = compared.graph, set(compared.feedback)
    kept = [(u, v) for u, v, rows in graph.edges(data="triplets") if rows[0] not in removed]
    forward = nx.DiGraph(kept)
    forward.add_nodes_from(graph)
    parts = sorted(nx.weakly_connected_components(graph), key=lambda pairs: (-len(pairs), min(pairs)))
    places: list[Any] = []
    for part in parts:
        places += [*nx.lexicographical_topological_sort(forward.subgraph(part)), None]
    if len(parts) == 1:
        places.pop()
    turn = 2 * np.pi / len(places)
    return {pair: np.pi / 2 - (k + 0.5) * turn for k, pair in enumerate(places) if pair is not None}


def draw_labels(ax: Any, names: dict[Any, list[Any]], angles: dict[Any, float]) -> None:
    """Write the two names of each pair outside the circle, and set the limits of the axes."""
    texts = {pair: "–".join(shortened_name(name, 10) for name in two) for pair, two in names.items()}
    for pair, text in texts.items():
        angle = angles[pair]
        place = np.array([np.cos(angle), np.sin(angle)])
        left = place[0] < 0  # where a text along the radius ends at the circle
        turned = {"rotation": np.degrees(angle) + 180 * left, "ha": "right" if left else "left"}
        write_beside(ax, text, tuple(place), tuple(7 * place), rotation_mode="anchor", **turned)
    room = 7 + STYLE.character * STYLE.font * max(map(len, texts.values()))
    reach = 1 / (1 - 2 * min(room / min(in_points(ax)), 0.35))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
