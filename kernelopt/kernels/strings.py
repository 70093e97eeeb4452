"""Kernels of strings, which count the substrings that two strings share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelopt.errors import InputError, ShapeError
from kernelopt.kernels.base import Domain, Kernel
from kernelopt.validation import Array, Index, Mask, as_list, shown, whole

Strings: TypeAlias = NDArray[np.object_]

DENSE = 0.1  # share of entries above zero from which a dense product is faster than a sparse one
LARGEST = np.iinfo(np.int64).max  # number of different codes of substrings


@dataclass(frozen=True)
class spectrum(Kernel):
    r"""The spectrum kernel of strings: the inner product of the counts of all substrings of length k.

    .. math:: k(x, z) = \sum_{u} c_u(x) \, c_u(z)

    The sum runs over all strings u of k letters, and c_u(x) is the number of places at which u stands in x.
    A string of fewer than k letters has no such substring, and its kernel values are zero.

    Parameters
    ----------
    k : int >= 1
        The length of the substrings. Customary are 3 to 6 for proteins and 5 to 8 for DNA.

    Notes
    -----
    Strings may have different lengths, and any letters. Case matters. Longer strings have larger values:
    ``normalized(spectrum(3))`` divides by the lengths of the vectors of counts. The values are whole numbers,
    and exact below 2^53.

    The counts are a sparse matrix with one row for each string. It takes O(L log L) operations for L letters
    in all, and the Gram matrix is its product with its transpose.

    References
    ----------
    .. [1] Leslie, Eskin, Noble, The spectrum kernel: a string kernel for SVM protein classification, Pacific
       Symposium on Biocomputing 2002.

    Examples
    --------
    The string "GATTACA" has the substrings GA, AT, TT, TA, AC and CA, and "TATA" has TA twice and AT once.

    >>> import kernelopt as ko
    >>> ko.spectrum(2)(["GATTACA", "TATA"])
    array([[6., 3.],
           [3., 5.]])
    >>> grams = ko.Grams.from_kernels([ko.spectrum(k) for k in (1, 2, 3)], ["GATTACA", "TATA"])
    >>> grams.cross(["ATTA"])
    array([[[10.,  8.]],
    <BLANKLINE>
           [[ 3.,  3.]],
    <BLANKLINE>
           [[ 2.,  0.]]])
    """

    k: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k", wanted="an integer >= 1"))

    @property
    def domain(self) -> Domain:
        return as_strings

    def _counts(self, strings: Strings) -> sp.csr_array:
        """Return how often each substring occurs in each string, shape (strings, substrings)."""
        ((rows, _, words),) = substrings(strings, [self.k])
        different, columns = np.unique(words, return_inverse=True)
        return sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(len(strings), different.size))

    def gram(self, X: Any, Z: Any = None) -> Array:
        counts = self._counts(X if Z is None else np.concatenate([X, Z]))
        return product(counts[: len(X)], counts if Z is None else counts[len(X) :])

    def gram_diagonal(self, X: Any) -> Array:
        counts = self._counts(X)
        return np.asarray(counts.multiply(counts).sum(axis=1), dtype=np.float64)

    def gram_rank(self, X: Any) -> int:
        return min(different(X), int(self._counts(X).shape[1]))


@dataclass(frozen=True)
class weighted_degree(Kernel):
    r"""The weighted degree kernel of strings of one length, which counts equal substrings at equal positions.

    .. math::

        k(x, z) = \sum_{k=1}^{d} \beta_k \sum_{i} \sum_{|i - j| \le S} t_{|i - j|}
                  \, [x_{i..i+k-1} = z_{j..j+k-1}], \qquad \beta_k = \frac{2 (d - k + 1)}{d (d + 1)}

    The positions i and j run from 1 to L - k + 1 for strings of L letters. The bracket is one where the two
    substrings are equal, and zero otherwise. S is `shift`, with the weights :math:`t_0 = 1` and
    :math:`t_s = 1 / (2 (s + 1))` for s >= 1. The weights :math:`\beta_k` of the degrees add up to one.
    Degrees above L add nothing.

    Parameters
    ----------
    d : int >= 1
        The degree, which is the length of the longest substrings.
    shift : int >= 0
        The largest difference of the positions at which equal substrings count. With 0, the kernel of [1]_,
        they count at the same position alone.

    Notes
    -----
    In [2]_ the sum is :math:`\sum_i \gamma_i \sum_{s=0}^{S(i)} \delta_s ([x_{i+s..} = z_{i..}] + [x_{i..} =
    z_{i+s..}])` with :math:`\delta_s = 1 / (2 (s + 1))`. This is the case :math:`\gamma_i = 1` and
    :math:`S(i) = S` of it: s = 0 counts twice with the weight 1/2, and a shift by s counts once in each
    direction.

    The kernel is positive semidefinite for every shift. For a substring u let :math:`a_u(x)` be the
    vector of zeros and ones that says where u stands in x. Then k(x, z) is a sum of terms
    :math:`\beta_k\, a_u(x)' T a_u(z)` with the Toeplitz matrix T of the entries :math:`t_0, \dots, t_S`, and
    zeros beyond. So it is enough that T is positive semidefinite, and for that, that its symbol
    :math:`t_0 + 2 \sum_{s=1}^{S} t_s \cos(s \varphi)` is non-negative. By the inequality of [3]_ the symbol
    is at least 1/2. Shifts S(i) that differ between positions have no such
    proof, and are not offered.

    The cost grows with d (2 shift + 1), and with the number of pairs of equal substrings.

    References
    ----------
    .. [1] Rätsch, Sonnenburg, Accurate splice site detection for Caenorhabditis elegans, in: Kernel Methods
       in Computational Biology, MIT Press 2004.
    .. [2] Rätsch, Sonnenburg, Schölkopf, RASE: recognition of alternatively spliced exons in C. elegans,
       Bioinformatics 21 (2005), i369-i377.
    .. [3] Rogosinski, Szegő, Über die Abschnitte von Potenzreihen, die in einem Kreise beschränkt bleiben,
       Mathematische Zeitschrift 28 (1928): :math:`\tfrac12 + \sum_{s=1}^{n} \cos(s \varphi) / (s + 1) \ge 0`.

    Examples
    --------
    Of degree 2 the weights are 2/3 for letters and 1/3 for pairs. "GATT" and "CATG" share the letters A and
    T, and the pair AT, at their positions.

    >>> import kernelopt as ko
    >>> ko.weighted_degree(2)(["GATT", "CATG"]).round(4)
    array([[3.6667, 1.6667],
           [1.6667, 3.6667]])
    """

    d: int = 5
    shift: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d", wanted="an integer >= 1"))
        object.__setattr__(self, "shift", whole(self.shift, "shift", 0, "an integer >= 0"))

    @property
    def domain(self) -> Domain:
        return as_strings

    def _parts(self, strings: Strings) -> Iterator[tuple[sp.csr_array, sp.csr_array]]:
        """Return matrices F and G for each degree, such that the kernel is the sum of the products G F'.

        A column stands for a substring at a position. F says which string has it, and G how much each string
        counts for it.
        """
        d, length = self.d, len(strings[0])
        for k, (rows, places, words) in enumerate(substrings(strings, range(1, min(d, length) + 1)), 1):
            count, beta = length - k + 1, 2 * (d - k + 1) / (d * (d + 1))
            features = np.unique(words, return_inverse=True)[1] * count + places
            present, columns = np.unique(features, return_inverse=True)
            moved = [self._moved(present, count, s) for s in range(-self.shift, self.shift + 1)]
            kept = [np.flatnonzero(found[columns]) for _, found in moved]
            targets = [at[columns[part]] for (at, _), part in zip(moved, kept, strict=True)]
            sizes = np.abs(np.arange(-self.shift, self.shift + 1))
            weights = np.where(sizes, beta / (2 * (1 + sizes)), beta).repeat([part.size for part in kept])
            shape = len(strings), present.size
            F = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=shape)
            G = sp.csr_array((weights, (rows[np.concatenate(kept)], np.concatenate(targets))), shape=shape)
            yield F, G

    @staticmethod
    def _moved(present: Index, count: int, s: int) -> tuple[Index, Mask]:
        """Return the columns of the same substrings s positions further on, and which of them are present."""
        at = np.minimum(np.searchsorted(present, present + s), present.size - 1)
        places = present % count + s
        return at, (present[at] == present + s) & (places >= 0) & (places < count)

    def gram(self, X: Any, Z: Any = None) -> Array:
        n, K = len(X), np.zeros((len(X), len(X if Z is None else Z)))
        check_aligned(X, "X", X)
        if Z is not None:
            check_aligned(Z, "Z", X)
        for F, G in self._parts(X if Z is None else np.concatenate([X, Z])):
            K += product(G[:n], F if Z is None else F[n:])
        return K

    def gram_diagonal(self, X: Any) -> Array:
        check_aligned(X, "X", X)
        parts = (F.multiply(G).sum(axis=1) for F, G in self._parts(X))
        return np.asarray(sum(parts), dtype=np.float64)

    def gram_rank(self, X: Any) -> int:
        return different(X)


def substrings(strings: Strings, sizes: Iterable[int]) -> Iterator[tuple[Index, Index, NDArray[np.int64]]]:
    """Yield for each size k all substrings of length k: their strings, their positions and a code for each.

    Equal substrings have equal codes. The code is a number with k digits, one for each letter, in the base of
    the number of different letters. It is replaced by its rank among strings that occur before it would be
    too large for an integer of 64 bits.
    """
    text = "".join(strings).encode("utf-32-le", "surrogatepass")
    alphabet, letters = np.unique(np.frombuffer(text, dtype="<u4"), return_inverse=True)
    lengths = np.array([len(string) for string in strings])
    rows = np.repeat(np.arange(len(strings)), lengths)
    places = np.arange(letters.size) - (np.cumsum(lengths) - lengths)[rows]
    for k in sizes:
        starts = np.flatnonzero(places + k <= lengths[rows])
        words, bound = np.zeros(starts.size, dtype=np.int64), 1
        for j in range(k):
            if bound > LARGEST // alphabet.size:
                found, words = np.unique(words, return_inverse=True)
                bound = found.size
            words = words * alphabet.size + letters[starts + j]
            bound *= alphabet.size
        yield rows[starts], places[starts], words


def product(left: sp.csr_array, right: sp.csr_array) -> Array:
    """Return the dense matrix left right'."""
    if right.nnz > DENSE * right.shape[0] * right.shape[1]:
        return np.asarray(left.toarray() @ right.toarray().T)
    return np.asarray((left @ right.T).toarray())


def different(strings: Strings) -> int:
    """Return the number of different strings, which bounds the rank of any kernel."""
    return len(set(strings))


def as_strings(X: Any, what: str, like: Strings | None = None) -> Strings:
    """Return strings as an array of objects, at least one, none of them empty."""
    if isinstance(X, str):
        raise InputError(
            f"{what} must be a sequence of strings, got the string {shown(X)}. Write [{shown(X)}] for one."
        )
    listed = as_list(X, what, "a sequence of strings")
    if not listed:
        raise ShapeError(f"{what} must hold at least one string, got none. Pass a list of them.")
    strings = np.empty(len(listed), dtype=object)
    for i, string in enumerate(listed):
        if not isinstance(string, str):
            raise InputError(
                f"{what} must hold strings, got {shown(string)} ({type(string).__name__}) at index {i}. "
                "Decode bytes with .decode(), and join letters with ''.join(letters)."
            )
        if not string:
            raise InputError(
                f"{what} must hold strings of at least one letter, got an empty one at index {i}. Drop that "
                "point."
            )
        strings[i] = str(string)
    return strings


def check_aligned(strings: Strings, what: str, like: Strings) -> None:
    """Raise a `ShapeError` unless all strings have the length of the first one of `like`."""
    for i, string in enumerate(strings):
        if len(string) != len(like[0]):
            raise ShapeError(
                f"{what} must hold strings of one length, since a weighted degree kernel compares positions, "
                f"got {len(string)} letters at index {i} instead of {len(like[0])}. Align the strings, or "
                "use spectrum(k)."
            )
