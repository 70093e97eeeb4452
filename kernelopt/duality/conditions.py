"""The conditions of Karush, Kuhn and Tucker at a certificate, measured one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.check import inner, set_value
from kernelopt.duality.dualize import swept
from kernelopt.duality.residuals import coefficients, gradient, largest, off_cone, sides
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.sweep import Term, term_name
from kernelopt.duality.symbols import dense
from kernelopt.duality.trials import AtAlpha, alphas, objective_at, residual
from kernelopt.errors import InputError, SolverError
from kernelopt.language.fidelity import Distance
from kernelopt.language.risk import Risk
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import RiskTerm, Structure

WIDENED = 1 + 1e-9  # a hard margin of 1 - 1e-16 has the loss infinity; it is evaluated at this multiple of z


class Condition(NamedTuple):
    """A condition of optimality with its residual.

    Attributes
    ----------
    kind : str
        "primal feasibility", "dual feasibility", "stationarity", "complementarity", "subgradient", "machine"
        or "gap".
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
    """A point and its multipliers: alpha from the certificate, the others the best ones for that alpha.

    The problem is swept on copies of its variables, which have the values of the point.
    """

    def __init__(self, structure: Structure, certificate: Any) -> None:
        self.structure, self.certificate = structure, certificate
        self.copy = Structure(structure.explicit)  # its variables are the copies
        self.swept, _ = swept(self.copy)
        self.set_point()
        self.reason = self.set_multipliers()

    def set_point(self) -> None:
        """Set the copies of the variables to the point of the certificate."""
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

    def set_multipliers(self) -> str:
        """Set the values of all multipliers; return why that is not possible."""
        known = dict(zip(map(id, self.copy_risks()), self.certificate.alphas, strict=False))
        fixed = [(term, alpha, known.get(id(term.atom))) for term, alpha in alphas(self.swept)]
        if any(value is None for _, _, value in fixed):
            return "the certificate has no dual variables of the risk"
        try:
            self.dual = AtAlpha(self.swept, [(t, a, np.asarray(v)) for t, a, v in fixed]).solve()
        except SolverError as error:
            return f"no multipliers were found for the alpha of the certificate ({error})"
        return ""

    def copy_risks(self) -> list[Risk]:
        """Return the risks of the copied problem, in the order of the structure's."""
        return [term.node for term in self.copy.risks]

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions."""
        yield from self.primal_feasibility()
        for kind, measure in (
            ("dual feasibility", self.dual_feasibility),
            ("stationarity", self.stationarity),
            ("complementarity", self.complementarity),
            ("subgradient", self.subgradients),
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
        lagrangian = self.swept.lagrangian
        found: dict[str, tuple[float, float]] = {}
        for constraint in [c for t in lagrangian.terms for c in t.domain] + lagrangian.cones:
            label = constraint.label or "dual cone"
            old = found.get(label, (0.0, 0.0))
            found[label] = (max(old[0], largest(violation(constraint))), max(old[1], sides(constraint)))
        for v in self.swept.problem.variables():
            if v.attributes["nonneg"] or v.attributes["PSD"]:
                value = np.asarray(v.value)
                off = largest(np.abs(v.project(value) - value))
                word = ">= 0" if v.attributes["nonneg"] else ">> 0"
                found[f"{v.name()} {word}"] = (off, largest(np.abs(value)))
        for label, (rest, scale) in found.items():
            yield Condition("dual feasibility", label, rest, scale)

    def stationarity(self) -> Iterator[Condition]:
        """Yield the distance of the gradient by every variable from the cone in which it must be."""
        equations = {e.variable.id: e for e in self.swept.equations}
        for variable in self.structure.variables:
            equation = equations.get(variable.id)
            if equation is None:
                yield Condition("stationarity", variable.name(), 0.0)
                continue
            G, scale = gradient(equation)
            yield Condition("stationarity", variable.name(), off_cone(equation, G), scale)

    def complementarity(self) -> Iterator[Condition]:
        """Yield <multiplier, slack> of constraints and bounds, and <gradient, x> of variables with signs."""
        for multiplier in self.swept.lagrangian.multipliers:
            constraint, values = multiplier.constraint, multiplier.values()
            product = inner(constraint, constraint, values[0] if len(values) == 1 else values)
            if np.isfinite(product):
                yield Condition("complementarity", multiplier.name, abs(product), self.size)
        for equation in self.swept.equations:
            v = equation.variable
            if equation.kind != "free" and v.value is not None:
                product = abs(float(np.vdot(dense(equation.gradient.value), dense(v.value))))
                yield Condition("complementarity", f"gradient by {v.name()}", product, self.size)
        for term in self.swept.lagrangian.terms:
            if isinstance(term.atom, Risk):
                yield from self.kernels(term)

    def kernels(self, term: Term) -> Iterator[Condition]:
        """Yield <s - (alpha'K_m alpha)_m, theta> and <S - alpha alpha', K> of the kernels of a risk."""
        half = (float(np.ravel(term.weight.value)[0]) if term.weight.is_constant() else 1.0) / 2
        alpha = next(v.name() for v in term.variables if v.name().startswith("alpha"))
        stated = [c for c in term.domain if c.label.startswith(("forms", "S"))]
        for constraint, (_, K) in zip(stated, term.pairs, strict=True):
            if constraint.label.startswith("forms"):
                forms, s = constraint.args
                slack = dense(s.value) - dense(forms.value)
                words = f"<{s.name()} - ({alpha}'K_m {alpha})_m, {short_name(K, 'weights')}>"
            else:
                block = dense(constraint.args[0].value)
                z, corner = block[:-1, -1], block[-1, -1]
                slack = block[:-1, :-1] - (np.outer(z, z) / corner if corner > 0 else 0.0)
                S = constraint.label.partition(" ")[0]
                share = "" if term.weight.is_constant() else f"/{term.weight.name()}"
                words = f"<{S} - {alpha} {alpha}'{share}, {short_name(K, 'K')}>"
            product = half * float(np.vdot(slack, dense(K.value)))
            yield Condition("complementarity", words, abs(product), self.size)

    def subgradients(self) -> Iterator[Condition]:
        """Yield u g(a) + cost - <y, a> of the terms, which vanishes where y / u is a subgradient of g at a.

        Those of risks are the rows of the machine.
        """
        names: dict[str, int] = {}
        for term in self.swept.lagrangian.terms:
            if isinstance(term.atom, Risk):
                continue
            name = term_name(term.atom)
            if isinstance(term.atom, Distance):
                U = term.variables[0].name()
                name = f"L(K - S{U[1:]}) + L*({U}) = <{U}, K - S{U[1:]}>"
            names[name] = names.get(name, 0) + 1
            name = name if names[name] == 1 else f"{name} ({names[name]})"
            yield Condition("subgradient", name, abs(residual(term)), self.size)

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


def short_name(expression: cp.Expression, otherwise: str) -> str:
    """Return the name of a variable, and other words for an expression."""
    return str(expression.name()) if isinstance(expression, cp.Variable) else otherwise
