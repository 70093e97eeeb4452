"""Some kernels of a stack, and the kernels of several stacks as one, against numpy on the matrices."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.grams import ArrayStorage, IdentityStorage, RankOneStorage, Storage, join
from kernelopt.grams.evaluated import KernelStorage
from tests.every import every
from tests.grams.stacks import NEW, STACKS, Counting, N, V, X, check, lazy
from tests.problems import labels, stack

stacks = every("make", STACKS.values(), ids=STACKS)


@stacks
def test_a_stack_of_stacks_is_its_matrices(make):
    check(make(), np.asarray(make()))
    block = make().block([5, 1, 2, 7])
    check(block, np.asarray(make())[:, [5, 1, 2, 7]][:, :, [5, 1, 2, 7]])
    assert block.names == make().names


@stacks
@every(
    "indices, warm",
    [([-1, 0], False), ([-1, 0], True), ([0, 0], False), (slice(None, None, -1), True), ("mask", False)],
    ids=str,
)
def test_a_subset_has_the_matrices_it_names(make, indices, warm):
    grams, Ks = make(), np.asarray(make())
    if warm:
        check(grams, Ks)
    indices = np.arange(len(Ks)) % 2 == 0 if isinstance(indices, str) else indices
    chosen = np.arange(len(Ks))[indices]
    part = grams.subset(indices)
    check(part, Ks[chosen])
    names = [grams.names[i] for i in chosen]
    assert part.names == tuple(names if len({*names}) == len(names) else [names[0], f"{names[1]} (2)"])
    check(part.block(slice(0, 5)), Ks[chosen][:, :5, :5])
    again = part.subset([-1, 0])
    assert np.asarray(again) == pytest.approx(Ks[chosen][[-1, 0]], rel=1e-9, abs=1e-10)
    try:
        cross = grams.cross(NEW)
    except InputError:  # the kernels of a part may have them
        assert not isinstance(grams.storage, KernelStorage)
    else:
        assert part.cross(NEW) == pytest.approx(cross[chosen], rel=1e-9, abs=1e-10)
        assert part.self_similarity(NEW) == pytest.approx(grams.self_similarity(NEW)[chosen], rel=1e-9)
    check(grams, Ks)  # the whole is not touched


@stacks
def test_all_kernels_in_order_are_the_stack_itself(make):
    grams = make()
    assert grams.subset(slice(None)) is grams and grams.subset(range(len(grams))) is grams


def test_a_subset_evaluates_nothing_and_shares_what_is_kept():
    counting = [Counting() for _ in range(4)]
    grams = ko.Grams.from_kernels(counting, X)
    part = grams.subset([3, 1])
    same = part.subset([1])
    assert [k.calls for k in counting] == [0, 0, 0, 0]
    assert part.gram(0) is grams.gram(3) and same.gram(0) is grams.gram(1) and part.gram(1) is grams.gram(1)
    assert part.factor(0) is grams.factor(3)
    assert [k.calls for k in counting] == [0, 1, 0, 1]
    assert part.storage.X is grams.storage.X


@pytest.mark.parametrize("kind", ["multiplicative", "trace", "spherical"])
def test_a_subset_of_a_normalised_stack_touches_its_kernels_alone(kind):
    counting = [Counting() for _ in range(4)]
    whole = ko.Grams.from_kernels(counting, X).center().normalize(kind)
    part = whole.subset([2, 1])
    assert sum(k.calls for k in counting) == 0
    part.factor(0), part.rows([0]), part.forms(np.ones(N)), part.cross(NEW), part.self_similarity(NEW)
    assert [k.calls > 0 for k in counting] == [False, True, True, False]


def test_a_subset_takes_what_the_whole_knows():
    counting = [Counting() for _ in range(4)]
    whole = ko.Grams.from_kernels(counting, X).center().normalize("multiplicative")
    assert whole.row_means.shape == whole.diagonals.shape == (4, N)
    calls = [k.calls for k in counting]
    part = whole.subset([2, 1])
    assert np.array_equal(part.row_means, whole.row_means[[2, 1]])
    assert np.array_equal(part.storage.constants, whole.storage.constants[[2, 1]])
    assert np.array_equal(part.diagonals, whole.diagonals[[2, 1]])
    assert [k.calls for k in counting] == calls


def test_a_subset_of_an_array_copies_no_matrix():
    grams = ko.Grams.from_array(np.concatenate([stack(N), stack(N, seed=1)]))
    for indices in ([1], [0, 1, 2], [1, 3, 5], [4, 0], [2, 2]):
        part = grams.subset(indices)
        assert all(np.shares_memory(part[i], grams[k]) for i, k in enumerate(indices))
    assert isinstance(grams.subset(slice(1, 5, 2)).storage, ArrayStorage)


@stacks
@every(
    ("indices", "message"),
    [
        ([99], r"integers below \d+, the number of (kernels|points), got \[99\] in Grams.* from zero"),
        ([0.5], r"integers below \d+.*got \[0.5\]"),
        (["a"], "integers below"),
        (np.zeros((2, 2), int), r"one list of integers, got shape \(2, 2\) in Grams.* Pass .*ravel"),
        ([], r"at least one (kernel|point), got \[\] in Grams.* of Grams\(.*Pass the numbers"),
        (slice(0, 0), "at least one (kernel|point)"),
    ],
    ids=str,
)
def test_subsets_blocks_and_rows_that_cannot_be_are_refused(make, indices, message):
    grams, nothing = make(), message.startswith("at least")
    for ask in (grams.subset, grams.block, *([] if nothing else [grams.rows])):
        with pytest.raises(ParameterError, match=message):
            ask(indices)
    for ask, size in (
        (grams.subset, len(grams)),
        (grams.block, grams.n_points),
        (grams.rows, grams.n_points),
    ):
        with pytest.raises(ParameterError, match=f"{ask.__name__}.*from zero"):
            ask([size])


def test_joined_stacks_are_their_parts_times_their_factors():
    c = np.array([0.5, 1.0, 3.0])
    grams = join([(2.0, lazy()), (c, ko.Grams.from_array(stack(N))), (7.0, ko.Grams.identity(N))])
    expected = np.concatenate([2 * np.asarray(lazy()), c[:, None, None] * stack(N), 7 * np.eye(N)[None]])
    check(grams, expected)
    assert grams.names == (*lazy().names, "K[0]", "K[1]", "K[2]", "I")
    assert len(grams.storage.parts) == 3


def test_one_part_of_factor_one_is_returned():
    grams = lazy()
    assert join([(1.0, grams)]) is grams and join([(np.ones(5), grams)]) is grams
    both = join([(1, grams), (1, ko.Grams.identity(N))])
    assert join([(1.0, both)]) is both
    kernels, ridge = both.storage.parts
    assert kernels is grams.storage and both.subset(slice(5)).storage is kernels
    assert both.subset([5]).storage is ridge and kernels.origin is None and ridge.origin is None
    check(join([(3.0, grams)]), 3 * np.asarray(grams))


def test_joined_stacks_are_flat():
    inner = join([(2.0, lazy()), (1.0, ko.Grams.identity(N))])
    outer = join([(np.array([1, 1, 1, 1, 1, 3.0]), inner), (1.0, ko.Grams.rank_one(V))])
    parts = outer.storage.parts
    assert [type(part).__name__ for part in parts] == ["ScaledStorage", "ScaledStorage", "RankOneStorage"]
    assert parts[0] is inner.storage.parts[0]
    check(
        outer, np.concatenate([2 * np.asarray(lazy()), 3 * np.eye(N)[None], np.asarray(ko.Grams.rank_one(V))])
    )


def test_the_parts_keep_what_a_joined_stack_evaluates():
    counting = [Counting() for _ in range(3)]
    part = ko.Grams.from_kernels(counting, X)
    grams = join([(1.0, part), (1.0, ko.Grams.identity(N)), (2.0, part)])
    assert sum(k.calls for k in counting) == 0
    for _ in range(2):
        grams.combine(np.ones(7)), [grams.factor(i) for i in range(7)]
    assert sum(k.calls for k in counting) == 3
    assert grams.gram(1) is part.gram(1) and grams.factor(2) is part.factor(2)


class Whole(Storage):
    """Stands in for a part that must not be asked for a whole matrix."""

    def block(self, rows):
        raise AssertionError

    def gram(self, i):
        raise AssertionError

    def combine(self, w):
        return np.full(self.shape[1:], np.sum(w))

    def _apply(self, a):
        return np.full(self.shape[:2], 5.0)

    def entries(self, i, j):
        return np.full((len(self), len(i)), 7.0)

    def factor(self, i):
        return np.ones((self.n_points, 1))

    def inner(self):
        return np.full((len(self), len(self)), 11.0)

    @property
    def diagonals(self):
        return np.full(self.shape[:2], 13.0)


def test_each_question_goes_to_the_method_of_the_part():
    grams = join([(2.0, ko.Grams(Whole(3, N))), (1.0, ko.Grams.identity(N))])
    weights = np.array([1.0, 2, 3, 10])
    assert np.array_equal(grams.combine(weights), np.full((N, N), 12.0) + 10 * np.eye(N))
    assert grams.entries([0], [0])[:, 0].tolist() == [14, 14, 14, 1]
    assert grams.factor(1) == pytest.approx(np.full((N, 1), 2**0.5))
    plain = join([(1.0, ko.Grams(Whole(3, N))), (1.0, ko.Grams.identity(N))])
    assert plain.forms(np.ones(N)).tolist() == [5 * N, 5 * N, 5 * N, N]
    assert plain.traces.tolist() == [13 * N, 13 * N, 13 * N, N]
    assert plain.inner()[3].tolist() == [13 * N, 13 * N, 13 * N, N]
    assert plain.inner()[0].tolist() == [11, 11, 11, 13 * N]


def test_joined_kernels_at_new_points():
    grams = join([(2.0, lazy().center()), (3.0, ko.Grams.identity(N)), (1.0, lazy().normalize("spherical"))])
    center, sphere = lazy().center(), lazy().normalize("spherical")
    assert grams.cross(NEW) == pytest.approx(
        np.concatenate([2 * center.cross(NEW), np.zeros((1, 3, N)), sphere.cross(NEW)])
    )
    assert grams.self_similarity(NEW) == pytest.approx(
        np.concatenate([2 * center.self_similarity(NEW), np.full((1, 3), 3.0), sphere.self_similarity(NEW)])
    )
    with pytest.raises(InputError, match="need kernel functions"):
        join([(1.0, lazy()), (1.0, ko.Grams.from_array(stack(N)))]).cross(NEW)


def test_stacks_on_other_points_are_not_joined():
    with pytest.raises(ShapeError, match=r"on the same points, got \[4, 9\] points in join"):
        join([(1.0, lazy()), (1.0, ko.Grams.identity(4))])


def test_the_language_takes_joined_stacks():
    """One combination of a joined stack is the sum of the combinations of its parts."""
    parts = lazy().center(), ko.Grams.from_array(stack(N)), ko.Grams.identity(N)
    mu = cp.Variable(9, nonneg=True)
    joined = ko.combine(mu, join([(2.0, parts[0]), (1.0, parts[1]), (0.5, parts[2])]))
    apart = 2 * ko.combine(mu[:5], parts[0]) + ko.combine(mu[5:8], parts[1]) + 0.5 * mu[8] * np.eye(N)
    values = []
    for K in (joined, apart):
        risk = ko.risk(K, labels(N), ko.squared_hinge())
        values.append(ko.solve(cp.Problem(cp.Minimize(risk + ko.frobenius(K)), [ko.trace(K) <= 3])).value)
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_types_of_subsets():
    assert isinstance(ko.Grams.rank_one(V).subset([2, 0]).storage, RankOneStorage)
    assert isinstance(join([(1, lazy()), (1, ko.Grams.identity(N))]).subset([-1]).storage, IdentityStorage)
