"""Directed graphs: a small feedback arc set, a shortest cycle, and the arcs implied by other arcs."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import networkx as nx

Node: TypeAlias = tuple[int, int]
Arc: TypeAlias = tuple[Node, Node]


def feedback_order(graph: nx.DiGraph) -> list[Node]:
    """Return the nodes in an order with little weight on backward arcs.

    This is the heuristic of [1]_. Sources are placed at the left end and sinks at the right end. Where there
    is neither, the node with the largest outflow minus inflow is placed at the left end.

    References
    ----------
    .. [1] Eades, Lin, Smyth, "A fast and effective heuristic for the feedback arc set problem", Information
       Processing Letters 47 (1993).
    """
    outflow, inflow = dict(graph.out_degree(weight="weight")), dict(graph.in_degree(weight="weight"))

    def rank(u: Node) -> float:
        return inflow[u] - outflow[u] if inflow[u] and outflow[u] else -math.inf

    heap = [(rank(u), u) for u in graph]
    heapq.heapify(heap)
    left: list[Node] = []
    right: list[Node] = []
    alive = set(graph)
    while heap:
        key, u = heapq.heappop(heap)
        if u not in alive or key != rank(u):  # an outdated entry of the heap
            continue
        alive.remove(u)
        (left if outflow[u] else right).append(u)
        for neighbours, flow in ((graph.succ[u], inflow), (graph.pred[u], outflow)):
            for v in alive.intersection(neighbours):
                flow[v] -= neighbours[v]["weight"]
                heapq.heappush(heap, (rank(v), v))
    return left + right[::-1]


def feedback_arcs(graph: nx.DiGraph) -> list[Arc]:
    """Return a minimal feedback arc set of small weight: putting back any one of its arcs makes a cycle.

    It starts from the backward arcs of `feedback_order`. The arcs that close no cycle are put back, the
    heaviest first. The nodes that a node reaches by the remaining arcs are stored as the bits of an integer.
    """
    order = feedback_order(graph)
    position = {u: p for p, u in enumerate(order)}
    bit = {u: len(order) - 1 - p for u, p in position.items()}
    backward = [(u, v) for u, v in graph.edges if position[v] < position[u]]
    below = dict.fromkeys(order, 0)
    back = {u: [v for v in graph.pred[u] if position[v] < position[u]] for u in order}
    for v in reversed(order):
        for u in back[v]:
            below[u] |= below[v] | 1 << bit[v]
    needed = []
    for u, v in sorted(backward, key=lambda arc: (-graph.edges[arc]["weight"], arc)):
        if below[v] >> bit[u] & 1:
            needed.append((u, v))
            continue
        back[v].append(u)
        gained, above = below[v] | 1 << bit[v], [u]
        while above:
            w = above.pop()
            if not below[w] >> bit[v] & 1:  # otherwise w and all its ancestors reach v already
                below[w] |= gained
                above += back[w]
    return sorted(needed)


def shortest_cycle(graph: nx.DiGraph, through: Iterable[Node]) -> list[Node]:
    """Return the nodes of a shortest cycle through one of the given nodes, in the order of its arcs.

    A breadth-first search starts at each of these nodes, and is never deeper than the best cycle so far. If
    `through` holds the heads of a feedback arc set, the result is a shortest cycle of the graph.
    """
    best: list[Node] = []
    for start in through:
        parent = {start: start}
        level = [start]
        depth = 1
        while level and (not best or depth < len(best)):
            closing = [u for u in level if start in graph[u]]
            if closing:
                best = [closing[0]]
                while best[-1] != start:
                    best.append(parent[best[-1]])
                best.reverse()
                break
            ahead = []
            for u in level:
                for v in graph[u]:
                    if v not in parent:
                        parent[v] = u
                        ahead.append(v)
            level, depth = ahead, depth + 1
    return best


def implied_arcs(graph: nx.DiGraph) -> set[tuple[Any, Any]]:
    """Return the arcs (u, v) of an acyclic graph for which there is another path from u to v.

    These are the arcs outside its transitive reduction, which is unique. The nodes that a node reaches within
    its weakly connected component are stored as the bits of an integer.
    """
    import networkx as nx  # here, since importing kernelopt should be quick

    part = {u: p for p, nodes in enumerate(nx.weakly_connected_components(graph)) for u in nodes}
    used = [0] * graph.number_of_nodes()
    bit: dict[Any, int] = {}
    below: dict[Any, int] = {}
    implied: set[tuple[Any, Any]] = set()
    for u in reversed(list(nx.topological_sort(graph))):
        far = near = 0
        for v in graph[u]:
            far |= below[v]
            near |= 1 << bit[v]
        implied.update((u, v) for v in graph[u] if far >> bit[v] & 1)
        below[u] = far | near
        bit[u] = used[part[u]]
        used[part[u]] += 1
    return implied
