"""Kernels on points of R^d that are all functions of one distance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.rows import Rows
from kernelopt.grams.storage import Storage
from kernelopt.grams.stored import IdentityStorage
from kernelopt.grams.sweeps import Place
from kernelopt.kernels import Profile
from kernelopt.kernels.profile import Metric
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Family:
    """Kernels k_m(x, z) = f_m(d(x, z)) of one distance d, and k_m(x, x) = own_m.

    Attributes
    ----------
    profiles : list of Profile
    located : pair of Rows and Place, or None
        All points, and the map to the columns of the distance, less the mean of the points. None if no kernel
        depends on a distance.
    metric : str or None
    """

    profiles: tuple[Profile, ...]
    located: tuple[Rows, Place] | None = None
    metric: Metric | None = None

    def divided(self, c: Array) -> Family:
        """Return the kernels divided by constants c."""
        return replace(self, profiles=tuple(p.times(1 / s) for p, s in zip(self.profiles, c, strict=True)))


def family(storage: Storage) -> Family | None:
    """Return the kernels of a storage as functions of one distance; None if they are not that."""
    if isinstance(storage, KernelStorage):
        return of_functions(storage)
    if isinstance(storage, IdentityStorage):
        return Family((Profile.constant(0.0, 1.0),))
    if isinstance(storage, ScaledStorage):
        read = family(storage.base)
        return read and read.divided(storage.constants)
    if isinstance(storage, JoinedStorage):
        return of_parts([family(part) for part in storage.parts])
    return None


def of_functions(storage: KernelStorage) -> Family | None:
    """Return the family of kernel functions, if their profiles have one distance."""
    profiles = [p for p in storage.profiles if p is not None]
    distances = {p.distance for p in profiles if p.metric is not None}
    if len(profiles) < len(storage) or len(distances) > 1:
        return None
    if not distances:
        return Family(tuple(profiles))
    metric, columns = distances.pop()
    return Family(tuple(profiles), storage.located(columns), metric)


def of_parts(parts: list[Family | None]) -> Family | None:
    """Return the families of several storages as one, if their distances are equal on the same points."""
    found: Family | None = Family(())
    several = [part for part in parts if part is not None]
    if len(several) < len(parts):
        return None
    first = next((part for part in several if part.located is not None), None)
    for part in several:
        if part.located is None or first is None or first.located is None or part is first:
            continue
        (rows, place), (others, same) = part.located, first.located
        if part.metric != first.metric or not (rows.same(others) and place.same(same)):
            return None
    found = first or several[0]
    return replace(found, profiles=tuple(p for part in several for p in part.profiles))
