"""`RememberedStack`: the stack of a loaded estimator, whose matrices are not in the file."""

from __future__ import annotations

from collections.abc import Sequence

from kernelopt.errors import InputError
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.grams import Grams
from kernelopt.grams.normalized import SphericalStorage
from kernelopt.grams.written import sampled
from kernelopt.records import digest
from kernelopt.validation import Index


def raw_grams(stack: KernelStack, spherical: bool) -> Grams:
    """Return the kernels of a stack as they were given."""
    storage = stack.grams.storage
    return Grams(storage.base) if spherical and isinstance(storage, SphericalStorage) else stack.grams


class RememberedStack(KernelStack):
    """The stack that a loaded estimator was fitted on, whose matrices are not in the file.

    It takes the matrices of the first stack of new samples that is found to be the same, by a checksum.
    """

    def __init__(self, names: Sequence[str], samples: Index, n_points: int, checksum: str, spherical: bool):
        self.names, self.samples = tuple(names), samples
        self.n_points, self.checksum, self.scaled = n_points, checksum, spherical
        self._owner = ""

    def __repr__(self) -> str:
        return f"KernelStack({len(self)} of {self.n_points} samples, {len(self.names)} kernels, from a file)"

    def check_same(self, training: KernelStack) -> None:
        if self._owner == training._owner:
            return
        grams = training.grams
        same = (len(grams), grams.n_points) == (len(self.names), self.n_points)
        if not same or digest(sampled(grams)) != self.checksum:
            raise InputError(
                f"samples must be chosen from the KernelStack of the training samples, {self!r}, got another "
                f"stack: {training!r}. Make that stack again, and pass stack[test] to predict."
            )
        self.grams = grams.normalize("spherical") if self.scaled else grams
        self._owner = training._owner
