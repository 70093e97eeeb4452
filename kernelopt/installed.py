"""What is installed: losses, kernels, fidelities, methods and formulations, ours and those of others."""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from typing import Any, Literal, NamedTuple, get_args

from kernelopt.catalog import catalogue
from kernelopt.entry_points import subclasses
from kernelopt.fidelities import Fidelity
from kernelopt.kernels import Kernel
from kernelopt.losses import Loss
from kernelopt.methods.registry import registered
from kernelopt.validation import one_of

Kind = Literal["losses", "kernels", "fidelities", "methods", "formulations"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CLASSES: dict[str, type] = {  # ours stand in the module that has the name of the group
    "losses": Loss,
    "kernels": Kernel,
    "fidelities": Fidelity,
}


def installed(kind: Kind) -> dict[str, Any]:
    """Return what is installed of a kind by name, ours first, then what other packages bring.

    A package brings its own by an entry point in the group "kernelopt." + kind.

    Parameters
    ----------
    kind : "losses", "kernels", "fidelities", "methods" or "formulations"

    Returns
    -------
    dict
        Of losses, kernels and fidelities the classes, of methods the objects, of formulations their `Entry`
        records.

    Raises
    ------
    ParameterError
        If there is no such kind.

    Warns
    -----
    PackageWarning
        If a package brings what cannot be used: it is left out.

    Examples
    --------
    >>> from kernelopt.extend import installed
    >>> installed("losses")["hinge"]
    <class 'kernelopt.losses.classification.hinge'>
    """
    one_of(kind, "kind", KINDS)
    if kind == "formulations":
        return catalogue()
    if kind == "methods":
        catalogue()  # a package of formulations registers the methods that are for them alone
        return dict(registered())
    group, base = f"kernelopt.{kind}", CLASSES[kind]
    own = {
        name: value
        for name, value in vars(import_module(group)).items()
        if isinstance(value, type) and issubclass(value, base) and not isabstract(value) and name[0] != "_"
    }
    return own | {point.name: found for point, found in subclasses(group, base, own)}


class Listed(NamedTuple):
    """A line of the list of what is installed: its name, its package, and the first line of its docstring."""

    kind: Kind
    name: str
    package: str
    summary: str


def listed(kind: Kind) -> list[Listed]:
    """Return what is installed of a kind, as lines of a list."""
    lines = []
    for name, item in installed(kind).items():
        described = item.build if kind == "formulations" else type(item) if kind == "methods" else item
        package = described.__module__.partition(".")[0]
        lines.append(Listed(kind, name, package, (described.__doc__ or "").strip().partition("\n")[0]))
    return lines
