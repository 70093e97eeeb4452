"""The dictionary of kernels of an estimator on its training points, its default, and customary grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.estimators.columns import as_columns, warn_of_scales
from kernelopt.estimators.defaults import Block, default_kernels, is_default, standardised
from kernelopt.estimators.kernel_argument import as_kernel, kernel_triples
from kernelopt.grams.storage import numbered
from kernelopt.kernels import Kernel, as_strings, on_columns
from kernelopt.records import record
from kernelopt.validation import Array, shown

C_GRID = tuple(10.0**k for k in range(-3, 4))
"""The customary values of C for a grid search: seven powers of ten."""

P_GRID = (1.0, 4 / 3, 2.0, 4.0, np.inf)
"""The customary values of p: from sparse weights, p = 1, to the sum of all kernels, p = inf."""


@record("dictionary")
@dataclass(frozen=True, eq=False)
class Dictionary:
    """Named kernels, and the points on which they are evaluated.

    Attributes
    ----------
    kernels : tuple of m Kernels
        They are functions of the rows of `points(X)`.
    names : tuple of m str
        All different: equal kernels without names are numbered, as in "linear() (2)".
    blocks : tuple of Block
        What `points` puts side by side. Empty if the kernels see X itself.
    """

    kernels: Annotated[tuple[Kernel, ...], "m"]
    names: Annotated[tuple[str, ...], "m"]
    blocks: tuple[Block, ...] = ()

    def points(self, X: Array) -> Array:
        """Return the points that the kernels see, one row for each row of X."""
        return np.hstack([block.of(X) for block in self.blocks]) if self.blocks else X


def fit_dictionary(
    kernels: Any,
    X: Array,
    feature_names: Sequence[str] | None = None,
    weights: Array | None = None,
    random_state: Any = 0,
) -> Dictionary:
    """Return the dictionary that `kernels` describes for the training points X.

    Parameters
    ----------
    kernels : None, kernel, sequence of kernels, or dict from name to kernel
        A kernel is a `Kernel`, a text for `kernelopt.parse_kernel`, a function of two arrays of points, or
        None, which stands for the default kernels. The text "gaussian(0.5 median)", with any number, stands
        for the default Gaussian kernel of that width. In a sequence it may also be a triple (name, kernel,
        columns), as in scikit-learn's ColumnTransformer. The columns are an integer, a name, a list of
        these, a slice of integers or a mask.
    X : array of shape (n, d), or array of n strings
    feature_names : sequence of d str, optional
    weights : array of shape (n,), optional
        Positive. They count in means and in the median: a point of weight 2 is two points.
    random_state : int, Generator or None, default 0
        The seed of the points whose median distance is computed, where there are more than 1000.

    Returns
    -------
    Dictionary

    Raises
    ------
    ParameterError, ShapeError
        If a kernel or a column does not exist, or if columns from which a width is to be computed are
        constant.

    Warns
    -----
    ScaleWarning
        If a column that a kernel reads as it is has more than `SCALE_FACTOR` times the median standard
        deviation of those that the kernel reads.

    Notes
    -----
    The default kernels see standardised columns x: minus the mean, divided by the standard deviation and by
    the root of the number of columns. Columns that are constant are left out. With the median s of the
    distances between different points they are the Gaussian kernels of widths s/8, s/4, ..., 8s and
    the polynomials (x'z + 1)^k of degrees k = 1, 2, 3.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators.dictionary import fit_dictionary
    >>> X = np.array([[0.0, 1.0], [3.0, 1.0], [3.0, 5.0]])
    >>> fit_dictionary({"first": "gaussian(0.5)", "all": "linear()"}, X).names
    ('first', 'all')
    >>> fit_dictionary([("height", "linear()", "b")], X, ["a", "b"]).kernels
    (on_columns(kernel=linear(), columns=(1,)),)
    >>> fit_dictionary(None, X).names[2:4]
    ('gaussian(0.5 median)', 'gaussian(1 median)')
    """
    entries = list(kernel_triples(kernels))
    given = [name for name, _, _ in entries if name is not None]
    twice = [name for k, name in enumerate(given) if name in given[:k]]
    if twice:
        raise ParameterError(
            f"kernels must have different names, got two of the name {twice[0]!r}. Rename one of them."
        )
    if X.ndim == 1:
        return of_strings(entries)
    found: list[Kernel] = []
    own: list[tuple[str, Kernel]] = []  # those that see the columns as they are
    names: list[str] = []
    placed: dict[tuple[int, ...], int] = {}  # where standardised columns begin in the points
    d = X.shape[1]
    weights = np.ones(len(X)) if weights is None else weights
    raw = not all(is_default(kernel) for _, kernel, _ in entries)
    blocks = [Block(tuple(range(d)), np.zeros(d), np.ones(d))] if raw else []
    for name, kernel, columns in entries:
        chosen = None if columns is None else as_columns(columns, d, feature_names)
        if is_default(kernel):
            block = standardised(X, tuple(range(d)) if chosen is None else chosen, weights, feature_names)
            defaults = default_kernels(kernel, block.of(X), weights, random_state)
            start = placed.get(block.columns)
            if start is None:
                start = placed[block.columns] = sum(len(earlier.columns) for earlier in blocks)
                blocks.append(block)
            seen = tuple(range(start, start + len(block.columns)))
            found += [on_columns(k, seen) for k in defaults.values()]
            names += named(name, kernel, defaults)
            continue
        read = as_kernel(kernel)
        if read.domain is as_strings:
            raise ParameterError(
                f"X must hold strings for the kernel {read!r}, got points of {d} columns. Pass a list of "
                'strings, or kernels of points, such as "gaussian(1.0)".'
            )
        found.append(read if chosen is None or chosen == tuple(range(d)) else on_columns(read, chosen))
        names.append(name or repr(read))
        own.append((names[-1], found[-1]))
    warn_of_scales(own, X, weights, feature_names)
    if len(blocks) == 1 and not raw:
        found = [k.kernel for k in found if isinstance(k, on_columns)]  # they see all columns of the points
    if len(blocks) > 1 and raw:
        found = [k if isinstance(k, on_columns) else on_columns(k, tuple(range(d))) for k in found]
    return Dictionary(tuple(found), numbered(names), () if len(blocks) == 1 and raw else tuple(blocks))


def named(name: str | None, kernel: str | None, defaults: Iterable[str]) -> list[str]:
    """Return the names of default kernels in a dictionary."""
    if name and kernel is not None:
        return [name]
    return [f"{name}: {text}" if name else text for text in defaults]


def of_strings(entries: Sequence[tuple[str | None, Any, Any]]) -> Dictionary:
    """Return the dictionary of triples (name, kernel, columns) for samples that are strings.

    Raises
    ------
    ParameterError
        If a kernel is not one of strings, or has columns.
    """
    found: list[Kernel] = []
    for _, kernel, columns in entries:
        read = None if is_default(kernel) else as_kernel(kernel)
        if read is None or read.domain is not as_strings or columns is not None:
            of_columns = "" if columns is None else f" of the columns {shown(columns)}"
            given = f"{'the default kernels' if read is None else repr(read)}{of_columns}"
            raise ParameterError(
                f"samples that are strings must have kernels of strings, got {given}. Pass for instance "
                "kernels=[kernelopt.spectrum(2), kernelopt.spectrum(3)], or the matrices of other kernels as "
                "KernelStack(array of shape (m, N, N)) in the place of X."
            )
        found.append(read)
    names = [name or repr(read) for (name, _, _), read in zip(entries, found, strict=True)]
    return Dictionary(tuple(found), numbered(names))
