"""What `kernels` of an estimator may be: kernels, text, functions, and lists and dicts of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.kernels import Kernel, parse_kernel
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
            K = as_symmetric(K, f"{self!r}(X, X)")
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
