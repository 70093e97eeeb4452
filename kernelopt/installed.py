"""The losses, kernels, fidelities, parts, methods and formulations of kernelopt and of other packages."""

from __future__ import annotations

import warnings
from importlib import import_module
from inspect import isabstract
from typing import Any, Literal, get_args

import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.entry_points import subclasses
from kernelopt.errors import PackageWarning
from kernelopt.fidelities import Fidelity
from kernelopt.kernels import Kernel
from kernelopt.losses import Loss
from kernelopt.methods.selection import registered
from kernelopt.structure.parts import Part
from kernelopt.validation import one_of

Kind = Literal["losses", "kernels", "fidelities", "parts", "methods", "formulations"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BASE_CLASSES: dict[str, tuple[type, tuple[str, ...]]] = {  # with the modules that have the ones of kernelopt
    "losses": (Loss, ("kernelopt.losses",)),
    "kernels": (Kernel, ("kernelopt.kernels",)),
    "fidelities": (Fidelity, ("kernelopt.fidelities",)),
    "parts": (Part, ("kernelopt.structure.parts", "kernelopt.structure.powers")),
}


def installed(kind: Kind) -> dict[str, Any]:
    """Return what is installed of a kind, by name: first that of kernelopt, then that of other packages.

    A package names what it adds in an entry point of the group "kernelopt." + kind.

    Parameters
    ----------
    kind : "losses", "kernels", "fidelities", "parts", "methods" or "formulations"

    Returns
    -------
    dict
        The classes of losses, kernels, fidelities and parts, which are sets and prices of weights; the
        objects of methods; the `Entry` records of formulations.

    Raises
    ------
    ParameterError
        If there is no such kind.

    Warns
    -----
    PackageWarning
        If an entry point of a package cannot be used. It is left out.

    Examples
    --------
    >>> from kernelopt.installed import installed
    >>> installed("losses")["hinge"]
    <class 'kernelopt.losses.classification.hinge'>
    """
    one_of(kind, "kind", KINDS)
    if kind == "formulations":
        return catalogue()
    if kind == "methods":
        catalogue()  # imports the packages of formulations, which may register methods for these
        return dict(registered())
    group, (base, modules) = f"kernelopt.{kind}", BASE_CLASSES[kind]
    own = {
        name: value
        for module in modules
        for name, value in vars(import_module(module)).items()
        if isinstance(value, type) and issubclass(value, base) and not isabstract(value) and name[0] != "_"
    }
    return own | {point.name: found for point, found in subclasses(group, base, own)}


def listed(kind: Kind) -> list[dict[str, str]]:
    """Return what is installed of a kind, as lines of `kernelopt list`.

    Returns
    -------
    list of dicts
        With the keys kind, name, package and summary, the first line of the docstring; of formulations also
        takes, the data beside kernels, and reference, the paper with its theorem, which are empty for other
        kinds.

    Warns
    -----
    PackageWarning
        As `installed`; also where a formulation's example cannot be built, which states the reference.
    """
    lines = []
    for name, item in installed(kind).items():
        described = item.build if kind == "formulations" else type(item) if kind == "methods" else item
        package = described.__module__.partition(".")[0]
        summary = (described.__doc__ or "").strip().partition("\n")[0]
        entry = isinstance(item, Entry)
        more = {"takes": item.takes if entry else "", "reference": reference_of(item) if entry else ""}
        lines.append({"kind": kind, "name": name, "package": package, "summary": summary, **more})
    return lines


def reference_of(entry: Entry) -> str:
    """Return the reference of a formulation, which its example states; empty, with a warning, without one."""
    try:
        return entry.example(np.random.default_rng(0)).reference
    except Exception as error:  # a foreign package may raise anything
        warnings.warn(
            PackageWarning(
                f"the example of {entry.name!r} must return a Formulation, got {type(error).__name__}: "
                f"{error}. It is listed without its reference: correct its package."
            ),
            stacklevel=2,
        )
        return ""
