"""Bounds of rounding errors, and dot products that are rounded once.

With u = 2^-53, a sum of k products of doubles, in any order of summation, has an error of at most
gamma_k = k u / (1 - k u) times the sum of their absolute values (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1). A product of doubles is a sum of two doubles exactly (Dekker, Numer. Math. 18
(1971)), and `math.fsum` rounds the exact sum of doubles once. A dot product computed from both has an error
of u times its own absolute value, even where large terms cancel.

The bounds count generously. A sum of k products with some operations before or after it has gamma(k + 4) or
gamma(k + 8), and a formula without a sum has a factor such as 1 + 8 u: the small number exceeds the number of
those operations. Factors of 1.01 to 1.1 cover the roundings of the bound itself, a sum of as many terms.

The bounds hold where nothing overflows; an overflow makes the results infinite or NaN. For products that may
underflow, `UNDERFLOW` is added for each.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array, Index

UNIT = 2.0**-53  # u, the unit roundoff of doubles
SPLITTER = 2.0**27 + 1  # Veltkamp's: splits the 53 bits of a double into two halves
SMALL = 1e-280  # below this the error term of a product, u times smaller, may underflow
UNDERFLOW = 1e-320  # more than the error of one product that underflows, 2^-1075
SMALLEST_DIVISOR = 1e-300  # keeps the quotient of two sizes finite where the divisor vanishes
TERM_ROUNDINGS = 64  # beside one per term, more than a term of a loss or a conjugate takes: an entropy 37


def upwards(x: float) -> float:
    """Return the next larger double: an upper bound of the exact result of an operation rounded to x."""
    return math.nextafter(x, math.inf)


@overload
def gamma(k: float) -> float: ...


@overload
def gamma(k: Index) -> Array: ...


def gamma(k: Any) -> Any:
    """Return an upper bound of Higham's gamma_k = k u / (1 - k u), which bounds k relative roundings."""
    return k * UNIT / (1 - k * UNIT) * (1 + 4 * UNIT)


def exact_sum(terms: Array | list[float]) -> float:
    """Return the sum of doubles, rounded once; NaN where one of them or the sum is not finite."""
    try:
        found = math.fsum(terms.tolist() if isinstance(terms, np.ndarray) else terms)
    except (OverflowError, ValueError):  # ValueError: inf - inf
        return math.nan
    return found if math.isfinite(found) else math.nan


def two_products(a: Array, b: Array) -> tuple[Array, Array]:
    """Return fl(a b) and a b - fl(a b), by Dekker's algorithm.

    The second number is exact where nothing under- or overflows.
    """
    a_high, b_high = leading(a), leading(b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def leading(a: Array) -> Array:
    """Return the leading 26 bits of a, by Veltkamp's splitting."""
    scaled = SPLITTER * a
    return np.asarray(scaled - (scaled - a))


def split_sums(A: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return A b as the unevaluated sum of two doubles, and bounds of the absolute errors of these sums.

    It is the compensated dot product Dot2 (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26 (2005)). With the k
    products p_j = fl(a_j b_j), their errors e_j, the partial sums s_j and their errors t_j, the sum
    s_k + sum_j (t_j + e_j) is exact. Here |t_j| <= u |s_j| and |e_j| <= u |p_j|, so that the rounding of the
    second part is below gamma_2k (k + 2) u (1 + gamma_k) sum_j |p_j|, which is below the square of gamma_2k+8
    times that sum. Each product may underflow, or its error e_j.
    """
    heads, tails, sizes = np.empty(len(A)), np.empty(len(A)), np.empty(len(A))
    compiled(compensated_sums, 4 * A.size)(A, b, leading(b), SPLITTER, heads, tails, sizes)
    return heads, tails, gamma(2 * b.size + 8) ** 2 * sizes + UNDERFLOW * b.size


def compensated_sums(
    A: Array, b: Array, b_high: Array, splitter: float, heads: Array, tails: Array, sizes: Array
) -> None:
    """Write the rows of A b as heads + tails, with the sums of the absolute values of the products."""
    for i in range(A.shape[0]):
        total, rest, size = 0.0, 0.0, 0.0
        for j in range(b.size):
            x, y, y_high = A[i, j], b[j], b_high[j]
            scaled = splitter * x
            x_high = scaled - (scaled - x)
            x_low, y_low, p = x - x_high, y - y_high, x * y
            e = ((x_high * y_high - p) + x_high * y_low + x_low * y_high) + x_low * y_low
            after = total + p
            part = after - total
            t = (total - (after - part)) + (p - part)
            total, rest, size = after, rest + (t + e), size + abs(p)
        head = total + rest
        part = head - total
        heads[i], tails[i], sizes[i] = head, (total - (head - part)) + (rest - part), size


def norm_above(a: Array) -> float:
    """Return an upper bound of the Euclidean norm of all entries, exceeding it by a relative O(size u)."""
    v = np.ravel(a)
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    scaled = v / largest
    return upwards(largest * math.sqrt(float(scaled @ scaled)) * (1 + (v.size + 8) * UNIT))


def eigenvalue_error(G: Array) -> float:
    """Return a bound of the errors of the eigenvalues or singular values of a matrix that LAPACK computes.

    It is 4 gamma_n |G|_F: the algorithms are backward stable, with a small factor.
    """
    return float(4 * gamma(max(G.shape)) * norm_above(G) * (1 + gamma(4)))
