"""What `kernels` of an estimator may be, and the dictionary that it describes on the training points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.estimators.columns import (
    Block,
    as_columns,
    default_kernels,
    is_default,
    standardised,
    warn_of_scales,
)
from kernelopt.grams.storage import numbered
from kernelopt.kernels import Kernel, as_strings, on_columns, parse_kernel
from kernelopt.records import record
from kernelopt.validation import Array, as_float_array, as_symmetric, check_psd, shown


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel that is given as a function of two arrays of points, such as scikit-learn's pairwise kernels.

    Its matrices are checked, since the function may be any: between the training points the matrix is
    symmetric and positive semidefinite.

    Parameters
    ----------
    function : function of arrays of shapes (n, d) and (n_new, d)
        It returns the array of shape (n, n_new) of their kernels.
    """

    function: Callable[[Array, Array], ArrayLike]

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        other = X if Z is None else Z
        K = as_float_array(self.function(X, other), f"{self!r}(X, Z)", ndim=2)
        if K.shape != (len(X), len(other)):
            raise ShapeError(
                f"{self!r}(X, Z) must have shape (len(X), len(Z)) = {(len(X), len(other))}, got {K.shape}. "
                "Return one row for each row of X."
            )
        if Z is None:
            K = as_symmetric(K, f"{self!r}(X, X)").copy()  # the function may keep its array
            check_psd(K, f"{self!r}(X, X)")
        return K


def kernel_triples(kernels: Any) -> Iterator[tuple[str | None, Any, Any]]:
    """Return the triples (name, kernel, columns) of an argument `kernels`."""
    if kernels is None or is_kernel(kernels):
        yield None, kernels, None
        return
    if isinstance(kernels, Mapping):
        members: list[Any] = [(str(name), kernel, None) for name, kernel in kernels.items()]
    elif isinstance(kernels, Sequence):
        members = list(kernels)
    else:
        raise ParameterError(
            "kernels must be None, a kernel, a list of kernels or a dict from name to kernel, got "
            f'{shown(kernels)} ({type(kernels).__name__}). Pass for instance ["gaussian(0.5)", "linear()"].'
        )
    if not members:
        raise ParameterError(
            "kernels must hold at least one kernel, got none. Leave the argument out for the default kernels."
        )
    for member in members:
        if isinstance(member, tuple):
            if len(member) != 3 or not isinstance(member[0], str):
                raise ParameterError(
                    f"a tuple in kernels must be (name, kernel, columns), got {shown(member)}. Pass for "
                    'instance ("size", "gaussian(0.5)", [0, 1]).'
                )
            yield member
        else:
            yield None, member, None


def is_kernel(given: Any) -> bool:
    """Whether an argument stands for one kernel: an object, a text or a function."""
    return isinstance(given, str | Kernel) or callable(given)


def as_kernel(given: Any) -> Kernel:
    """Return the kernel for an object, a text or a function."""
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str):
        return parse_kernel(given)
    if isinstance(given, type) or not callable(given):
        raise ParameterError(
            "a kernel must be a Kernel, a text or a function of two arrays of points, got "
            f"{shown(given)} ({type(given).__name__}). Pass for instance kernelopt.gaussian(0.5)."
        )
    return FunctionKernel(given)


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
    the root of the number of columns. Where more than half of the columns reach both the smallest and the
    largest number of all columns, as pixels do, they have one unit, and all are divided by the same number.
    Either way the mean of x'x is one. Columns that are constant are left out. With the median s of the
    distances between different points they are the Gaussian kernels of widths 0.6 s and 1.2 s, and
    the polynomials (x'z + 1)^k of degrees k = 1, 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators.dictionary import fit_dictionary
    >>> X = np.array([[0.0, 1.0], [3.0, 1.0], [3.0, 5.0]])
    >>> fit_dictionary({"first": "gaussian(0.5)", "all": "linear()"}, X).names
    ('first', 'all')
    >>> fit_dictionary([("height", "linear()", "b")], X, ["a", "b"]).kernels
    (on_columns(kernel=linear(), columns=(1,)),)
    >>> fit_dictionary(None, X).names
    ('gaussian(0.6 median)', 'gaussian(1.2 median)', 'polynomial(1)', 'polynomial(2)')
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
    d = X.shape[1]
    weights = np.ones(len(X)) if weights is None else weights
    raw, standard = Block(tuple(range(d)), np.zeros(d), np.ones(d)), dict[tuple[int, ...], Block]()
    # Each kernel with its name, the block of the points that it sees, and the columns of the block.
    found: list[tuple[str, Kernel, Block, tuple[int, ...]]] = []
    for name, kernel, columns in entries:
        chosen = raw.columns if columns is None else as_columns(columns, d, feature_names)
        if is_default(kernel):
            block = standardised(X, chosen, weights, feature_names)
            block = standard.setdefault(block.columns, block)  # kernels of the same columns share them
            for text, default in default_kernels(kernel, block.of(X), weights, random_state).items():
                full = text if not name else f"{name}: {text}" if kernel is None else name
                found.append((full, default, block, tuple(range(len(block.columns)))))
            continue
        read = as_kernel(kernel)
        if read.domain is as_strings:
            raise ParameterError(
                f"X must hold strings for the kernel {read!r}, got points of {d} columns. Pass a list of "
                'strings, or kernels of points, such as "gaussian(1.0)".'
            )
        found.append((name or repr(read), read, raw, chosen))
    own = [(name, kernel, columns) for name, kernel, block, columns in found if block is raw]
    warn_of_scales(own, X, weights, feature_names)
    blocks = [raw] * bool(own) + list(standard.values())
    *starts, width = np.cumsum([0, *(len(block.columns) for block in blocks)]).tolist()
    kernels_of_points = []
    for _, kernel, block, columns in found:
        seen = tuple(starts[blocks.index(block)] + column for column in columns)
        # A kernel that chooses its columns itself sees those of X, which come first.
        whole = seen == tuple(range(width)) or (seen == raw.columns and isinstance(kernel, on_columns))
        kernels_of_points.append(kernel if whole else on_columns(kernel, seen))
    names = numbered([name for name, *_ in found])
    return Dictionary(tuple(kernels_of_points), names, () if blocks == [raw] else tuple(blocks))


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
