"""What packages outside the repository bring: found by entry points, listed, checked and solved."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import xlog1py

import kernelopt as ko
from kernelopt import cli, extend
from kernelopt.catalog import Entry
from kernelopt.fidelities.norms import known
from kernelopt.installed import KINDS, installed, listed
from kernelopt.kernels import kernel_text
from kernelopt.methods import selection
from kernelopt.methods.selection import applicable
from kernelopt.testing import check_fidelity, check_formulation, check_kernel, check_loss, check_method

OUTSIDE = Path(__file__).parent / "outside"
PROJECT = tomllib.loads((OUTSIDE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = {path.stem: path for path in (OUTSIDE / "outsider").glob("*.py")}
LONGEST = {
    "loss": 25,
    "kernel": 10,
    "fidelity": 25,
    "part": 40,
    "method": 60,
    "formulation": 30,
}  # lines of what an author writes
NAMES = {
    "losses": "quantile",
    "kernels": "cauchy",
    "fidelities": "huber",
    "parts": "permutahedron",
    "methods": "semi-infinite",
    "formulations": "outsider.quantile_regression",
}


def forget():
    """Forget what is installed, which is read once in a process."""
    selection._add_installed.cache_clear()
    known.cache_clear()


@pytest.fixture
def packages(monkeypatch):
    """Return a function that installs the packages of a folder for the time of a test."""
    ko.catalogue()  # whose formulations register methods
    methods, names = dict(selection.METHODS), dict(cp.Problem.REGISTERED_SOLVE_METHODS)
    modules = set(sys.modules)

    def install(folder):
        monkeypatch.syspath_prepend(str(folder))
        forget()

    yield install
    monkeypatch.undo()
    for kept, before in ((selection.METHODS, methods), (cp.Problem.REGISTERED_SOLVE_METHODS, names)):
        kept.clear()
        kept.update(before)
    forget()
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("outsider", "stranger", "neighbour"):
            del sys.modules[name]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """The fixture package as pip unpacks it: its code, and its metadata from `pyproject.toml`."""
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.copytree(OUTSIDE / "outsider", folder / "outsider")
    metadata = folder / f"{PROJECT['name']}-{PROJECT['version']}.dist-info"
    metadata.mkdir()
    fields = {"Metadata-Version": "2.1", "Name": PROJECT["name"], "Version": PROJECT["version"]}
    (metadata / "METADATA").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    points = configparser.ConfigParser()
    points.read_dict(PROJECT["entry-points"])
    with (metadata / "entry_points.txt").open("w", encoding="utf-8") as file:
        points.write(file)
    return folder


@pytest.fixture
def outsider(packages, unpacked):
    """Install the fixture package, and return its example."""
    packages(unpacked)
    return lambda seed=0: installed("formulations")[NAMES["formulations"]].example(
        np.random.default_rng(seed)
    )


# ------------------------------------------------------------------------------- the fixture package


def imported(path):
    """The modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("name", LONGEST)
def test_the_package_imports_public_names_only(name):
    allowed = {"dataclasses", "functools", "numpy", "cvxpy", "kernelopt", "kernelopt.extend"}
    assert {m for m in imported(SOURCES[name]) if m.partition(".")[0] != "outsider"} <= allowed
    tree = ast.parse(SOURCES[name].read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {name.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for name in n.names}
    assert not {name for name in used if name.startswith("_") and not name.endswith("__")}


@pytest.mark.parametrize("name", LONGEST)
def test_what_an_author_writes_is_short(name):
    """A class with its decorator and docstring; of the formulation the builder and its dual."""
    tree = ast.parse(SOURCES[name].read_text(encoding="utf-8"))
    written = [
        n for n in tree.body if isinstance(n, ast.ClassDef) or getattr(n, "name", "example") != "example"
    ]
    lines = sum(n.end_lineno - min([n.lineno, *(d.lineno for d in n.decorator_list)]) + 1 for n in written)
    assert 0 < lines <= LONGEST[name]


def test_every_name_of_extend_is_there_and_told():
    for name in extend.__all__:
        assert getattr(extend, name) is not None
        assert re.search(rf"`{name}\b", extend.__doc__)
    with pytest.raises(AttributeError, match=r"'kernelopt.extend' has no attribute 'read_bal'"):
        _ = extend.read_bal


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_found_and_listed(outsider, kind):
    name = NAMES[kind]
    found = installed(kind)
    assert next(iter(found)) != name and name in found
    (line,) = [line for line in listed(kind) if line["name"] == name]
    assert line["package"] == "outsider" and len(line["summary"]) > 10
    assert {line["package"] for line in listed(kind)} <= {"kernelopt", "formulations", "outsider"}


LOSS_VALUE = 2 * (0.25 + 0.75)
HUBER_VALUE = 0.25**2 / 2 + 0.5 * 2 - 0.5**2 / 2
CHECKED = {
    "losses": (check_loss, {"C": 2.0, "share": 0.25}, lambda a: a.value(np.zeros(2), np.array([1.0, -1.0])),
               LOSS_VALUE, {"share": 1.5}, "share must be below 1, got 1.5"),
    "kernels": (check_kernel, {"width": 2.0}, lambda a: a([[0.0], [2.0]]), np.array([[1.0, 0.5], [0.5, 1.0]]),
                {"width": 0.0}, "width must be a positive finite number, got 0"),
    "fidelities": (check_fidelity, {"delta": 0.5}, lambda a: a.value(np.array([0.25, -2.0])), HUBER_VALUE,
                   {"delta": -1.0}, "delta must be a positive"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHECKED)
def test_it_passes_its_check_and_has_its_own_values(outsider, kind):
    check, options, value, expected, wrong, said = CHECKED[kind]
    make = installed(kind)[NAMES[kind]]
    assert not check(make(**options)).wrong
    assert value(make(**options)) == pytest.approx(expected)
    with pytest.raises(ko.errors.ParameterError, match=said):
        value(make(**wrong))


def test_the_kernel_is_read_from_text_and_saved_with_a_solution(outsider, tmp_path):
    kernel = installed("kernels")["cauchy"](2.0)
    assert ko.parse_kernel("3 * cauchy(width=2.0)") == 3 * kernel
    assert ko.parse_kernel(kernel_text(3 * kernel)) == 3 * kernel
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), [-1, -1, 1, 1]
    theta = cp.Variable(2, nonneg=True)
    grams = ko.Grams.from_kernels([kernel, ko.linear()], X)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, grams), y, ko.hinge())), ko.lp_ball(theta, 2))
    solution = ko.solve(problem)
    model = ko.load(solution.save(tmp_path / "model.npz"))
    assert model.decision_function([[2.0]]) == pytest.approx(solution.decision_function(grams.cross([[2.0]])))


@pytest.mark.parametrize("kind", [str, type], ids=["by its name", "an object"])
def test_the_fidelity_is_solved_by_two_methods_and_certified(outsider, kind):
    """By its name delta is 1; the second opinion is the problem without a word of the language."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(5, 5))
    S, y, delta = G + G.T, np.array([1.0, -1, 1, -1, 1]), 1.0 if kind is str else 0.4
    given = "huber" if kind is str else installed("fidelities")["huber"](delta)
    K = cp.Variable((5, 5), PSD=True, name="K")
    objective = ko.risk(K, y, ko.squared(1.0), bias=False) + 0.3 * ko.fidelity(K, S, given)
    problem = cp.Problem(cp.Minimize(objective), [cp.trace(K) == 5])
    inverse = cp.matrix_frac(y, K + np.eye(5)) / 2  # min over f of |y - f|^2/2 + f'K^-1 f/2
    plain = inverse + 0.3 * cp.sum(cp.huber(K - S, delta)) / 2
    optimum = cp.Problem(cp.Minimize(plain), [cp.trace(K) == 5]).solve(solver=cp.CLARABEL)
    for method, tol in (("exact", 1e-5), ("mirror-descent", 1e-3)):
        solution = ko.solve(problem, method, tol=tol)
        assert solution.gap <= tol
        assert solution.lower <= optimum * (1 + 1e-6) and optimum * (1 - 1e-6) <= solution.upper
        assert ko.testing.assert_certified(problem, rtol=2 * tol).feasible


def test_a_set_of_a_package_has_closed_bounds_and_multipliers(outsider):
    """Over a permutahedron, which several constraints state together, against the solver."""
    from outsider.part import permutahedron

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.tile([1.0, -1.0], 6)
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in (0.3, 1, 3)] + [ko.linear()], X)
    x = cp.Variable(4, nonneg=True)
    risk = ko.risk(ko.combine(x, grams), y, ko.squared_hinge(1.0))
    problem = cp.Problem(cp.Minimize(risk), permutahedron(x, [0.1, 0.4, 0.2, 0.3]))
    optimum = problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    by_solver = [float(c.dual_value) for c in problem.constraints]
    certificate = ko.testing.assert_certified(problem)
    assert certificate.route == "closed" and certificate.gap < 1e-5
    assert certificate.lower <= optimum * (1 + 1e-7)
    assert ko.solve(problem).gap < 1e-5
    found = [float(c.dual_value) for c in problem.constraints]
    assert found == pytest.approx(by_solver, rel=1e-3, abs=1e-3 * max(by_solver))


def test_a_fidelity_is_known_by_name_where_its_parameters_have_defaults(packages, tmp_path):
    source = (
        (OUTSIDE / "outsider" / "fidelity.py")
        .read_text(encoding="utf-8")
        .replace("delta: float = 1.0", "delta: float")
    )
    stranger(tmp_path, "fidelities", "needy", "stranger:huber", source=source)
    with pytest.raises(
        ko.errors.ParameterError, match="kind must be 'l1', 'frobenius', 'squared_frobenius' or an ob"
    ):
        ko.fidelity(np.eye(2), np.eye(2), "needy")
    packages(tmp_path)
    with pytest.raises(
        ko.errors.ParameterError, match=r"kind must be an object of needy, .* Pass needy\(\.\.\.\) with"
    ):
        ko.fidelity(np.eye(2), np.eye(2), "needy")
    with pytest.raises(
        ko.errors.ParameterError, match="kind must be 'l1', .*, 'needy' or an object of a class of Fid"
    ):
        ko.fidelity(np.eye(2), np.eye(2), "nedy")


def test_a_name_of_ours_imports_no_other_package(packages, tmp_path):
    stranger(tmp_path, "fidelities", "broken", "stranger:broken", source="raise RuntimeError('no licence')")
    packages(tmp_path)
    assert extend.as_fidelity("l1") == ko.fidelities.l1()
    with (
        pytest.warns(ko.errors.PackageWarning, match="stranger must be .*, got RuntimeError: no licence"),
        pytest.raises(ko.errors.ParameterError, match="got 'broken'"),
    ):
        extend.as_fidelity("broken")


def test_the_method_passes_its_check(outsider):
    entries = [ko.catalogue()[name] for name in ("lp_norm.primal", "lanckriet.qcqp", "lanckriet.hard_margin")]
    text = str(check_method("semi-infinite", entries))
    assert "lp_norm.primal: the bounds contain" in text
    assert "lanckriet.hard_margin: a reason is given for a refusal" in text


def test_the_formulation_passes_its_check(outsider):
    text = str(check_formulation(installed("formulations")[NAMES["formulations"]], seeds=(0, 1)))
    assert "seed 1: the dual: is 'equal'" in text
    assert "'semi-infinite': has bounds around the same optimum" in text


@pytest.mark.parametrize("method", ["exact", "block-descent", "semi-infinite"])
def test_it_is_solved_and_certified(outsider, method):
    formulation = outsider()
    solution = formulation.solve(method, tol=1e-6)
    assert solution.method == method and solution.status == "optimal"
    dual = formulation.dual()
    dual.solve(solver=cp.CLARABEL)
    assert solution.lower - 1e-7 <= dual.value <= solution.upper + 1e-7
    assert ko.testing.assert_certified(formulation, rtol=1e-5).feasible


def test_the_quantile_is_that_of_the_data(outsider):
    """Of the residuals y - f - b, at most a quarter is negative and at most three quarters are positive.

    The intercept is unpenalised: its optimality is sum alpha = 0 with alpha_i in C [share - 1, share].
    """
    formulation = outsider()
    formulation.solve("exact")
    (risk,) = formulation.risks
    n = risk.learner.n
    residuals = risk.learner.y - formulation.solve("exact").decision_function()
    assert (residuals < -1e-6).sum() <= 0.25 * n <= n - (residuals > 1e-6).sum()


def test_auto_considers_the_method(outsider, monkeypatch):
    problem = outsider().problem
    assert "semi-infinite" in [c.method.name for c in applicable(ko.Structure(problem))]
    assert "method 'semi-infinite': applies, about" in str(ko.explain(problem))
    kind = type(installed("methods")["semi-infinite"])
    monkeypatch.setattr(kind, "cost", lambda self, match: extend.Cost(seconds=0.0))
    assert outsider().solve().method == "semi-infinite"
    assert outsider().solve(max_iterations=500).method == "semi-infinite"


def test_the_command_lists_it(outsider, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    assert cli.main(["list", "losses", "methods"]) == 0
    printed = capsys.readouterr().out
    assert "quantile" in printed and "semi-infinite" in printed and "hinge" in printed
    assert "cauchy" not in printed and "lanckriet" not in printed


IN_ITS_OWN_PROCESS = """
import json, sys
import cvxpy as cp, numpy as np
import kernelopt as ko

before = "outsider" in sys.modules
x = cp.Variable(2, nonneg=True)
K = ko.combine(x, np.array([np.eye(4), np.ones((4, 4))]))
problem = cp.Problem(cp.Minimize(ko.risk(K, [1, -1, 1, -1], ko.hinge())), ko.lp_ball(x, 2))
value = problem.solve(method="semi-infinite")
print(json.dumps([before, "outsider.method" in sys.modules, "outsider.loss" in sys.modules, value]))
"""


@pytest.mark.slow
def test_it_is_imported_when_it_is_needed_and_known_to_cvxpy(unpacked):
    """By kernelopt alone it is not imported; cvxpy's own solve knows the method before any solve of ours.

    The kernels are I and 11' with labels of sum zero: with theta = (1, 0) the machines are those of I, of
    alpha = y, and the risk is 4 - 1/2 y'y = 2.
    """
    path = os.pathsep.join([str(unpacked), str(OUTSIDE.parents[1])])
    run = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-W", "error::kernelopt.errors.PackageWarning", "-c", IN_ITS_OWN_PROCESS],
        env={**os.environ, "PYTHONPATH": path},
        cwd=OUTSIDE.parents[1],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    before, method, loss, value = json.loads(run.stdout)
    assert (before, method, loss) == (False, True, False)
    assert value == pytest.approx(2.0, rel=1e-5)


MISSPELT = """
import json, sys
import cvxpy as cp
import kernelopt as ko

before, said = "formulations" in sys.modules, []
for name in ("exat", "column-generaton", "column-generation"):
    try:
        ko.solve(cp.Problem(cp.Minimize(cp.Variable(nonneg=True))), name)
    except ko.errors.MethodError as error:
        said.append(str(error))
json.dump([before, said], sys.stdout)
"""


@pytest.mark.slow
def test_a_misspelt_method_is_answered_with_all_also_with_those_of_formulations():
    run = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", MISSPELT], capture_output=True, text=True, cwd=OUTSIDE.parents[1]
    )
    assert run.returncode == 0, run.stderr
    before, (exact, columns, right) = json.loads(run.stdout)
    assert not before  # formulations are imported by the question
    assert all(
        "'exact'" in text and "'least-squares', 'column-generation'" in text for text in (exact, columns)
    )
    assert "got 'exat'. Did you mean 'exact'?" in exact and "Did you mean 'column-generation'?" in columns
    assert "'column-generation' does not apply" in right


@dataclass(frozen=True, eq=False, repr=False)
class log_cosh(ko.Loss):
    """sum_i C log cosh(y_i - t_i), whose dual is y'a less the entropies of (C + a)/2 and (C - a)/2 to C/2."""

    kind = "targets"
    quadratic = False
    C: float = 1.0

    def expression(self, fit, y):
        return self.C * cp.sum(cp.logistic(2 * (y - fit)) - (y - fit) - np.log(2))

    def curve(self, y):
        zero = np.zeros(y.size)
        return extend.Curve(y, zero, zero, zero - self.C, zero + self.C)

    def responder(self, y):
        return lambda t: self.C * np.tanh(y - t)

    def dual_value(self, alpha, y):
        u = np.clip(alpha / self.C, -1.0, 1.0)
        return float(y @ alpha - self.C * (xlog1py((1 + u) / 2, u) + xlog1py((1 - u) / 2, -u)).sum())

    def dual_gradient(self, alpha, y):
        return y - np.arctanh(alpha / self.C)

    def dual_expression(self, alpha, y):
        half = np.full(y.size, self.C / 2)
        entropies = cp.rel_entr(half + alpha / 2, half) + cp.rel_entr(half - alpha / 2, half)
        return y @ alpha - cp.sum(entropies), []


def test_a_forgotten_flag_of_a_dual_that_is_not_quadratic_is_named():
    stated = {name: value for name, value in vars(log_cosh).items() if name != "quadratic"}
    with pytest.raises(ko.InputError, match="log_cosh.* got no `quadratic`.* Set `quadratic = False`"):
        type("log_cosh", (ko.Loss,), stated)
    bounds = {name: stated[name] for name in ("kind", "expression", "curve")} | {"C": 2.0}
    with pytest.raises(AssertionError, match="by its curve unless `quadratic = False`: not so"):
        check_loss(type("bounds_alone", (ko.Loss,), bounds)())


@dataclass(frozen=True, eq=False, repr=False)
class cancelling(log_cosh):
    """With a bound for the conjugate alone, whose terms of the size of u cancel to u^2."""

    def bounded_dual_value(self, alpha, y):
        entropies = y @ alpha - self.dual_value(alpha, y)
        return extend.Ball(y).dots(alpha[None])[0] - extend.Ball.computed(entropies, entropies, y.size + 64)


def test_rounding_errors_of_a_dual_that_are_larger_than_stated_are_found():
    for loss in (log_cosh(3.0), log_cosh(0.5)):
        assert any("rounding errors of `dual_value`" in line for line in check_loss(loss, seed=1).stated)
    with pytest.raises(AssertionError, match="(?s)1 of .*rounding errors of `dual_value` are .*: not so"):
        check_loss(cancelling(3.0))


def test_a_loss_whose_dual_is_not_quadratic_is_solved_and_certified():
    """With nothing but what the docstring of `Loss` asks for; the second opinion is cvxpy on the dual."""
    rng = np.random.default_rng(0)
    X, loss = rng.normal(size=(12, 2)), log_cosh(3.0)
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=12)
    assert not check_loss(loss).wrong
    grams = ko.Grams.from_kernels([ko.gaussian(0.5), ko.linear()], X)
    theta = cp.Variable(2, nonneg=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, grams), y, loss)), ko.lp_ball(theta, 2))
    alpha = cp.Variable(12)
    gain, domain = loss.dual_expression(alpha, y)
    forms = cp.hstack([cp.sum_squares(grams.factor(m).T @ alpha) for m in range(2)])
    dual = cp.Problem(cp.Maximize(gain - cp.norm(forms, 2) / 2), [*domain, cp.sum(alpha) == 0])
    expected = dual.solve(solver=cp.CLARABEL)
    for method in ("exact", "smooth-dual", "block-descent"):
        solution = ko.solve(problem, method)
        assert solution.gap <= 1e-5 and solution.lower - 1e-6 <= expected <= solution.upper + 1e-6


# ------------------------------------------------------------------------------------- CONTRIBUTING.md

PAGE = (OUTSIDE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### Add a (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))


def test_the_page_has_a_recipe_for_each_kind_and_their_entry_points():
    assert list(RECIPES) == list(LONGEST)
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    written = tomllib.loads(block)["project"]["entry-points"]
    assert written == PROJECT["entry-points"] and PROJECT["dependencies"] == ["kernelopt"]
    assert list(written) == [f"kernelopt.{kind}" for kind in KINDS]


@pytest.mark.parametrize("name", LONGEST)
def test_a_recipe_has_at_most_five_steps_and_its_example(name):
    steps = re.findall(r"^(\d)\. (.*?)(?=^\d\. |^$)", RECIPES[name], re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1)) and 3 <= len(steps) <= 5
    assert f"`tests/outside/outsider/{name}.py`, at most {LONGEST[name]} lines" in RECIPES[name]
    calls = "\n".join(text for _, text in steps)
    assert "entry points" in calls and re.search(rf"(check_{name}|assert_certified)\(", calls)


# ------------------------------------------------------------------------------- packages that are wrong

GOOD = """
from dataclasses import dataclass
import kernelopt as ko
from kernelopt import extend

@dataclass(frozen=True)
class Lazy(extend.Method):
    "Refuses everything."

    name = "lazy"
    match = lambda self, structure: "it does nothing"
    cost = lambda self, match: extend.Cost(0.0)
    run = lambda self, match, control: None

@dataclass(frozen=True)
class Named(Lazy):
    name = "exact"

@dataclass(frozen=True)
class Auto(Lazy):
    name = "auto"

@dataclass(frozen=True)
class Needy(Lazy):
    depth: int
    name = "needy"

class half(ko.Loss):
    "States no curve."

    def expression(self, fit, y):
        return fit

class constant(ko.Kernel):
    "One."

    def gram(self, X, Z):
        return 1.0

CATALOGUE = ["no entry"]
"""


def stranger(folder, group, name, value, package="stranger", source=GOOD):
    """Write a package of one module with one entry point."""
    (folder / f"{package}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{package}-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n")
    (metadata / "entry_points.txt").write_text(f"[kernelopt.{group}]\n{name} = {value}\n")


WRONG = {
    "no such module": ("losses", "half", "strange:half", "got ModuleNotFoundError: No module named"),
    "no such class": ("losses", "half", "stranger:third", "got AttributeError: .*third"),
    "abstract": ("losses", "half", "stranger:half", "a subclass of Loss that states all it must, got"),
    "another kind": ("kernels", "lazy", "stranger:Lazy", "a subclass of Kernel that states all it must"),
    "a module": ("kernels", "lazy", "stranger", "a subclass of Kernel .*, got <module 'stranger'"),
    "a name of ours": ("kernels", "linear", "stranger:constant", "a name of its own, got that of kernelopt"),
    "another name": ("methods", "idle", "stranger:Lazy", "named like its method, got .* 'lazy'"),
    "a method of ours": ("methods", "exact", "stranger:Named", "a name of its own, got that of kernelopt"),
    "auto": ("methods", "auto", "stranger:Auto", "got ParameterError: .*is the choice among all methods"),
    "no defaults": ("methods", "needy", "stranger:Needy", "with defaults for its options, got TypeErr"),
    "no list": ("formulations", "x", "dataclasses", "with a list CATALOGUE of Entry records, got None"),
    "no entries": ("formulations", "x", "stranger", "CATALOGUE of Entry records, got .'no entry'."),
}  # fmt: skip


@pytest.mark.parametrize(("group", "name", "value", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_used_is_left_out_with_a_warning_that_names_its_package(
    packages, tmp_path, group, name, value, said
):
    before = installed(group)
    stranger(tmp_path, group, name, value)
    packages(tmp_path)
    with pytest.warns(
        ko.errors.PackageWarning, match=rf"{name!r} of the package stranger must be .*{said}"
    ) as caught:
        found = installed(group)
    assert len(caught) == 1 and "correct the package, or uninstall it" in str(caught[0].message)
    assert found == before if group != "formulations" else list(found) == list(before)


def test_a_package_that_is_broken_does_not_keep_others_from_solving(packages, tmp_path):
    stranger(tmp_path, "methods", "lazy", "stranger:Lazy", source="raise RuntimeError('no licence')")
    packages(tmp_path)
    formulation = ko.catalogue()["lanckriet.qcqp"].example(np.random.default_rng(0))
    with pytest.warns(ko.errors.PackageWarning, match="stranger must be .*, got RuntimeError: no licence"):
        assert formulation.solve().gap <= 1e-5
    with warnings.catch_warnings():  # once is enough
        warnings.simplefilter("error")
        assert formulation.solve().gap <= 1e-5


@pytest.mark.parametrize("group", ["losses", "methods", "formulations"])
def test_of_two_packages_with_one_name_the_second_is_left_out(packages, tmp_path, unpacked, group):
    sources = {
        "losses": "import kernelopt as ko\nclass odd(ko.hinge):\n    'A hinge.'\n",
        "methods": GOOD,
        "formulations": (OUTSIDE / "outsider" / "formulation.py").read_text(encoding="utf-8"),
    }
    value = {"losses": ":odd", "methods": ":Lazy", "formulations": ""}[group]
    name = {"losses": "odd", "methods": "lazy", "formulations": "x"}[group]
    packages(unpacked)
    for package in ("neighbour", "stranger"):
        stranger(tmp_path, group, name, package + value, package, sources[group])
    packages(tmp_path)
    with pytest.warns(ko.errors.PackageWarning) as caught:
        found = installed(group)
    left_out = [str(warning.message) for warning in caught]
    if group == "formulations":
        assert len(left_out) == 2 and found[NAMES[group]].build.__module__ == "outsider.formulation"
        assert "'outsider.quantile_regression', which is one of outsider.formulation" in left_out[0]
    else:
        (message,) = left_out
        assert "of the package stranger must be a name of its own, got that of neighbour." in message
        kept = found[name] if group == "losses" else type(found[name])
        assert kept.__module__ == "neighbour"


def test_the_command_says_what_is_left_out(packages, tmp_path, capsys):
    stranger(tmp_path, "losses", "half", "stranger:half")
    packages(tmp_path)
    assert cli.main(["list", "losses"]) == 1
    printed = capsys.readouterr()
    assert "hinge" in printed.out and "half" not in printed.out
    assert "kernelopt: the entry point 'half' of the package stranger must be" in printed.err


def test_a_method_of_one_s_own_is_replaced_and_not_that_of_another(packages, tmp_path):
    names = {"__name__": "notebook"}
    exec(compile(GOOD, "notebook", "exec", dont_inherit=True), names)  # noqa: S102 - our own text
    packages(tmp_path)
    extend.register_method(names["Lazy"]())
    again = names["Lazy"]()
    extend.register_method(again)  # as where a cell is run twice
    assert installed("methods")["lazy"] is again
    with pytest.raises(
        ko.errors.ParameterError, match="'exact' of notebook, which is that of kernelopt.methods.exact"
    ):
        extend.register_method(names["Named"]())


def test_what_is_ours_is_found_too():
    assert set(installed("losses")) == {name for name in ko.losses.__all__ if name not in ("Loss", "Primal")}
    assert {"gaussian", "linear", "normalized"} <= set(installed("kernels"))
    assert set(installed("methods")) >= {"exact", "column-generation", "least-squares"}
    assert set(installed("fidelities")) == {"l1", "frobenius", "squared_frobenius"}
    assert all(isinstance(entry, Entry) for entry in installed("formulations").values())
    with pytest.raises(ko.errors.ParameterError, match="kind must be 'losses', 'kernels', .* got 'loss'"):
        installed("loss")
    assert isinstance(ko.fidelities.frobenius(), extend.Radial)
    assert isinstance(ko.fidelities.l1(), extend.Proximal)


@pytest.mark.parametrize(("base", "name"), [(ko.Loss, "above"), (ko.Loss, "primal"), (ko.Kernel, "domain")])
def test_a_field_that_would_hide_a_method_is_refused(base, name):
    with pytest.raises(ko.InputError, match=f"a field of mine must have a name of its own, got '{name}'"):
        type("mine", (base,), {"__annotations__": {name: float}})
