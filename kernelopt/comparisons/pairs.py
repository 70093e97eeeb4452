"""Comparisons as a directed graph on pairs of points, with their contradictions and redundancies."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from kernelopt.comparisons.digraphs import Arc, feedback_arcs, implied_arcs, shortest_cycle
from kernelopt.comparisons.triplets import Triplets, as_triplets
from kernelopt.errors import ParameterError
from kernelopt.validation import as_list, is_real, shown

if TYPE_CHECKING:
    import networkx as nx

Rows: TypeAlias = tuple[int, ...]

ROWS_OF_A_REPORT = 6  # rows that a printed report lists at most


def comparisons(triplets: ArrayLike, n_points: int | None = None) -> Comparisons:
    """The relative comparisons "i is more similar to j than to k", after validation.

    Parameters
    ----------
    triplets : integer array of shape (T, 3), rows (i, j, k) of different points
        Point i is more similar to point j than to point k.
    n_points : int, optional
        Indices must be smaller.

    Returns
    -------
    Comparisons
        Its attributes are computed when they are first read.

    Examples
    --------
    >>> from kernelopt.comparisons import comparisons
    >>> print(comparisons([[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [3, 4, 5]]))
    5 triplets on 5 pairs of 6 points, in 2 parts
    1 group of pairs with contradictions; a shortest: 0 is closer to 1 than to 2 (row 0), 1 is closer to 2 \
than to 0 (row 1), 2 is closer to 0 than to 1 (row 2)
    1 triplet whose removal leaves no contradiction: row 2
    1 redundant triplet
    """
    rows = as_triplets(triplets, n_points)
    rows.flags.writeable = False
    return Comparisons(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    r"""Comparisons and their graph; made by `comparisons`.

    A symmetric similarity s respects (i, j, k) if :math:`s_{ij} > s_{ik}`. A triplet is therefore an arc
    :math:`\{i, k\} \to \{i, j\}`, **from the less similar pair to the more similar one**. Some s respects all
    triplets if and only if the graph has no cycle: take for s the positions of the pairs in a topological
    order.

    Attributes
    ----------
    triplets : integer array of shape (T, 3), read-only

    Notes
    -----
    Without duplicates, at most one triplet joins two pairs in each direction. With P pairs and T
    triplets, `redundant` and `feedback` need up to P^2 / 2 and P^2 bits of memory, where P counts the pairs
    of the largest part, and of the largest group of pairs with contradictions. T = 20 000 takes about a
    second, and a few seconds if all cycles are long; `consistent` takes linear time. The results depend on
    the order of the triplets only in the choice among duplicates or equivalent triplets, where the first row
    is taken.

    Without contradictions a positive definite kernel that respects all triplets exists: a unit diagonal, with
    small multiples of s elsewhere.
    """

    triplets: Triplets

    def __repr__(self) -> str:
        return f"Comparisons({len(self.triplets)} triplets)"

    def __str__(self) -> str:
        nodes = self.graph.number_of_nodes()
        points = len({point for pair in self.graph for point in pair})
        lines = [
            f"{_count(len(self.triplets), 'triplet')} on {_count(nodes, 'pair')} of {points} points, "
            f"in {_count(len(self.parts), 'part')}"
        ]
        if self.consistent:
            lines.append("no contradiction")
        else:
            cycle, removed = self.contradictions[0], self.feedback
            lines.append(
                f"{_count(len(self.contradictions), 'group')} of pairs with contradictions; a shortest: "
                f"{self.describe(cycle[:ROWS_OF_A_REPORT])}"
                + (f" ... ({len(cycle)} rows)" if len(cycle) > ROWS_OF_A_REPORT else "")
            )
            rows = ", ".join(map(str, removed[:ROWS_OF_A_REPORT]))
            lines.append(
                f"{_count(len(removed), 'triplet')} whose removal leaves no contradiction: "
                f"row{'s' * (len(removed) > 1)} {rows}" + ", ..." * (len(removed) > ROWS_OF_A_REPORT)
            )
        lines.append(_count(len(self.redundant), "redundant triplet"))
        return "\n".join(lines)

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The graph: nodes are pairs (a, b) with a < b, in order; an arc leads to the more similar pair.

        The attribute "triplets" of an arc is the tuple of its rows, and "weight" is their number. The graph
        is frozen; `nx.DiGraph(graph)` is a copy that can be changed.
        """
        import networkx as nx  # here, since importing kernelopt should be quick

        rows: dict[Arc, list[int]] = {}
        for row, (i, j, k) in enumerate(self.triplets.tolist()):
            less, more = (min(i, k), max(i, k)), (min(i, j), max(i, j))
            rows.setdefault((less, more), []).append(row)
        graph = nx.DiGraph()
        graph.add_nodes_from(sorted({pair for arc in rows for pair in arc}))
        graph.add_edges_from(
            (*arc, {"triplets": tuple(rows[arc]), "weight": len(rows[arc])}) for arc in sorted(rows)
        )
        return nx.freeze(graph)

    @cached_property
    def consistent(self) -> bool:
        """Whether some symmetric similarity respects all triplets: the graph has no cycle."""
        # Without `graph`, whose objects take a hundred times as long for many triplets.
        points, places = np.unique(self.triplets, return_inverse=True)
        i, j, k = places.reshape(-1, 3).T
        ends = [np.minimum(i, other) * points.size + np.maximum(i, other) for other in (k, j)]
        pairs, nodes = np.unique(np.concatenate(ends), return_inverse=True)
        arcs = (nodes[: i.size], nodes[i.size :])
        graph = sp.coo_array((np.ones(i.size), arcs), shape=(pairs.size, pairs.size))
        components, _ = connected_components(graph, directed=True, connection="strong")
        return bool(components == pairs.size)  # a cycle joins several pairs, since no arc is a loop

    @cached_property
    def contradictions(self) -> tuple[Rows, ...]:
        """One shortest cycle of rows per group of pairs with contradictions, the shortest first.

        A group is a strongly connected component of the graph with more than one pair. A cycle lists its
        rows in the order of the arcs, starting with the smallest row: the more similar pair of each row is
        the less similar pair of the next. Of duplicates the first is listed. Cycles of two rows, (i, j, k)
        and (i, k, j), have one anchor. Longer ones have several anchors, such as (0, 1, 2), (1, 2, 0), (2,
        0, 1).
        """
        cycles = []
        for group, removed in self._groups:
            nodes = shortest_cycle(group, sorted({v for _, v in removed}))
            steps = zip(nodes, [*nodes[1:], nodes[0]], strict=True)
            rows = [self.graph.edges[arc]["triplets"][0] for arc in steps]
            first = rows.index(min(rows))
            cycles.append(tuple(rows[first:] + rows[:first]))
        return tuple(sorted(cycles, key=lambda cycle: (len(cycle), cycle)))

    @cached_property
    def feedback(self) -> Rows:
        """Rows of a small set of triplets without which there is no contradiction.

        The set is minimal: putting any one member back makes a contradiction. A smallest set is NP-hard to
        find. The heuristic of Eades, Lin and Smyth (1993) is applied to each group of pairs with
        contradictions, and triplets that can be put back are removed from its result. Duplicates are all in
        the set, or all outside it.
        """
        arcs = [arc for _, removed in self._groups for arc in removed]
        return tuple(sorted(row for arc in arcs for row in self.graph.edges[arc]["triplets"]))

    @cached_property
    def redundant(self) -> Rows:
        """Rows of triplets that follow from the others; all of them can be dropped together.

        Without contradictions they are the duplicates of earlier rows, and the arcs outside the transitive
        reduction of the graph. No remaining triplet follows from the other remaining ones. With
        contradictions, each group of pairs with contradictions is contracted to one node, and the same rule
        is applied to the triplets between groups. Of several triplets that join the same two groups the
        first is kept. Inside a group only duplicates are listed. Dropping the rows does not change which
        comparisons of two pairs the triplets imply.
        """
        import networkx as nx

        merged = nx.condensation(self.graph)
        group = merged.graph["mapping"]
        between: dict[tuple[int, int], list[int]] = {}
        redundant: list[int] = []
        for less, more, rows in self.graph.edges(data="triplets"):
            if group[less] == group[more]:
                redundant += rows[1:]
            else:
                between.setdefault((group[less], group[more]), []).extend(rows)
        implied = implied_arcs(merged)
        for arc, rows in between.items():
            redundant += rows if arc in implied else sorted(rows)[1:]
        return tuple(sorted(redundant))

    @cached_property
    def parts(self) -> tuple[Rows, ...]:
        """Rows by weakly connected component of the graph, the largest first. Parts share no pair."""
        import networkx as nx

        part = {
            pair: p for p, pairs in enumerate(nx.weakly_connected_components(self.graph)) for pair in pairs
        }
        rows: dict[int, list[int]] = {}
        for less, _, at in self.graph.edges(data="triplets"):
            rows.setdefault(part[less], []).extend(at)
        return tuple(sorted((tuple(sorted(at)) for at in rows.values()), key=lambda at: (-len(at), at)))

    def describe(self, cycle: Sequence[int]) -> str:
        """Return some rows as text, such as one of `contradictions`.

        Examples
        --------
        >>> from kernelopt.comparisons import comparisons
        >>> compared = comparisons([[0, 1, 2], [0, 2, 1]])
        >>> compared.describe(compared.contradictions[0])
        '0 is closer to 1 than to 2 (row 0), 0 is closer to 2 than to 1 (row 1)'
        """
        sentences: list[str] = []
        wanted = f"row numbers in 0..{len(self.triplets) - 1}, such as any rows of the triplets"
        for row in as_list(cycle, "cycle", wanted):
            integral = is_real(row) and isinstance(row, numbers.Integral)
            if not integral or not 0 <= int(row) < len(self.triplets):
                raise ParameterError(
                    f"cycle must hold row numbers in 0..{len(self.triplets) - 1}, got {shown(row)}. "
                    "Pass a member of `contradictions`, or any rows of the triplets."
                )
            i, j, k = self.triplets[row].tolist()
            sentences.append(f"{i} is closer to {j} than to {k} (row {row})")
        return ", ".join(sentences)

    @cached_property
    def _groups(self) -> list[tuple[nx.DiGraph, list[Arc]]]:
        """The strongly connected components with more than one pair, each with its feedback arcs."""
        import networkx as nx

        several = (pairs for pairs in nx.strongly_connected_components(self.graph) if len(pairs) > 1)
        groups = [nx.DiGraph(self.graph.subgraph(pairs)) for pairs in several]
        return [(group, feedback_arcs(group)) for group in groups]


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
