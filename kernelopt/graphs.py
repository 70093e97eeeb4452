"""Kernels between the nodes of a networkx graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kernelopt.errors import InputError
from kernelopt.validation import Array, as_float_array, as_list, positive

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False, repr=False)
class diffusion:
    r"""The diffusion kernel of a graph, :math:`K = \exp(-\beta L)`, with its combinatorial Laplacian L.

    L is the diagonal of the weighted degrees minus the weights. K is positive definite, its rows sum
    to one, and it is zero between nodes that no path joins.

    Parameters
    ----------
    graph : undirected networkx graph
        The edge attribute `weight`, 1 where absent, is at least 0; parallel edges add up. The graph
        is copied, so that later changes of it do not change the kernel.
    beta : float > 0
        Time of the diffusion, in units of 1 / weight.

    Notes
    -----
    The first call takes one dense eigendecomposition for each connected component, O(N^3) operations for N
    nodes, and keeps the N^2 entries. They are accurate to about 1e-16 in absolute terms, not relative ones.

    References
    ----------
    .. [1] Kondor and Lafferty, Diffusion kernels on graphs and other discrete structures, ICML 2002.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelopt.graphs import diffusion
    >>> kernel = diffusion(nx.path_graph(["a", "b"]), beta=0.5)
    >>> kernel(["a", "b"]).round(4).tolist()
    [[0.6839, 0.3161], [0.3161, 0.6839]]
    """

    graph: nx.Graph
    beta: float

    def __post_init__(self) -> None:
        import networkx as nx  # here, since importing kernelopt should be quick

        if not isinstance(self.graph, nx.Graph) or self.graph.is_directed():
            raise InputError(
                f"graph must be an undirected networkx graph, got {type(self.graph).__name__}. Use "
                "graph.to_undirected(), or networkx.from_numpy_array(A) of an adjacency matrix."
            )
        if len(self.graph) == 0:
            raise InputError("graph must have at least one node, got none. Add the nodes first.")
        for u, v, weight in self.graph.edges(data="weight", default=1):
            positive(weight, f"weight of edge ({u!r}, {v!r})", allow_zero=True)
        object.__setattr__(self, "graph", self.graph.copy())
        object.__setattr__(self, "beta", positive(self.beta, "beta"))

    def __repr__(self) -> str:
        size = f"{self.graph.number_of_nodes()} nodes, {self.graph.number_of_edges()} edges"
        return f"diffusion({type(self.graph).__name__}({size}), beta={self.beta!r})"

    def __call__(self, X: Iterable[Hashable], Z: Iterable[Hashable] | None = None) -> Array:
        """Return k(x_i, z_j), of shape (len(X), len(Z)); Z = None means X, and gives a symmetric matrix."""
        rows = self._positions(X, "X")
        return self._gram[np.ix_(rows, rows if Z is None else self._positions(Z, "Z"))]

    def diagonal(self, X: Iterable[Hashable]) -> Array:
        """Return the vector k(x_i, x_i).

        Parameters
        ----------
        X : sequence of nodes
            The points.
        """
        rows = self._positions(X, "X")
        return self._gram[rows, rows]

    def rank(self, X: Iterable[Hashable]) -> int:
        """Return the rank of the Gram matrix on X: its number of different nodes.

        Parameters
        ----------
        X : sequence of nodes
            The points.
        """
        return len(np.unique(self._positions(X, "X")))

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(self.graph)}

    @cached_property
    def _gram(self) -> Array:
        import networkx as nx

        K = np.zeros((len(self.graph), len(self.graph)))
        for nodes in nx.connected_components(self.graph):
            order = sorted(nodes, key=self._index.__getitem__)
            rows = self._positions(order, "nodes")
            L = nx.laplacian_matrix(self.graph.subgraph(nodes), nodelist=order).toarray()
            values, V = eigh(as_float_array(L, "the Laplacian of the graph"))
            values[0] = 0.0  # the smallest eigenvalue, exactly: L 1 = 0
            with np.errstate(over="ignore"):
                half = V * np.exp(-self.beta / 2 * values)
            K[np.ix_(rows, rows)] = half @ half.T
        return (K + K.T) / 2

    def _positions(self, X: Iterable[Hashable], what: str) -> NDArray[np.intp]:
        if isinstance(X, str) or not isinstance(X, Iterable):
            raise InputError(
                f"{what} must be a sequence of nodes of the graph, got {X!r}. Write [{X!r}] for one node."
            )
        rows = []
        for i, node in enumerate(as_list(X, what, "a sequence of nodes of the graph")):
            if not isinstance(node, Hashable) or node not in self._index:
                raise InputError(
                    f"{what} must hold nodes of the graph, got {node!r:.60} at index {i}. Add that node to "
                    f"the graph before building the kernel; its nodes start with {list(self._index)[:3]}."
                )
            rows.append(self._index[node])
        if not rows:
            raise InputError(f"{what} must hold at least one node, got none. Pass list(graph) for all.")
        return np.array(rows, dtype=np.intp)
