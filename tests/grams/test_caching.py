"""Stacks shared between threads, copied, pickled and handed out: each reader finds what it would alone."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.grams import caching
from kernelopt.language.terms import ExpressionStorage
from tests.every import every
from tests.grams.stacks import KERNELS, NEW, STACKS, N, X, lazy
from tests.problems import labels, stack

THREADS = 5
GRAPH = ko.diffusion(nx.path_graph(N + 3), 0.5)
SHARED = STACKS | {"graph": lambda: ko.Grams.from_kernels([GRAPH], list(range(N)))}
kernels = lazy


stacks = every("make", SHARED.values(), ids=SHARED)


def asked(grams, i):
    """Everything that a stack can be asked about kernel i or all kernels, by name."""
    a = np.linspace(-1, 1, grams.n_points)
    w = np.linspace(0.5, 2, len(grams))
    return {
        "gram": lambda: grams.gram(i),
        "factor": lambda: grams.factor(i),
        "combine": lambda: grams.combine(w),
        "forms": lambda: grams.forms(a),
        "images": lambda: grams.images(a[:5], np.array([0, 3, 6])),
        "apply": lambda: grams.apply(a[:5]),
        "diagonals": lambda: grams.diagonals,
        "traces": lambda: grams.traces,
        "row_means": lambda: grams.row_means,
        "inner": lambda: grams.inner(),
        "entries": lambda: grams.entries([0, 2], [1, 2]),
        "block": lambda: grams.block(slice(1, 6)).gram(i),
        "subset": lambda: grams.subset([i]).factor(0),
        "array": lambda: np.asarray(grams),
    }


@pytest.fixture
def quick_switches():
    """Threads take turns every ten microseconds, so that they meet in every line."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work, threads=THREADS):
    """Run work(0), work(1), ... in threads that start at the same time, and return their results."""
    start = threading.Barrier(threads)

    def begin(number):
        start.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return [done.result(timeout=60) for done in [pool.submit(begin, k) for k in range(threads)]]


@stacks
@pytest.mark.parametrize("room", [2, *(pytest.param(r, marks=pytest.mark.slow) for r in (0, 10**6))])
def test_threads_find_what_one_finds_alone(make, room, monkeypatch, quick_switches):
    """Five threads ask for everything in different orders; the store holds none, two or all matrices.

    Rows are those of the matrix where it is kept and evaluated anew elsewhere, which differs by
    round-off. So where not all matrices are kept, what goes through rows depends on who came first, also
    in one thread, and so do distances and inner products that kernels share. Images, and the quadratic
    forms read from them, are completed from those of single points, whose sums have another order. Where
    all are kept, anything else is the same to the last bit.
    """
    monkeypatch.setattr(caching, "CACHE_BYTES", room * 8 * N**2)
    alone = make()
    expected = [{name: ask() for name, ask in asked(alone, i).items()} for i in range(len(alone))]
    everything = make().rows(slice(None))
    shared = make()

    def hammer(seed):
        rng = np.random.default_rng(seed)
        for i in rng.permutation(len(shared)).tolist():
            questions = asked(shared, i)
            for name in rng.permutation(list(questions)):
                exactly = room > 2 and name not in ("apply", "images", "forms")
                same(questions[name](), expected[i][name], exactly=exactly, what=name)
            rows = rng.integers(shared.n_points, size=3)
            same(shared.rows(rows), everything[:, rows], exactly=False, what="rows")

    together(hammer)


def same(found, expected, exactly, what):
    if exactly:
        assert np.array_equal(found, expected), what
    else:
        if what in ("factor", "subset"):  # round-off may choose another pivot
            found, expected = found @ found.T, expected @ expected.T
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9, err_msg=what)


class Slow(ko.kernels.Kernel):
    """A linear kernel whose evaluations can meet: each waits until `parties` of them run."""

    def __init__(self, parties=1):
        self.barrier, self.calls, self.lock = threading.Barrier(parties), 0, threading.Lock()

    def gram(self, A, B):
        with self.lock:
            self.calls += 1
        self.barrier.wait(timeout=20)
        return ko.linear().gram(A, B)

    def __repr__(self):
        return "slow"


@pytest.mark.parametrize(
    "wrap", [lambda g: g, lambda g: g.normalize("spherical")], ids=["plain", "spherical"]
)
def test_different_kernels_are_evaluated_side_by_side(wrap):
    """Four evaluations that wait for each other end: no lock is held while a kernel is evaluated."""
    slow = Slow(parties=4)
    slow.gram_diagonal = lambda A: np.einsum("ij,ij->i", A, A)
    grams = wrap(ko.Grams.from_kernels([slow] * 4, X))
    found = together(grams.gram, 4)
    assert slow.calls == 4 and all(np.array_equal(K, found[0]) for K in found)


@every("room", [0, 10])
def test_threads_that_ask_for_one_kernel_at_once_share_its_evaluation(room, monkeypatch):
    monkeypatch.setattr(caching, "CACHE_BYTES", room * 8 * N**2)
    go = threading.Event()

    class Held(Slow):
        def gram(self, A, B):
            go.wait(timeout=20)
            return super().gram(A, B)

    held = Held()
    grams = ko.Grams.from_kernels([held], X)
    waiting = []

    def ask(number):
        waiting.append(number)
        if len(waiting) == THREADS:
            threading.Timer(0.1, go.set).start()
        return grams.gram(0)

    found = together(ask)
    assert held.calls == 1 and all(K is found[0] for K in found)


def test_a_failed_evaluation_is_told_to_each_thread_and_not_kept():
    class Failing(Slow):
        def gram(self, A, B):
            super().gram(A, B)
            raise ZeroDivisionError

    failing = Failing()
    grams = ko.Grams.from_kernels([failing], X)

    def ask(number):
        with pytest.raises(ZeroDivisionError):
            grams.gram(0)

    together(ask)
    assert failing.calls == THREADS
    ask(0)


def test_a_kernel_may_be_asked_for_after_ctrl_c():
    """An evaluation that was cut off keeps neither this thread nor another waiting."""

    class Interrupted(Slow):
        def gram(self, A, B):
            if not self.calls:
                self.calls += 1
                raise KeyboardInterrupt
            return super().gram(A, B)

    grams = ko.Grams.from_kernels([Interrupted()], X)
    with pytest.raises(KeyboardInterrupt):
        grams.gram(0)
    assert all(np.array_equal(K, ko.linear()(X)) for K in together(lambda k: grams.gram(0)))


def test_the_bytes_that_are_kept_are_counted_right(monkeypatch, quick_switches):
    monkeypatch.setattr(caching, "CACHE_BYTES", 3 * 8 * N**2)
    for _ in range(20):
        grams = ko.Grams.from_kernels([ko.gaussian(w) for w in range(1, 9)], X)
        parts = [grams, grams.subset([7, 0, 3, 5]), grams.subset(slice(None, None, -1))]
        together(lambda k, parts=parts: [parts[k % 3].gram(i) for i in range(4)])
        kept = grams.storage._cache._arrays
        assert grams.storage._cache._bytes == sum(K.nbytes for K in kept.values()) == 3 * 8 * N**2


def test_properties_of_stacks_on_stacks_do_not_wait_for_each_other():
    """Constants need the diagonals of a centred stack below, and these the constants of one further below.

    Under a lock for each property one thread would hold that of the constants, the other that of the
    diagonals, as soon as the kernel takes its time.
    """

    class Sleeping(ko.gaussian):
        def gram_diagonal(self, A):
            time.sleep(0.05)
            return super().gram_diagonal(A)

    grams = ko.Grams.from_kernels([Sleeping(1.0)], X).normalize("trace").center().normalize("multiplicative")
    asks = [lambda: grams.storage.base.diagonals, lambda: grams.storage.constants]
    workers = [threading.Thread(target=asks[k % 2], daemon=True) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=20)
    assert not any(worker.is_alive() for worker in workers)


def test_threads_get_the_same_array_of_a_property(quick_switches):
    for _ in range(10):
        grams = kernels().center().normalize("multiplicative")
        storage = grams.storage
        asks = [
            lambda g=storage: g.constants,
            lambda g=storage: g.base.diagonals,
            lambda g=storage: g.row_means,
        ]
        found = together(lambda k, asks=asks: asks[k % 3]())
        assert all(found[k] is found[k % 3] for k in range(THREADS))


def trained(grams, seed):
    mu = cp.Variable(len(grams), nonneg=True)
    y = labels(N, seed)
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, grams), y, ko.hinge())), [cp.sum(mu) <= 1]), mu


@pytest.mark.filterwarnings("ignore")  # Python's filters are those of all threads: one would see another's
@pytest.mark.parametrize("method", ["exact", "interleaved"])
def test_solves_in_threads_give_what_they_give_in_turn(method):
    def solve(grams, seed):
        problem, mu = trained(grams, seed)
        return ko.solve(problem, method=method).value, mu.value

    in_turn = [solve(kernels(), seed) for seed in range(4)]
    shared = kernels()
    for (value, mu), (found, nu) in zip(in_turn, together(lambda k: solve(shared, k), 4), strict=True):
        assert found == pytest.approx(value, rel=1e-6)
        assert nu == pytest.approx(mu, abs=1e-2)


def read(grams):
    return np.asarray(grams), grams.names, grams.shape, grams.rank_bounds


def pickled(grams):
    return pickle.loads(pickle.dumps(grams))  # noqa: S301


copies = every("how", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deepcopy", "pickle"])


@stacks
@every("warm", [False, True], ids=["cold", "warm"])
@copies
def test_copies_are_the_same_stack(make, warm, how):
    grams = make()
    if warm:
        for question in asked(grams, 0).values():
            question()
    twin = how(grams)
    for found, expected in zip(read(twin), read(grams), strict=True):
        assert np.array_equal(found, expected)
    assert np.array_equal(twin.factor(0), grams.factor(0))
    assert np.array_equal(twin.block(slice(1, 5)).gram(0), grams.block(slice(1, 5)).gram(0))
    assert np.array_equal(twin.subset([-1]).gram(0), grams.gram(len(grams) - 1))
    try:
        cross = grams.cross(NEW)
    except (ko.InputError, TypeError):
        return
    assert np.array_equal(twin.cross(NEW), cross)
    assert np.array_equal(twin.self_similarity(NEW), grams.self_similarity(NEW))


@pytest.mark.parametrize("name", ["kernels", "spherical", "multiplicative", "subset", "block", "two"])
def test_a_pickle_does_not_hold_what_was_computed(name):
    grams = STACKS[name]()
    cold = len(pickle.dumps(grams))
    for i in range(len(grams)):
        for question in asked(grams, i).values():
            question()
    assert len(pickle.dumps(grams)) == cold


def test_a_pickled_subset_leaves_the_other_kernels_behind():
    many = ko.Grams.from_kernels([ko.gaussian(w) for w in range(1, 999)], X)
    one = ko.Grams.from_kernels([ko.gaussian(2)], X)
    assert len(pickle.dumps(many.subset([1]))) <= len(pickle.dumps(one)) + 100


ALL_KERNELS = [
    *KERNELS,
    2 * ko.gaussian(1.0) * ko.linear(),
    ko.laplacian(1.0),
    ko.kernels.normalized(ko.polynomial(3)),
    ko.kernels.on_columns(ko.gaussian(2.0), [0, 2]),
    *ko.kernels.per_feature(ko.linear(), 2),
]


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@copies
def test_kernels_are_copied(kernel, how):
    twin = how(kernel)
    assert repr(twin) == repr(kernel) and twin == kernel
    assert np.array_equal(twin(NEW, X), kernel(NEW, X)) and np.array_equal(twin(X), kernel(X))
    weak = ko.kernels.per_feature([ko.linear(), ko.gaussian(1.0)], 2)
    assert how(weak) == weak and np.array_equal(how(weak).groups, weak.groups)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@copies
def test_graph_kernels_are_copied(warm, how):
    kernel = ko.diffusion(nx.path_graph(5), 0.5)
    if warm:
        kernel(range(5))
    assert np.array_equal(how(kernel)(range(5)), kernel(range(5)))


def problem_of(free):
    mu = cp.Variable(5, nonneg=not free, name="mu")
    K = ko.combine(mu, kernels().center()) + 0.1 * np.eye(N)
    constraints = [cp.sum(mu) <= 1, ko.trace(K) <= 50, ko.alignment(K, labels(N)) >= 0]
    if free:
        constraints.append(K >> 0)
    return cp.Problem(cp.Minimize(ko.risk(K, labels(N), ko.hinge()) + cp.sum_squares(mu)), constraints)


@pytest.mark.parametrize("free", [False, True], ids=["second-order cone", "semidefinite"])
@pytest.mark.parametrize("how", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])
def test_problems_are_copied(free, how):
    problem = problem_of(free)
    twin = how(problem)
    value = ko.solve(problem).value
    assert all(v.value is None for v in twin.variables() if v.name() == "mu")  # its own variables
    assert ko.solve(twin).value == pytest.approx(value, rel=1e-6)


@stacks
def test_what_a_stack_hands_out_cannot_change_it(make):
    grams, expected = make(), make()
    handed = {
        "gram": lambda: grams[0],
        "iterated": lambda: next(iter(grams)),
        "factor": lambda: grams.factor(0),
        "diagonals": lambda: grams.diagonals,
        "row_means": lambda: grams.row_means,
        "array": lambda: np.asarray(grams),
        "images": lambda: grams.apply(np.ones(N)),
        "traces": lambda: grams.traces,
        "rows": lambda: grams.rows(slice(None)),
        "combined": lambda: grams.combine(np.ones(len(grams))),
        "vectorized": lambda: grams.vectorized(),
        "inner": lambda: grams.inner(),
        "entries": lambda: grams.entries(np.array([0, 1]), np.array([0, 1])),
        "forms": lambda: grams.forms(np.ones(N)),
        "block": lambda: grams.block(slice(0, 4))[0],
        "subset": lambda: grams.subset([0])[0],
        "row": lambda: grams[0][0],
    }
    for get in handed.values():
        array = get()
        if array.flags.writeable:
            array *= 0
            array[...] = np.nan
        else:
            with pytest.raises(ValueError, match="read-only"):
                array *= 0
    for name, get in handed.items():
        assert np.isfinite(get()).all(), name
    assert np.array_equal(np.asarray(grams), np.asarray(expected))
    assert np.array_equal(grams.factor(0), expected.factor(0))
    assert np.array_equal(grams.diagonals, expected.diagonals)


def test_an_array_of_all_matrices_follows_the_protocol_of_numpy():
    stored, lazy = ko.Grams.from_array(stack(N)), kernels()
    assert np.shares_memory(np.asarray(stored), stored[0]) and np.shares_memory(
        np.asarray(stored, copy=False), stored[0]
    )
    assert not np.shares_memory(np.array(stored), stored[0])
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(lazy, copy=False)


def test_a_stack_does_not_follow_a_kernel_that_returns_its_own_matrix():
    class Precomputed:
        def __init__(self, K):
            self.K = K

        def __call__(self, A, B=None):
            return self.K

        def diagonal(self, A):
            return self.K.diagonal()

        def rank(self, A):
            return len(A)

    kernel = Precomputed(stack(N)[0])
    grams = ko.Grams.from_kernels([kernel], X)
    assert np.array_equal(grams[0], stack(N)[0]) and grams.diagonals.shape == (1, N)
    kernel.K *= 2  # still the kernel's own
    assert np.array_equal(grams[0], stack(N)[0])


def test_the_constant_of_an_expression_stays_writeable_for_cvxpy():
    constant = cp.Constant(stack(N)[0])
    ExpressionStorage(constant).gram(0)
    assert constant.value.flags.writeable
