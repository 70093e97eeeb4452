"""The conditions of Karush, Kuhn and Tucker at a certificate, measured one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.dualize import swept
from kernelopt.duality.lagrangian import Term
from kernelopt.duality.residuals import (
    alphas,
    largest,
    largest_violation,
    magnitude,
    objective_at,
    product,
    residual,
    solved_at,
)
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.sweep import term_name
from kernelopt.duality.symbols import dense
from kernelopt.errors import InputError, KerneloptError
from kernelopt.language.fidelity import Distance
from kernelopt.language.risk import Risk
from kernelopt.numerics.norms import conjugate_exponent, lp_length
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
        point = {variable.id: value for variable, value in certificate.point.items()}
        missing = [v.name() for v in structure.user_variables if v.id not in point]
        if missing:
            raise InputError(
                f"the solution must have a point of this problem, got none for {', '.join(missing)} in "
                "kkt_table. Pass the problem that was solved, and a solution that is feasible."
            )
        self.primal = objective_at(structure, point, [machine.value for machine in certificate.machines])
        self.size = max(abs(self.primal), certificate.floor)
        copy = Structure(structure.explicit)  # its variables are those with the values of the point
        self.swept, _ = swept(copy)
        self.why_not = self.set_multipliers([term.node for term in copy.risks])

    def set_multipliers(self, nodes: list[Risk]) -> str:
        """Set the values of all multipliers; return why that is not possible."""
        known = dict(zip(map(id, nodes), self.certificate.alphas, strict=False))
        fixed = [(term, alpha, known.get(id(term.atom))) for term, alpha in alphas(self.swept)]
        if any(value is None for _, _, value in fixed):
            return "the certificate has no dual variables of the risk"
        try:
            self.dual = solved_at(self.swept, fixed)
        except KerneloptError as error:
            return f"no multipliers were found for the alpha of the certificate ({error})"
        return ""

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions."""
        constraints = self.structure.lifted.constraints
        named = [(c.label or f"constraint {i}", c) for i, c in enumerate(constraints)]
        yield from feasibility("primal feasibility", named, self.structure.variables)
        for kind, rows in (
            ("dual feasibility", self.dual_feasibility()),
            ("stationarity", self.stationarity()),
            ("complementarity", self.complementarity()),
            ("subgradient", self.subgradients()),
        ):
            yield from [Condition(kind, "all", np.nan, why_not=self.why_not)] if self.why_not else rows
        for k, term in enumerate(self.structure.risks):
            yield from self.machine(k, term)
        gap = np.nan if self.why_not else abs(self.primal - self.dual)
        yield Condition("gap", "objective - dual function", gap, self.size, self.why_not)

    def dual_feasibility(self) -> Iterator[Condition]:
        """Yield the violation of the domains of the conjugates and of the dual cones."""
        equations = {id(e.constraint) for e in self.swept.equations}
        constraints = (c for c in self.swept.problem.constraints if id(c) not in equations)
        named = [(c.label or "dual cone", c) for c in constraints]
        return feasibility("dual feasibility", named, self.swept.problem.variables())

    def stationarity(self) -> Iterator[Condition]:
        """Yield the distance of the gradient by every variable from the cone in which it must be."""
        equations = {e.variable.id: e for e in self.swept.equations}
        for v in self.structure.variables:
            found = [equations[v.id]] if v.id in equations else []
            off = largest_violation([e.constraint for e in found])
            scale = max((magnitude(part) for e in found for part in e.parts), default=1.0)
            yield Condition("stationarity", v.name(), off, scale)

    def complementarity(self) -> Iterator[Condition]:
        """Yield <multiplier, slack> of constraints and bounds, and <gradient, x> of variables with signs."""
        products = [(m.name, product(m.constraint, m)) for m in self.swept.lagrangian.multipliers]
        for e in self.swept.equations:
            if e.kind != "free" and e.variable.value is not None:
                found = np.sum(dense(e.gradient.value) * dense(e.variable.value))
                products.append((f"gradient by {e.variable.name()}", float(found)))
        for term, alpha in alphas(self.swept):
            products += kernel_products(term, alpha.name())
        for where, value in products:
            if np.isfinite(value):  # the variables of the cones of an atom have no values
                yield Condition("complementarity", where, abs(value), self.size)

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
        word = f" of risk {k + 1}" if len(self.structure.risks) > 1 else ""
        found, Ks, learner = self.certificate, term.values(), term.learner
        if k >= min(len(found.alphas), len(found.machines)) or Ks is None:
            why = f"the certificate has no machine{word or ' of the risk'}"
            yield Condition("machine", f"loss{word}", np.nan, why_not=why)
            return
        alpha, machine, K = found.alphas[k], found.machines[k], np.stack(Ks)
        c = np.broadcast_to(machine.coefficients, (len(K), alpha.size))
        f = np.einsum("mij,mj->mi", K, c)
        z = f.sum(axis=0) + (machine.intercept if learner.bias is not None else 0.0)
        value = term.loss.value(z, learner.y)
        if not np.isfinite(value):
            z = WIDENED * z
            value = term.loss.value(z, learner.y)
        size = max(abs(machine.value), found.floor)
        young = value + float(alpha @ z) - term.loss.dual_value(alpha, learner.y)
        yield Condition("machine", f"loss(z) + alpha'z = l(alpha){word}", abs(young), size)
        r = learner.norm if len(K) > 1 else 2.0
        lengths = [np.sqrt(np.maximum(squares, 0.0)) for squares in ((c * f).sum(axis=1), K @ alpha @ alpha)]
        sizes = [lp_length(x, p) for x, p in zip(lengths, (r, conjugate_exponent(r)), strict=True)]
        gap = float(np.sum(np.square(sizes)) / 2 - f.sum(axis=0) @ alpha)
        formula = "f = K alpha" if len(K) == 1 else "1/2 |f|^2 + 1/2 |alpha|^2 = alpha'f"
        yield Condition("machine", formula + word, abs(gap), size)


def feasibility(
    kind: str, named: Iterable[tuple[str, Any]], variables: Iterable[cp.Variable]
) -> Iterator[Condition]:
    """Yield the violations of constraints, the largest one of a name, and of the attributes of variables."""
    found: dict[str, tuple[float, float]] = {}
    for name, constraint in named:
        rest, scale = found.get(name, (0.0, 0.0))
        found[name] = max(rest, largest_violation([constraint])), max(scale, magnitude(constraint))
    for v in variables:
        signs = [text for name, (text, _) in SIGNS.items() if v.attributes[name] is True]
        signs += ["in its bounds"] if v.attributes.get("bounds") is not None else []
        if signs and not v.attributes["diag"]:
            off = largest(v.project(v.value) - v.value)
            found[f"{v.name()} {', '.join(signs)}"] = off, largest(v.value)
    for name, (rest, scale) in found.items():
        yield Condition(kind, name, rest, scale)


def kernel_products(term: Term, alpha: str) -> Iterator[tuple[str, float]]:
    """Yield <s - (alpha'K_m alpha)_m, theta> and <S - alpha alpha', K> of a risk, with their names."""
    number = term.weight.is_constant()
    half = float(np.ravel(term.weight.value)[0]) / 2 if number else 0.5
    stated = [c for c in term.domain if c.label.startswith(("forms", "S"))]
    for constraint, (_, K) in zip(stated, term.pairs, strict=True):
        if constraint.label.startswith("forms"):
            forms, s = constraint.args
            slack, word = dense(s.value) - dense(forms.value), "weights"
            name = f"{s.name()} - ({alpha}'K_m {alpha})_m"
        else:
            block, word = dense(constraint.args[0].value), "K"
            z, corner = block[:-1, -1], block[-1, -1]
            slack = block[:-1, :-1] - (np.outer(z, z) / corner if corner > 0 else 0.0)
            share = "" if number else f"/{term.weight.name()}"
            name = f"{constraint.label.partition(' ')[0]} - {alpha} {alpha}'{share}"
        word = str(K.name()) if isinstance(K, cp.Variable) else word
        yield f"<{name}, {word}>", half * float(np.vdot(slack, dense(K.value)))
