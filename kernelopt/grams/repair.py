"""`repair`: positive semidefinite matrices in the place of indefinite ones; a quick test for these."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ConvergenceWarning, InputError, ShapeError
from kernelopt.grams.given import as_squares
from kernelopt.grams.grams import Grams, as_grams
from kernelopt.numerics.decompositions import RANK_TOLERANCE, pseudoinverse
from kernelopt.numerics.nearest_correlation import nearest_correlation
from kernelopt.validation import PSD_TOLERANCE, Array, as_float_array, one_of

Repair = Literal["clip", "flip", "shift", "nearest"]

LARGEST_GAP = 1e-10  # of "nearest", relative to |K|^2: the distance to the nearest matrix is below 1e-5 |K|
CONSISTENT = 1e-8  # largest difference of P K and the repaired matrix, relative to its largest entry


@dataclass(frozen=True, eq=False, repr=False)
class Repaired:
    """Repaired kernel matrices, and the map that gives the kernels of new points.

    Attributes
    ----------
    how : "clip", "flip", "shift" or "nearest"
    grams : Grams
        The m repaired matrices. A matrix that was positive semidefinite is kept as it was.
    smallest : array of shape (m,)
        The smallest eigenvalue before the repair, relative to the largest absolute one.
    change : array of shape (m,)
        The Frobenius norm of the difference of each matrix, relative to the norm of the matrix before.
    """

    how: Repair
    grams: Grams
    smallest: Array
    change: Array
    _maps: tuple[Array | None, ...]  # P for each matrix, None for the identity
    _without: tuple[int, ...]  # the matrices that have no P
    _single: bool

    @property
    def gram(self) -> Array:
        """The repaired matrix, shape (N, N), where there is one.

        Raises
        ------
        InputError
            If there are several.
        """
        if len(self.grams) > 1:
            raise InputError(
                f"gram is the one repaired matrix, got {len(self.grams)} of them. Read grams, the stack."
            )
        return self.grams[0]

    def transform(self, cross: ArrayLike) -> Array:
        """Return the repaired kernels between new points and the N points.

        The repair of the N points multiplies their matrix K by a matrix P. New rows k(x)' become k(x)' P'.

        Parameters
        ----------
        cross : array of shape (m, n_new, N), or (n_new, N) where one matrix was repaired
            The kernels as they are, before the repair: k(x, x_j) of each new point x.

        Returns
        -------
        array of the same shape
            For the rows of the N points themselves these are the rows of the repaired matrices; after "shift"
            they are so off the diagonal.

        Raises
        ------
        ShapeError, NotFiniteError
            If cross is no such array.
        InputError
            After "nearest", if K is singular and the repaired matrix is no P K.
        """
        rows = as_float_array(cross, "cross")
        wanted = (len(self.grams), -1, self.grams.n_points)
        stacked = rows[None] if self._single and rows.ndim == 2 else rows
        if stacked.ndim != 3 or stacked.shape[::2] != wanted[::2]:
            raise ShapeError(
                f"cross must have shape (m, n_new, N) with m = {wanted[0]} and N = {wanted[2]}, got "
                f"{rows.shape}. Pass the kernels between the new points and the N points that were repaired."
            )
        for i in self._without:
            raise InputError(
                'cross has no repaired rows after "nearest" where the matrix is singular, got '
                f'{self.grams.names[i]}, which is. Use "clip" or "flip", or repair the N points and the new '
                "ones together."
            )
        found = stacked.copy()
        for i, P in enumerate(self._maps):
            if P is not None:
                found[i] = stacked[i] @ P.T
        return found[0] if rows.ndim == 2 else found

    def __repr__(self) -> str:
        return (
            f"<Repaired by {self.how}: {len(self.grams)} kernels on {self.grams.n_points} points, "
            f"changed by up to {self.change.max():.1%} of their norm>"
        )


def repair(grams: Grams | ArrayLike, how: Repair) -> Repaired:
    r"""Make symmetric matrices positive semidefinite, and new rows of them in the same way.

    =========  ====================================================  ==================================
    how        K = V diag(lambda) V' becomes                         k(x) of a new point x becomes
    =========  ====================================================  ==================================
    "clip"     V diag(max(lambda, 0)) V'                             P k(x), P = V diag(1 or 0) V'
    "flip"     V diag(abs(lambda)) V'                                P k(x), P = V diag(1 or -1) V'
    "shift"    K - min(lambda_min, 0) I                              k(x)
    "nearest"  the nearest semidefinite X with the diagonal of K     P k(x), P = X K^+
    =========  ====================================================  ==================================

    In P of "clip" and "flip" the one stands for the eigenvalues that are at least zero. Clipping gives the
    nearest positive semidefinite matrix in Frobenius norm, and in general another diagonal. "nearest" keeps
    the diagonal: where that is one, it gives the nearest correlation matrix [2]_.

    The maps are from [1]_: K is multiplied by P, and so are new rows. A shift changes the similarity of
    each point with itself alone. So the rows of K are mapped to the rows of the repaired matrix, but for the
    diagonal after a shift. A matrix that is positive semidefinite is kept, and so are its new rows.

    Parameters
    ----------
    grams : Grams, or array of shape (m, N, N) or (N, N)
        Symmetric. For similarities that are not, repair (K + K') / 2, and later pass the means of k(x, x_j)
        and k(x_j, x).
    how : "clip", "flip", "shift" or "nearest"
        Which of the four; see the table.

    Returns
    -------
    Repaired
        `.grams` are the matrices, `.transform(cross)` maps the kernels of new points, and `.change` says how
        much was changed.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError, ParameterError
        If an argument is wrong.
    InputError
        If a diagonal entry is negative: no semidefinite matrix has it, and "nearest" would keep it.

    Warns
    -----
    ConvergenceWarning
        If the duality gap of "nearest" is above 1e-10 of the squared norm of K.

    Notes
    -----
    One eigendecomposition of order N for each matrix. "nearest" takes some dozens: it maximises the dual
    problem by a quasi-Newton method.

    The map after "nearest" may enlarge errors of k(x), by at most the norm of X over the smallest absolute
    eigenvalue of K. "clip" and "flip" enlarge none: prefer these where k(x) comes with noise.

    The kernel among several new points need not be positive semidefinite.

    References
    ----------
    .. [1] Chen, Garcia, Gupta, Rahimi, Cazzanti, Similarity-based classification: concepts and algorithms,
       JMLR 10 (2009), 747-776.
    .. [2] Higham, Computing the nearest correlation matrix: a problem from finance, IMA Journal of Numerical
       Analysis 22 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> S = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
    >>> for how in ("clip", "flip", "shift", "nearest"):
    ...     repaired = ko.repair(S, how)
    ...     print(how, repaired.gram.round(3).tolist(), repaired.transform([[1.0, 0.0]]).round(3))
    clip [[1.5, 1.5], [1.5, 1.5]] [[0.5 0.5]]
    flip [[2.0, 1.0], [1.0, 2.0]] [[0. 1.]]
    shift [[2.0, 2.0], [2.0, 2.0]] [[1. 0.]]
    nearest [[1.0, 1.0], [1.0, 1.0]] [[0.333 0.333]]
    >>> ko.repair(S, "clip")
    <Repaired by clip: 1 kernels on 2 points, changed by up to 31.6% of their norm>
    """
    one_of(how, "how", get_args(Repair))
    single = False
    if not isinstance(grams, Grams):
        array = as_squares(grams, "grams", one=True)
        single = np.ndim(grams) == 2
        grams = as_grams(array)
    K = np.array(grams, dtype=np.float64)
    maps: list[Array | None] = [None] * len(K)
    without: list[int] = []
    smallest, change = np.zeros(len(K)), np.zeros(len(K))
    for i in range(len(K)):
        unit = 2.0 ** (int(np.frexp(np.abs(K[i]).max())[1]) - 1)  # a power of two, so that no digit changes
        S = K[i] / unit
        lam, V = np.linalg.eigh(S)
        smallest[i] = lam[0] / (float(np.abs(lam).max()) or 1.0)
        if lam[0] >= 0:
            continue
        if how == "nearest":
            X = nearest(S, grams.names[i])
            P: Array | None = X @ pseudoinverse(lam, V)
            if np.abs(P @ S - X).max() > CONSISTENT * np.abs(X).max():
                without.append(i)
        else:
            X, P = spectral(S, lam, V, how)
        maps[i] = P if smallest[i] < -RANK_TOLERANCE else None
        change[i] = np.linalg.norm(X - S) / np.linalg.norm(S)
        K[i] = X * unit
    K.flags.writeable = False
    repaired = Grams.from_array(K, grams.names)
    return Repaired(how, repaired, smallest, change, tuple(maps), tuple(without), single)


def spectral(S: Array, lam: Array, V: Array, how: Repair) -> tuple[Array, Array | None]:
    """Return S with a transformed spectrum, and P with P S = that; None for the identity."""
    if how == "shift":
        return S - lam[0] * np.eye(len(S)), None
    below = lam < -RANK_TOLERANCE * np.abs(lam).max()
    times = 1.0 if how == "clip" else 2.0  # the negative part of S is taken away, or taken away and added
    low, negative = V[:, lam < 0] * np.sqrt(-lam[lam < 0]), V[:, below]
    X = S + times * (low @ low.T)
    return (X + X.T) / 2, np.eye(len(S)) - times * (negative @ negative.T)


def nearest(S: Array, name: str) -> Array:
    """Return the nearest semidefinite matrix with the diagonal of S, which must not be negative."""
    for j in np.flatnonzero(S.diagonal() < 0)[:1]:
        raise InputError(
            'grams must have no negative diagonal entries for "nearest", which keeps them, got one at '
            f'({j}, {j}) of {name}. Use "clip".'
        )
    X, gap = nearest_correlation(S, S.diagonal())
    if gap > LARGEST_GAP:
        warnings.warn(
            f"the nearest matrix to {name} is known up to a duality gap of {gap:.1e} of its squared norm. "
            'The result is semidefinite and has its diagonal; "clip" has no such gap.',
            ConvergenceWarning,
            stacklevel=3,
        )
    return X


LEADING_POINTS = 100  # order of the block that is tested: its factorisation takes 0.1 ms


def check_leading_blocks(grams: Grams) -> None:
    """Raise `NotPSDError` for a kernel whose block on the first hundred points is indefinite.

    Methods that factor no kernel would not notice an indefinite one. A Cholesky factor of all N points
    would take as long as such a method. Kernels that are PSD by construction are not evaluated.
    """
    if grams.known_semidefinite:
        return
    size = min(grams.n_points, LEADING_POINTS)
    block = grams.block(slice(0, size))
    for i, K in enumerate(block):
        shifted = np.array(K)
        shifted[np.diag_indices(size)] += PSD_TOLERANCE * float(np.abs(np.diag(K)).max(initial=0.0))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:  # indefinite, or zero, or singular up to rounding: `factor` decides
            grams.factor(i)
