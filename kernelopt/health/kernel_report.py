"""`kernel_report`: whether kernel matrices are fit for learning, as numbers, a table and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.figures import STYLE, heat_map, name_places, new_axes, shortened_name
from kernelopt.grams import Grams
from kernelopt.grams.given import as_squares
from kernelopt.health.measures import NUMBERS, Stack, as_target, centred_alignments, is_estimated, measured
from kernelopt.plain_tables import html_table, text_table
from kernelopt.validation import PSD_TOLERANCE, Array
from kernelopt.validation.matrices import SYMMETRY_TOLERANCE

DUPLICATE = 0.999  # alignment from which two kernels count as near-duplicates
DIAGONAL = 0.9  # effective rank, as a share of N, from which a kernel is almost a multiple of I
LONGEST_NAME = 36  # characters of a name in the table
COLUMNS = {  # of the table: attributes and their formats
    "asymmetry": ("asymmetry", ".1e"),
    "min λ / max |λ|": ("smallest", ".1e"),
    "effective rank": ("effective_rank", ".4g"),
    "scale": ("scale", ".4g"),
    "trace": ("trace", ".4g"),
    "alignment": ("alignment", ".3f"),
}
ESTIMATED = "The smallest eigenvalues are estimates from above, by the method of Lanczos."


@dataclass(frozen=True, eq=False, repr=False)
class KernelReport:
    r"""The health of m kernel matrices on N points: numbers for each, and their alignments.

    Numbers describe the symmetric part (K + K') / 2. They are NaN where the matrix has entries that are
    not finite.

    Attributes
    ----------
    names : tuple of m str
    n_points : int
        N.
    missing : tuple of m int
        How many entries are NaN or infinite.
    first_missing : tuple of m pairs of int, or None
        The row and the column of the first of them.
    asymmetry : array of shape (m,)
        :math:`\max |K_{ij} - K_{ji}| \,/ \max |K_{ij}|`.
    smallest : array of shape (m,)
        The smallest eigenvalue, relative to the largest absolute one.
    estimated : bool
        Whether `smallest` is an estimate from above, for more than 2000 points.
    effective_rank : array of shape (m,)
        :math:`(\sum |\lambda|)^2 / \sum \lambda^2` over the eigenvalues, which is
        :math:`(\mathrm{tr}\, K)^2 / \|K\|_F^2` for a semidefinite K. It lies between 1 and
        the rank, and is the rank where all eigenvalues that are not zero have one
        absolute value. That of the zero matrix is 0. For more than 2000 points it is NaN where K is found to
        be indefinite.
    scale : array of shape (m,)
        :math:`\mathrm{tr}\, K / N - 1'K1 / N^2`, the variance of the features, by which
        ``normalize("multiplicative")`` divides.
    trace : array of shape (m,)
    alignment : array of shape (m,), or None
        The centred alignment with the target, if there is one.
    n_labelled : int or None
        n, the number of points that the target has.
    alignments : array of shape (m, m)
        The centred alignments with each other.
    """

    names: tuple[str, ...]
    n_points: int
    missing: tuple[int, ...]
    first_missing: tuple[tuple[int, int] | None, ...]
    asymmetry: Array
    smallest: Array
    estimated: bool
    effective_rank: Array
    scale: Array
    trace: Array
    alignment: Array | None
    n_labelled: int | None
    alignments: Array

    def duplicates(self, above: float = DUPLICATE) -> tuple[tuple[int, int], ...]:
        """Return the pairs i < j of kernels whose centred alignment is at least `above`.

        The centred matrices, scaled to norm one, then differ by at most sqrt(2 - 2 above) in Frobenius norm,
        4.5 % for 0.999. Multiples of one kernel, and a kernel plus a constant, are duplicates.
        """
        with np.errstate(invalid="ignore"):
            pairs = np.argwhere(np.triu(self.alignments >= above, 1))
        return tuple((int(i), int(j)) for i, j in pairs)

    def findings(self, i: int) -> tuple[str, ...]:
        """Return what is remarkable about kernel i, in words; nothing for a kernel without a fault.

        "asymmetric" and "indefinite" are above the tolerances of `Grams` and of `solve`, 1e-8 relative. A
        "constant" kernel is zero when centred, up to rounding: it cannot tell points apart. An "almost
        diagonal" one is not indefinite, and its effective rank is at least 0.9 N: no two points are similar.
        """
        if self.missing[i]:
            return (f"{self.missing[i]} entries not finite, first at {self.first_missing[i]}",)
        indefinite = self.smallest[i] < -PSD_TOLERANCE
        spread = self.n_points > 1 and self.effective_rank[i] >= DIAGONAL * self.n_points
        words = {
            "asymmetric": self.asymmetry[i] > SYMMETRY_TOLERANCE,
            "indefinite": indefinite,
            "constant": np.isnan(self.alignments[i, i]),
            "almost diagonal": spread and not indefinite,
        }
        copies = [f"duplicate of {a}" for a, b in self.duplicates() if b == i]
        return (*(word for word, found in words.items() if found), *copies[:1])

    def plot(self, ax: Any = None) -> Any:
        """Draw the centred alignments of the kernels with each other, and with the target, as a heat map.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        ax, cells, m = new_axes(ax), self.alignments, len(self.names)
        labels = [f"{i}  {shortened_name(name)}" for i, name in enumerate(self.names)]
        if self.alignment is not None:
            cells = np.block([[cells, self.alignment[:, None]], [self.alignment, np.ones((1, 1))]])
            labels.append("target y")
            for line in (ax.axhline, ax.axvline):
                line(m - 0.5, color="black", linewidth=0.8)
        heat_map(ax, cells, "centred alignment", diverging=bool((cells < 0).any()))
        numbers, last = [*map(str, range(m)), "y"][: len(labels)], len(labels) - m
        name_places(ax.xaxis, numbers, STYLE.character * (len(str(m)) + 1), last)
        name_places(ax.yaxis, labels, last=last)
        ax.set_title("Alignment of kernels")
        return ax

    def _table(self) -> tuple[list[str], list[list[str]]]:
        used = {title: each for title, each in COLUMNS.items() if getattr(self, each[0]) is not None}
        rows = [
            [str(i), shortened_name(name, LONGEST_NAME), "; ".join(self.findings(i))]
            + [rounded(getattr(self, attribute)[i], style) for attribute, style in used.values()]
            for i, name in enumerate(self.names)
        ]
        return ["", "kernel", "findings", *used], rows

    @property
    def _notes(self) -> list[str]:
        part = f"The alignment is that with the target of the first {self.n_labelled} points."
        return [ESTIMATED] * self.estimated + [part] * (self.n_labelled not in (None, self.n_points))

    def _repr_html_(self) -> str:
        header, rows = self._table()
        caption = " ".join([f"Kernels on {self.n_points} points.", *self._notes])
        return html_table(rows, header, caption, numbers=len(header) - 3)

    def __str__(self) -> str:
        header, rows = self._table()
        return "\n".join([text_table(header, rows, len(header) - 3), *self._notes])

    def __repr__(self) -> str:
        found = sum(bool(self.findings(i)) for i in range(len(self.names)))
        return f"<KernelReport: {len(self.names)} kernels on {self.n_points} points, {found} with findings>"


def kernel_report(grams: Grams | ArrayLike, y: ArrayLike | None = None) -> KernelReport:
    r"""Measure the health of kernel matrices: symmetry, definiteness, rank, scale, alignment, duplicates.

    .. math:: A(K, L) = \frac{\langle K_c, L_c \rangle_F}{\|K_c\|_F \, \|L_c\|_F}, \qquad K_c = H K H, \quad
              H = I - \tfrac1N 1 1'

    is the centred alignment [1]_ of two kernels, and with :math:`L = yy'` of a kernel and the target.
    Nothing is changed; `repair` makes indefinite matrices semidefinite.

    Parameters
    ----------
    grams : Grams, or array of shape (m, N, N) or (N, N)
        An array may be asymmetric and indefinite, and have NaN and infinite entries, which `Grams` refuses.
    y : array of shape (n,) or (n, q), n <= N, optional
        The target of the first n points: numbers as they are, or q numbers a point with L = YY'. Text and
        truth values are classes, and L_ij is 1 where points i and j are of one class, and 0 elsewhere.

    Returns
    -------
    KernelReport
        Printed, it is a table; `plot` draws the alignments.

    Raises
    ------
    ShapeError, NotFiniteError, LabelError
        If grams are no square matrices, or y no target that takes at least two values.

    Notes
    -----
    One matrix at a time is evaluated. All eigenvalues of up to 2000 points are computed, in O(m N^3)
    operations. For more points the smallest one is estimated from above by 60 steps of the method of Lanczos,
    in O(m N^2): an estimate below zero proves that the matrix is indefinite, and another one proves nothing.
    The alignments take O(m^2 N^2).

    References
    ----------
    .. [1] Cortes, Mohri, Rostamizadeh, Algorithms for learning kernels based on centered alignment, JMLR 13
       (2012), 795-828.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> X = np.array([[0.0], [1.0], [2.0], [4.0]])
    >>> grams = np.stack([X @ X.T, X @ X.T + 1, np.tanh(X @ X.T - 1)])
    >>> report = ko.kernel_report(grams, [-1, -1, 1, 1])
    >>> report
    <KernelReport: 3 kernels on 4 points, 2 with findings>
    >>> [report.findings(i) for i in range(3)]
    [(), ('duplicate of 0',), ('indefinite',)]
    >>> report.alignment.round(3), report.duplicates()
    (array([0.714, 0.714, 0.227]), ((0, 1),))
    """
    given: Stack = grams if isinstance(grams, Grams) else as_squares(grams, "grams", one=True)
    names = given.names if isinstance(given, Grams) else tuple(f"K[{i}]" for i in range(len(given)))
    N = given.shape[1]
    target = None if y is None else as_target(y, N)
    each = [measured(np.asarray(K, dtype=np.float64), target) for K in given]
    found = {name: [one[name] for one in each] for name in each[0]}
    return KernelReport(
        names=names,
        n_points=N,
        missing=tuple(found["missing"]),
        first_missing=tuple(found["first_missing"]),
        estimated=is_estimated(N),
        alignment=None if target is None else np.array(found["alignment"]),
        n_labelled=None if target is None else len(target),
        alignments=centred_alignments(given, np.array(found["size"])),
        **{name: np.array(found[name]) for name in NUMBERS},
    )


def rounded(value: float, style: str) -> str:
    """Return a number as text, and a dash where there is none."""
    return format(value, style) if np.isfinite(value) else "–"
