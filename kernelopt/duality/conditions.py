"""The conditions of Karush, Kuhn and Tucker at a certificate, measured one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernelopt.duality.assembly import parts
from kernelopt.duality.check import inner, set_value
from kernelopt.duality.lagrangian import Read, read_lagrangian
from kernelopt.duality.residuals import coefficients, gradient, largest, off_cone, sides
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.trials import given, lagrangian_at, maximized, objective_at, scaled_alpha
from kernelopt.errors import InputError, SolverError
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import RiskTerm, Structure

WIDENED = 1 + 1e-9  # a hard margin of 1 - 1e-16 has the loss infinity; it is evaluated at this multiple of z


class Condition(NamedTuple):
    """A condition of optimality with its residual.

    Attributes
    ----------
    kind : str
        "primal feasibility", "dual feasibility", "stationarity", "complementarity", "machine" or "gap".
    where : str
        The constraint, the variable or the risk.
    residual : float
        How far from true the condition is, in the units of the problem; nan where it was not measured.
    scale : float
        The size of the numbers that the residual is the rest of.
    why_not : str
        Why it was not measured.
    """

    kind: str
    where: str
    residual: float
    scale: float = 1.0
    why_not: str = ""

    @property
    def relative(self) -> float:
        """The residual over the scale."""
        return self.residual / max(self.scale, np.finfo(float).tiny)


class Measurement:
    """A point and its multipliers: alpha from the certificate, the others the best ones for that alpha."""

    def __init__(self, structure: Structure, certificate: Any) -> None:
        self.structure, self.certificate = structure, certificate
        self.read: Read = read_lagrangian(structure)
        self.model = self.read.model
        self.reason = self.set_point() or self.set_multipliers()

    def set_point(self) -> str:
        """Set the structure's variables to the point of the certificate; return why that is not possible."""
        point = {variable.id: value for variable, value in self.certificate.point.items()}
        missing = [v.name() for v in self.structure.user_variables if v.id not in point]
        if missing:
            raise InputError(
                f"the solution must have a point of this problem, got none for {', '.join(missing)} in "
                "kkt_table. Pass the problem that was solved, and a solution that is feasible."
            )
        for variable, copy in zip(self.structure.user_variables, self.structure.variables, strict=True):
            set_value(copy, np.asarray(point[variable.id], dtype=float))
        values = [machine.value for machine in self.certificate.machines]
        self.primal = objective_at(self.structure, values)
        self.size = max(abs(self.primal), self.certificate.floor)
        return ""

    def set_multipliers(self) -> str:
        """Set the values of all multipliers; return why that is not possible."""
        alphas = {id(term): a for term, a in zip(self.structure.risks, self.certificate.alphas, strict=False)}
        fixed: dict[str, Any] = {}
        for term, multiplier, weight in self.read.alphas:
            if id(term) not in alphas:
                return "the certificate has no dual variables of the risk"
            fixed[multiplier.variable.name()] = scaled_alpha(alphas[id(term)], weight)
        for variable in self.structure.variables:
            fixed[f"z[{variable.name()}]"] = np.asarray(variable.value)  # the point of Dorn's dual is x
        try:
            self.dual, values = maximized(self.model, fixed)
        except SolverError as error:
            return f"no multipliers were found for the alpha of the certificate ({error})"
        for multiplier in self.model.multipliers:
            value = values.get(multiplier.variable.name())
            if value is None:
                return f"the multiplier {multiplier.variable.name()} has no value"
            multiplier.definition = given(value)
        at_point = lagrangian_at(self.read, values)
        self.above_dual = float(np.ravel(at_point.value)[0]) - self.dual  # L(x, y) - min over x of L(x, y)
        for shift in self.model.shifts.values():
            shift.variable.save_value(np.zeros(shift.variable.shape))
        return ""

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions."""
        yield from self.primal_feasibility()
        for kind, measure in (
            ("dual feasibility", self.dual_feasibility),
            ("stationarity", self.stationarity),
            ("complementarity", self.complementarity),
        ):
            yield from [Condition(kind, "all", np.nan, why_not=self.reason)] if self.reason else measure()
        for k, term in enumerate(self.structure.risks):
            yield from self.machine(k, term)
        if self.reason:
            yield Condition("gap", "objective - dual function", np.nan, why_not=self.reason)
        else:
            yield Condition("gap", "objective - dual function", abs(self.primal - self.dual), self.size)

    def primal_feasibility(self) -> Iterator[Condition]:
        """Yield the violation of every constraint and of every sign."""
        for i, constraint in enumerate(self.structure.lifted.constraints):
            label = constraint.label or f"constraint {i}"
            yield Condition("primal feasibility", label, largest(violation(constraint)), sides(constraint))
        for variable in self.structure.variables:
            signs = [text for name, (text, _) in SIGNS.items() if variable.attributes[name] is True]
            signs += ["in its bounds"] if variable.attributes.get("bounds") is not None else []
            if signs and not variable.attributes["diag"]:
                value = np.asarray(variable.value)
                off = largest(np.abs(variable.project(value) - value))
                words = f"{variable.name()} {', '.join(signs)}"
                yield Condition("primal feasibility", words, off, max(largest(np.abs(value)), 1e-300))

    def dual_feasibility(self) -> Iterator[Condition]:
        """Yield the violation of the domains of the conjugates and of the dual cones."""
        pieces = len(self.model.pieces)
        found: dict[str, tuple[float, float]] = {}
        for (i, _), constraint in parts(self.model).items():
            if i < pieces:
                label = constraint.label or "dual cone"
                old = found.get(label, (0.0, 0.0))
                found[label] = (max(old[0], largest(violation(constraint))), max(old[1], sides(constraint)))
        for m in self.model.multipliers:
            if m.variable.attributes["nonneg"] or m.variable.attributes["PSD"]:
                value = np.asarray(m.expression.value)
                off = largest(np.abs(m.variable.project(value) - value))
                word = ">= 0" if m.variable.attributes["nonneg"] else ">> 0"
                found[f"{m.variable.name()} {word}"] = (off, largest(np.abs(value)))
        for label, (residual, scale) in found.items():
            yield Condition("dual feasibility", label, residual, scale)

    def stationarity(self) -> Iterator[Condition]:
        """Yield the distance of the gradient by every variable from the cone in which it must be."""
        for variable in self.structure.variables:
            row = self.model.rows[variable.id]
            g, scale = gradient(row)
            yield Condition("stationarity", variable.name(), off_cone(row, g), scale)

    def complementarity(self) -> Iterator[Condition]:
        """Yield the equalities that hold between the multipliers and the variables at an optimum.

        They are <multiplier, slack> of every constraint and bound, <gradient, x> of every variable with a
        sign, those of the kernels of risks and of the fidelities, and one for all other atoms together: the
        rest of L(x, y) - min over x of L(x, y), which is the sum of all.
        """
        rest = self.above_dual
        for i, constraint in enumerate(self.structure.lifted.constraints):
            label = constraint.label or f"constraint {i}"
            if i not in self.model.of_constraints:
                yield Condition(
                    "complementarity", label, np.nan, why_not=f"{label} has no multiplier of its own"
                )
                continue
            values = self.model.of_constraints[i]()
            product = inner(constraint, constraint, values[0] if len(values) == 1 else values)
            yield Condition("complementarity", label, abs(product), self.size)
        for variable in self.structure.variables:
            row = self.model.rows[variable.id]
            if row.curvature is not None:
                continue
            product = float(gradient(row)[0] @ np.ravel(variable.value, order="F"))
            rest -= product
            if row.kind != "free":
                yield Condition("complementarity", f"gradient by {variable.name()}", abs(product), self.size)
        for words, product in self.other_products():
            rest -= product
            yield Condition("complementarity", words, abs(product), self.size)
        yield Condition("complementarity", "subgradients of the atoms", abs(rest), self.size)

    def other_products(self) -> Iterator[tuple[str, float]]:
        """Yield the products of bounds, of the kernels of risks and of fidelities, with their words."""
        for key, (name, constraint) in self.read.bounds.items():
            yield name, -inner(constraint, constraint, self.model.of_constraints[key]()[0])
        for words, product in self.model.complements:
            yield words, product()

    def machine(self, k: int, term: RiskTerm) -> Iterator[Condition]:
        """Yield the two Fenchel-Young equalities of a machine, of its loss and of its function."""
        several = len(self.structure.risks) > 1
        word = f" of risk {k + 1}" if several else ""
        known = k < len(self.certificate.alphas) and k < len(self.certificate.machines)
        Ks = term.values()
        if not known or Ks is None:
            why = f"the certificate has no machine{word or ' of the risk'}"
            yield Condition("machine", f"loss{word}", np.nan, why_not=why)
            return
        alpha, machine, learner = self.certificate.alphas[k], self.certificate.machines[k], term.learner
        functions = [K @ c for K, c in zip(Ks, coefficients(machine, len(Ks)), strict=True)]
        z = np.sum(functions, axis=0) + (machine.intercept if learner.bias is not None else 0.0)
        value = term.loss.value(z, learner.y)
        if not np.isfinite(value):
            z = WIDENED * z
            value = term.loss.value(z, learner.y)
        size = max(abs(machine.value), self.certificate.floor)
        young = value + float(alpha @ z) - term.loss.dual_value(alpha, learner.y)
        yield Condition("machine", f"loss(z) + alpha'z = l(alpha){word}", abs(young), size)
        pairs = zip(coefficients(machine, len(Ks)), functions, strict=True)
        norms = np.sqrt([max(float(c @ f), 0.0) for c, f in pairs])
        images = np.sqrt([max(float(alpha @ K @ alpha), 0.0) for K in Ks])
        r = learner.norm if len(Ks) > 1 else 2.0
        total = (lp_length(norms, r) ** 2 + lp_length(images, conjugate_exponent(r)) ** 2) / 2
        gap = total - float(alpha @ np.sum(functions, axis=0))
        formula = "f = K alpha" if len(Ks) == 1 else "1/2 |f|^2 + 1/2 |alpha|^2 = alpha'f"
        yield Condition("machine", formula + word, abs(gap), size)
