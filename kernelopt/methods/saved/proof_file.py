"""What a file keeps of a proof: the problem without its data, read from its structure, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.entry_points import subclasses
from kernelopt.errors import InputError
from kernelopt.grams import Storage
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.written import StackWriter, is_evaluated, leaves, points_of
from kernelopt.losses import (
    Loss,
    epsilon_insensitive,
    hard_margin,
    hinge,
    huberized_hinge,
    logistic,
    one_class,
    squared,
    squared_hinge,
)
from kernelopt.methods.saved.proof import Proof, SavedRisk, points_checksum, stack_checksum, values_checksum
from kernelopt.structure.affine import Affine
from kernelopt.structure.ball import read_kernels, read_weight_set
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.validation import as_float_array, as_vector, boolean, one_of, positive

OWN: dict[str, type[Loss]] = {
    kind.__name__: kind
    for kind in (
        epsilon_insensitive, hard_margin, hinge, huberized_hinge, logistic, one_class, squared, squared_hinge
    )
}  # fmt: skip
Contents = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name


def loss_classes() -> dict[str, type[Loss]]:
    """Return the classes of losses that a file may name: those of kernelopt, then those of other packages."""
    return OWN | {point.name: found for point, found in subclasses("kernelopt.losses", Loss, OWN)}


def loss_name(loss: Loss) -> str | None:
    """Return the name by which a file names the class of a loss, None if it has none."""
    classes = OWN if type(loss) in OWN.values() else loss_classes()
    return next((name for name, kind in classes.items() if kind is type(loss)), None)


def written(problem: cp.Problem | None, certificate: Certificate, stacks: StackWriter) -> Contents | str:
    """Return what a file keeps of the proof of a certificate, or the reason why nothing is kept."""
    if problem is None:
        return "the problem was dropped when the solution was pickled"
    if problem.parameters():
        return "its cvxpy parameters may have changed after the solve"
    structure = Structure(problem)
    if not structure.risks:
        return "it has no risk"
    coefficients, rest = structure.objective.coefficients, structure.rest
    if structure.maximize or not coefficients or rest is None or min(coefficients) <= 0:
        return "its objective is no sum of positive multiples of risks and an affine function of the weights"
    if not structure.variables:
        return "its kernels are fixed"
    if not certificate.feasible or len(certificate.alphas) != len(structure.risks):
        return "its certificate has no point or no dual variables"
    weight_set = read_weight_set(structure)
    if isinstance(weight_set, str):
        return weight_set
    kernels = kernels_of(structure)
    if isinstance(kernels, str):
        return kernels
    data = data_of(kernels)
    if isinstance(data, str):
        return data
    header, arrays = written_weights(structure, rest, certificate)
    risks = []
    for k, (term, storage) in enumerate(zip(structure.risks, kernels, strict=True)):
        of_risk, of_loss = written_risk(term)
        stack = stacks.describe(storage, None)
        risks.append({"coefficient": coefficients[k], **of_risk, "stack": stack})
        arrays |= {f"risk.{k}.{name}": array for name, array in of_loss.items()}
    if len(stacks.given) > 1:
        return "its kernels are of several stacks that were given as arrays"
    of_points = isinstance(data, np.ndarray)
    checksum = points_checksum(data) if of_points else stack_checksum(stacks.given[0])
    return header | {"of_points": of_points, "checksum": checksum, "risks": risks}, arrays


def kernels_of(structure: Structure) -> list[Storage] | str:
    """Return the kernels of each risk, one for each entry of the variables, or what cannot be written."""
    found = []
    for term in structure.risks:
        grams = read_kernels(term, structure.variables)
        if isinstance(grams, str):
            return grams
        if loss_name(term.learner.loss) is None:
            return f"the loss {term.learner.loss!r} is named in no entry point of a package"
        found.append(grams.storage)
    return found


def data_of(kernels: Sequence[Storage]) -> Any:
    """Return the points of all kernels, None where they were given as arrays, or what is in the way."""
    if all(map(is_evaluated, kernels)):
        sets = [points_of(storage) for storage in kernels]
        first = sets[0]
        same = first is not None and all(X is not None and np.array_equal(X, first) for X in sets)
        return first if same else "its kernels are evaluated at several sets of points"
    mixed = any(isinstance(leaf, KernelStorage) for storage in kernels for leaf in leaves(storage))
    return "its kernels are partly functions and partly arrays" if mixed else None


def written_weights(structure: Structure, rest: Affine, certificate: Certificate) -> Contents:
    """Return the constraint, a ball or else a trace, with its arrays, the prices and the candidate."""
    index, variables = structure.active[0], structure.variables
    ball, budget = structure.norm_balls[index], structure.budgets[index]
    theta = np.concatenate([np.ravel(certificate.point[v]) for v in structure.user_variables])
    constraint, p, total, row = "ball", 1.0, 1.0, np.ones(theta.size)
    if ball is not None:
        p, total = ball.p, ball.radius
    elif budget is not None:
        constraint = "at most" if budget.at_most else "equal"
        total, row = budget.total, np.concatenate([budget.rows[v] for v in variables])
    return {"constraint": constraint}, {
        "size": np.array([p, total, float(rest.constant[0])]),
        "row": row,
        "prices": np.concatenate([rest.gradient(v) for v in variables]),
        "theta": theta,
    }


def written_risk(term: RiskTerm) -> Contents:
    """Return the loss of a risk with its arguments."""
    learner = term.learner
    values = {field.name: getattr(learner.loss, field.name) for field in fields(learner.loss)}  # type: ignore[arg-type]
    arrays = {f"loss.{name}": value for name, value in values.items() if isinstance(value, np.ndarray)}
    header = {
        "loss": loss_name(learner.loss),
        "arguments": {name: value for name, value in values.items() if f"loss.{name}" not in arrays},
        "bias": learner.bias is not None,
        "checksum": values_checksum(learner.y),
    }
    return header, arrays


def read(header: Mapping[str, Any], arrays: Mapping[str, Any], parts: Mapping[str, Any]) -> Proof:
    """Return the proof that `written` has described; an error of Python or kernelopt where it is wrong."""
    p, total, offset = map(float, np.asarray(arrays["size"], dtype=float))
    theta = as_float_array(arrays["theta"], "theta", ndim=1)
    return Proof(
        one_of(header["constraint"], "constraint", ("ball", "at most", "equal")),  # type: ignore[arg-type]
        p,
        positive(total, "total"),
        offset,
        as_vector(arrays["row"], "row", theta.size),
        as_vector(arrays["prices"], "prices", theta.size),
        theta,
        boolean(header["of_points"], "of_points"),
        str(header["checksum"]),
        tuple(read_risk(entry, arrays, f"risk.{k}.") for k, entry in enumerate(header["risks"])),
        parts,
    )


def read_risk(header: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str) -> SavedRisk:
    """Return a risk without its data."""
    name = header["loss"]
    classes = OWN if name in OWN else loss_classes()
    if name not in classes:
        raise InputError(f"the loss must be one of {', '.join(classes)}, got {name!r}.")
    start = f"{prefix}loss."
    given = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
    return SavedRisk(
        positive(header["coefficient"], "coefficient"),
        classes[name](**header["arguments"], **given),
        boolean(header["bias"], "bias"),
        str(header["checksum"]),
        dict(header["stack"]),
    )
