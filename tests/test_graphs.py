"""The diffusion kernel against the matrix exponential, closed forms and its error messages."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from kernelopt.errors import InputError, NotFiniteError, ParameterError
from kernelopt.graphs import diffusion
from tests.every import every


def random_graph(n, seed, density=0.4):
    """A weighted graph, its nodes named out of order."""
    rng = np.random.default_rng(seed)
    G = nx.Graph()
    G.add_nodes_from(f"v{i}" for i in rng.permutation(n))
    for u, v in nx.gnp_random_graph(n, density, seed=seed).edges:
        G.add_edge(f"v{u}", f"v{v}", weight=rng.uniform(0.0, 3.0))
    return G


def exponential(G, beta):
    """exp(-beta L) from the adjacency matrix and scipy's scaling and squaring."""
    A = nx.to_numpy_array(G)
    return expm(-beta * (np.diag(A.sum(axis=1)) - A))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(n=st.integers(1, 9), seed=st.integers(0, 99), beta=st.floats(0.05, 3.0))
def test_diffusion_is_the_matrix_exponential(n, seed, beta):
    G = random_graph(n, seed)
    kernel = diffusion(G, beta)
    K = kernel(list(G))
    np.testing.assert_allclose(K, exponential(G, beta), atol=1e-12)
    assert (K == K.T).all()
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]
    np.testing.assert_allclose(K.sum(axis=1), 1.0, atol=1e-12)  # L 1 = 0
    assert np.linalg.matrix_rank(K) <= kernel.rank(list(G)) == n
    assert (kernel.diagonal(list(G)) == np.diag(K)).all()


def test_two_nodes_by_hand():
    # L = w [[1, -1], [-1, 1]] has eigenvalue 0 on (1, 1) and 2w on (1, -1), so that
    # exp(-beta L) = 1/2 [[1 + e, 1 - e], [1 - e, 1 + e]] with e = exp(-2 w beta).
    w, beta = 1.5, 0.4
    e = math.exp(-2 * w * beta)
    G = nx.Graph()
    G.add_edge("a", "b", weight=w)
    np.testing.assert_allclose(diffusion(G, beta)(["a", "b"]), np.array([[1 + e, 1 - e], [1 - e, 1 + e]]) / 2)


def test_complete_graph_by_hand():
    # L = n I - 11' has eigenvalue 0 on 1 and n elsewhere: K = e I + (1 - e)/n 11' with e = exp(-n beta).
    n, beta = 5, 0.1
    e = math.exp(-n * beta)
    K = diffusion(nx.complete_graph(n), beta)(range(n))
    np.testing.assert_allclose(K, e * np.eye(n) + (1 - e) / n, atol=1e-14)


def test_times_add_up():
    G = random_graph(8, seed=3)
    together = diffusion(G, 0.3)(list(G)) @ diffusion(G, 0.5)(list(G))
    np.testing.assert_allclose(together, diffusion(G, 0.8)(list(G)), atol=1e-13)


def test_disconnected_parts_are_exactly_zero():
    G = nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(4))
    K = diffusion(G, 1.0)(list(G))
    assert (K[:3, 3:] == 0).all()
    np.testing.assert_array_equal(K[:3, :3], diffusion(nx.path_graph(3), 1.0)(range(3)))
    assert diffusion(nx.empty_graph(2), 1.0)([0, 1]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_long_time_averages_over_the_component():
    np.testing.assert_allclose(diffusion(nx.path_graph(4), 1e20)(range(4)), np.full((4, 4), 0.25), atol=1e-14)


def test_selection_order_and_repetition():
    G = random_graph(6, seed=1)
    kernel, nodes = diffusion(G, 0.7), list(G)
    K = kernel(nodes)
    assert (kernel([nodes[4], nodes[0]], nodes[1:3]) == K[np.ix_([4, 0], [1, 2])]).all()
    twice = [nodes[2], nodes[2], nodes[0]]
    assert kernel.rank(twice) == np.linalg.matrix_rank(kernel(twice)) == 2
    assert (kernel(np.array(nodes)) == K).all()
    assert (kernel(G) == K).all()


def test_parallel_edges_add_and_loops_do_not_count():
    M = nx.MultiGraph()
    M.add_edge(0, 1, weight=1.0)
    M.add_edge(0, 1, weight=0.5)
    M.add_edge(0, 0, weight=7.0)
    G = nx.Graph()
    G.add_edge(0, 1, weight=1.5)
    np.testing.assert_allclose(diffusion(M, 1.0)([0, 1]), diffusion(G, 1.0)([0, 1]), rtol=1e-14)


def test_later_changes_of_the_graph_do_not_reach_the_kernel():
    G = nx.path_graph(3)
    kernel = diffusion(G, 1.0)
    G.add_edge(0, 2)
    np.testing.assert_array_equal(kernel(range(3)), diffusion(nx.path_graph(3), 1.0)(range(3)))


def test_the_result_is_a_copy():
    kernel = diffusion(nx.path_graph(2), 1.0)
    kernel([0, 1])[:] = 0.0
    assert kernel([0])[0, 0] > 0.5


def test_repr():
    assert repr(diffusion(nx.path_graph(3), 2)) == "diffusion(Graph(3 nodes, 2 edges), beta=2.0)"


def edge(weight):
    G = nx.Graph()
    G.add_edge("a", "b", weight=weight)
    return G


PATH = nx.path_graph(["a", "b"])


@every(
    ("call", "error", "remedy"),
    [
        (lambda: diffusion(nx.DiGraph([(0, 1)]), 1.0), InputError, r"got DiGraph.*graph\.to_undirected\(\)"),
        (lambda: diffusion(np.eye(2), 1.0), InputError, r"got ndarray.*from_numpy_array"),
        (lambda: diffusion(nx.Graph(), 1.0), InputError, "at least one node, got none. Add the nodes"),
        (
            lambda: diffusion(edge(-1.0), 1.0),
            ParameterError,
            r"weight of edge \('a', 'b'\).*non-negative.*got -1",
        ),
        (lambda: diffusion(edge(np.nan), 1.0), ParameterError, "weight of edge .*got nan"),
        (lambda: diffusion(edge("x"), 1.0), ParameterError, "weight of edge .*Pass one number"),
        (lambda: diffusion(PATH, 0.0), ParameterError, "beta must be a positive finite number, got 0"),
        (lambda: diffusion(PATH, -1.0), ParameterError, "beta must be .* Choose a value"),
        (
            lambda: diffusion(PATH, 1.0)(["a", "c"]),
            InputError,
            "X must hold nodes.*'c' at index 1.*Add that node",
        ),
        (lambda: diffusion(PATH, 1.0)(["a"], ["c"]), InputError, "Z must hold nodes.*'c' at index 0"),
        (lambda: diffusion(PATH, 1.0).rank([["a"]]), InputError, r"got \['a'\] at index 0"),
        (lambda: diffusion(PATH, 1.0).diagonal("ab"), InputError, r"sequence of nodes.*Write \['ab'\]"),
        (lambda: diffusion(PATH, 1.0)(7), InputError, r"Write \[7\]"),
        (lambda: diffusion(PATH, 1.0)([]), InputError, r"Pass list\(graph\)"),
        (lambda: diffusion(nx.path_graph(3), 1.0)([[0, 1]]), InputError, r"got \[0, 1\] at index 0"),
    ],
)
def test_errors_say_what_to_do(call, error, remedy):
    with pytest.raises(error, match=remedy):
        call()


def test_weights_beyond_the_range_of_floats():
    G = nx.path_graph(3)
    nx.set_edge_attributes(G, 1.7e308, "weight")
    with np.errstate(over="ignore"), pytest.raises(NotFiniteError, match="Laplacian of the graph"):
        diffusion(G, 1.0)([0, 1, 2])
