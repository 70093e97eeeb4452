"""`KernelStack`: precomputed kernels that are indexed by sample, also where a file has left them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError
from kernelopt.grams import Grams, as_grams
from kernelopt.grams.arguments import as_names
from kernelopt.grams.written import sampled
from kernelopt.records import digest
from kernelopt.validation import Array, Index, shown


class KernelStack:
    r"""Precomputed kernel matrices of all samples, with a choice of samples.

    Indexing it chooses samples and copies nothing, so that `GridSearchCV`, `cross_val_score`, `Pipeline` and
    learning curves split it as they split an array of points. `fit` takes the kernels between the
    chosen samples, and `predict` those between its samples and the training samples.

    Parameters
    ----------
    grams : Grams, array of shape (m, N, N), list of m arrays (N, N), or dict from name to such an array
        The kernels between all N samples, those for prediction included.
    names : sequence of m str, optional
        The names of the kernels; a dict has them already.
    missing : boolean array of shape (m, N), optional
        True where sample i has no view m, as a patient without an image: the kernel of that view does not
        know the sample, and its row and column may hold anything, such as NaN. See the notes.

    Attributes
    ----------
    grams : Grams
        The kernels of all N samples.
    samples : array of shape (n,)
        The chosen samples, as positions in `grams`.
    checksum : str
        It tells the matrices of all samples from others.
    shape : tuple (n, m)
        The numbers of chosen samples and of kernels.
    complete : bool
        Whether every sample has every view.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no stack of symmetric matrices.
    ShapeError, ParameterError
        If there is not one name for each kernel, or if two are the same.

    Notes
    -----
    With `missing` the m kernels are

    .. math::

        K_l \leftarrow S D_l K_l D_l S, \qquad (D_l)_{ii} = [\text{sample } i \text{ has view } l], \qquad
        S_{ii}^2 = m / \textstyle\sum_l (D_l)_{ii}.

    :math:`D_l K_l D_l` is the kernel of the features of view l with zero in the place of features that are
    missing, so that a function of it does not see the sample; congruences keep a matrix positive
    semidefinite. For kernels with ones on the diagonal, S makes :math:`\sum_l k_l(x_i, x_i) = m` for each
    sample again: a sample with one view of two counts it twice, and is as far from zero as the others.
    New samples have to be in the stack from the start, since an array of kernels does not say which views a
    sample lacks: `predict` refuses it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import KernelStack
    >>> stack = KernelStack([np.eye(4), np.ones((4, 4))], names=["one", "two"])
    >>> stack[[0, 2]]
    KernelStack(2 of 4 samples, 2 kernels: one, two)
    >>> stack[[1, 3]].cross(stack[[3]])[0]
    array([[0.],
           [1.]])
    """

    def __init__(
        self,
        grams: Grams | ArrayLike | Mapping[str, ArrayLike],
        names: Sequence[str] | None = None,
        *,
        missing: ArrayLike | None = None,
    ) -> None:
        matrices: Any = grams
        if isinstance(grams, Mapping):
            if names is not None:
                raise ParameterError(
                    f"names must be None for a dict of kernels, which has names, got {shown(names)}. Leave "
                    "one of them out."
                )
            names, matrices = [*map(str, grams)], [*grams.values()]
        try:
            self.grams = as_grams(matrices if missing is None else without_missing(matrices, missing))
        except NotFiniteError as error:
            error.add_note("Where a sample lacks a view, pass missing=: its row and column may hold NaN.")
            raise
        if names is not None:
            self.grams = Grams(self.grams.storage.renamed(as_names(names, len(self.grams))))
        self.names = self.grams.names
        self.samples: Index = np.arange(self.grams.n_points)
        self.checksum = digest(sampled(self.grams))  # the slices have it too
        self.complete = missing is None or not np.any(missing)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of chosen samples and of kernels."""
        return self.samples.size, len(self.grams)

    ndim = 2

    def __len__(self) -> int:
        return self.samples.size

    def __getitem__(self, chosen: Any) -> KernelStack:
        """Return the stack of some of the chosen samples: by positions, by a mask or by a slice."""
        if isinstance(chosen, tuple):  # scikit-learn writes array[chosen, ...]
            chosen, *rest = chosen
            if any(part is not Ellipsis and part != slice(None) for part in rest):
                raise InputError(
                    f"a KernelStack is indexed by sample, got the index {shown((chosen, *rest))}. Choose "
                    "kernels with KernelStack(grams.subset([0, 2]))."
                )
        try:
            samples = self.samples[chosen]
        except IndexError as error:
            raise InputError(
                f"a KernelStack of {len(self)} samples is indexed by positions from 0 to {len(self) - 1}, a "
                f"mask or a slice, got {shown(chosen)}. Count samples among the chosen ones."
            ) from error
        part = object.__new__(KernelStack)
        vars(part).update(vars(self), samples=np.atleast_1d(samples))
        return part

    def __repr__(self) -> str:
        names = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        return (
            f"KernelStack({len(self)} of {self.grams.n_points} samples, {len(self.names)} kernels: {names})"
        )

    def joined(self, other: KernelStack) -> KernelStack:
        """Return the stack of these samples followed by the samples of another choice from the same stack.

        Parameters
        ----------
        other : KernelStack
            Of the same kernels.
        """
        self.check_same(other)
        both = self[:]
        both.samples = np.concatenate([self.samples, other.samples])
        return both

    def gram(self) -> Grams:
        """Return the kernels between the chosen samples."""
        whole = np.array_equal(self.samples, np.arange(self.grams.n_points))
        return self.grams if whole else self.grams.block(self.samples)

    def cross(self, training: KernelStack) -> Array:
        """Return the kernels between these samples and another choice of samples, shape (m, n, n_training).

        Parameters
        ----------
        training : KernelStack
            The other samples.

        Raises
        ------
        InputError
            If the two are no choices from the same stack.
        """
        self.check_same(training)
        return np.asarray(self.grams.storage.between(self.samples, training.samples))

    def check_same(self, training: KernelStack) -> None:
        """Raise an `InputError` if the two are no choices from the same stack.

        Parameters
        ----------
        training : KernelStack
            The other samples.
        """
        refuse_other(self, training.checksum)


def as_stack(samples: Any) -> KernelStack:
    """Return samples of precomputed kernels, which must be a `KernelStack`."""
    if not isinstance(samples, KernelStack):
        raise InputError(
            "samples of kernel, transform and leave_one_out must be a KernelStack for a model of precomputed "
            f"kernels, got {shown(samples)}, which does not hold the kernels between all of them. "
            "Pass stack[test]."
        )
    return samples


def refuse_other(stack: KernelStack, checksum: str) -> None:
    """Raise an `InputError` if a stack is not the one with a checksum, on which a model was trained."""
    if stack.checksum != checksum:
        raise InputError(
            "samples must be chosen from the KernelStack of the training samples, which holds the kernels "
            f"between both, got another stack: {stack!r}. Make one stack of all samples and pass "
            "stack[train] to fit and stack[test] to predict."
        )


def without_missing(grams: Any, missing: ArrayLike) -> Array:
    """Return kernels whose missing views are zero, scaled as the notes of `KernelStack` say.

    Raises
    ------
    ShapeError
        If `missing` has no entry for each kernel and each sample.
    InputError
        If a sample has no view at all.
    """
    stack, gaps = np.array(grams, dtype=float), np.asarray(missing)
    if gaps.dtype != bool or gaps.shape != stack.shape[:2]:
        raise ShapeError(
            f"missing must be a boolean array of shape (m, N) = {stack.shape[:2]}, got {gaps.dtype} of shape "
            f"{gaps.shape}. Pass True where a sample has no view."
        )
    for i in np.flatnonzero(gaps.all(axis=0))[:1]:
        raise InputError(
            f"missing must leave each sample a view, got none of sample {i}, counted from 0. Leave it out."
        )
    stack[gaps[:, :, None] | gaps[:, None, :]] = 0.0
    scale = np.sqrt(len(gaps) / (~gaps).sum(axis=0))
    return np.asarray(stack * scale[:, None] * scale)
