"""The permutahedron, the convex hull of the permutations of a vector a >= 0, as a set of weights by rank."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt.extend import Ball, Part


def permutahedron(x, a):
    """Return its constraints: the k largest entries sum to at most the k largest of `a`, and all to all."""
    *tops, total = np.cumsum(np.sort(a)[::-1])
    return [*(cp.sum_largest(x, k) <= top for k, top in enumerate(tops, 1)), cp.sum(x) == total]


@dataclass(frozen=True, eq=False)
class Permutahedron(Part):
    """The convex hull of the permutations of a vector a >= 0, as `permutahedron` states it."""

    variables: tuple[cp.Variable, ...]
    a: np.ndarray
    at: tuple[int, ...]

    @classmethod
    def recognise(cls, constraints):
        sides = [c.args for c in constraints.values() if len(c.args) == 2 and c.args[1].is_constant()]
        if len(sides) < len(constraints) or not sides[-1][0].args:
            return None
        x, a = sides[-1][0].args[0], np.diff([float(top.value) for _, top in sides], prepend=0)
        ks = [left.args[0] is x and getattr(left, "k", x.size) for left, _ in sides]
        known = isinstance(x, cp.Variable) and x.is_nonneg() and ks == list(range(1, x.size + 1))
        return cls((x,), a, tuple(constraints)) if known and (np.diff(a, append=0) <= 0).all() else None

    def support(self, s):
        return float((Ball(np.sort(s[self.variables[0]].above)[::-1]) * self.a).sum().above)

    def multipliers(self, s, support):
        return dict(zip(self.at, -np.diff(np.sort(s[self.variables[0]].mid)[::-1], append=0), strict=True))

    def start(self):
        return {x.id: np.full(x.size, self.a.mean()) for x in self.variables}
