"""Saved solutions: they predict and prove as before, and nothing that is in a file is trusted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.files import write_file
from kernelopt.grams.written import leaves
from kernelopt.methods.saved import saved
from kernelopt.records import decoded, encoded
from tests.every import every

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(24, 3)), rng.normal(size=(5, 3))
Y = np.where(X[:, 0] + 0.4 * rng.normal(size=24) > 0, 1.0, -1.0)
KERNELS = [ko.gaussian(0.8), ko.linear() + 1.5 * ko.polynomial(2), ko.on_columns(ko.laplacian(2.0), [0, 2])]
BASE = ko.Grams.from_kernels(KERNELS, X)
FORMS = {
    "plain": BASE,
    "trace": BASE.normalize("trace"),
    "multiplicative": BASE.center().normalize("multiplicative"),
    "spherical": BASE.center().normalize("spherical"),
    "centred": BASE.normalize("spherical").center(),
    "block": BASE.center().block(slice(0, 16)),
    "subset": BASE.normalize("trace").subset([2, 0]),
    "array": ko.Grams.from_array(np.asarray(BASE)),
}


def ball(grams, loss, p=2.0, y=Y):
    theta = cp.Variable(len(grams), nonneg=True)
    risk = ko.risk(ko.combine(theta, grams), y[: grams.n_points], loss)
    return cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, p))


@cache
def solved(form):
    return ko.solve(ball(FORMS[form], ko.hinge(C=2.0)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def cross(grams):
    return (BASE if grams is FORMS["array"] else grams).cross(Z)


def test_a_machine_of_strings_is_saved_with_its_strings(path):
    words = ["".join(word) for word in rng.choice(list("ABé\U0001f600"), (24, 6))]
    grams = ko.Grams.from_kernels([ko.spectrum(2), ko.weighted_degree(3, 1)], words).normalize("spherical")
    solution = ko.solve(ball(grams, ko.hinge(C=2.0)))
    model = ko.load(solution.save(path))
    new = [*words[:3], "BAABAé"]
    expected = solution.decision_function(grams.cross(new))
    assert model.decision_function(new) == pytest.approx(expected, abs=1e-12)
    ended = np.array(["GAT", "GA\0"], dtype=object)  # numpy cuts such strings off
    assert decoded(*encoded(ended), "the file").tolist() == ended.tolist()


def test_a_saved_solution_predicts_and_proves_as_before(path):
    for form, grams in FORMS.items():
        solution, model = solved(form), ko.load(solved(form).save(path))
        new = cross(grams) if form == "array" else Z
        expected = solution.decision_function(cross(grams))
        np.testing.assert_allclose(model.decision_function(new), expected, rtol=0, atol=1e-12, err_msg=form)
        again = ko.certify(ball(grams, ko.hinge(C=2.0)), model, retrain=False)
        for found in (model, again):
            np.testing.assert_allclose(found.lower, solution.lower, rtol=1e-12, err_msg=form)
            np.testing.assert_allclose(found.upper, solution.upper, rtol=1e-12, err_msg=form)
        assert again.route == model.certificate.route == "closed"


def test_a_saved_solution_keeps_what_the_solution_says(path):
    solution = solved("plain")
    model = ko.load(str(solution.save(path)))
    for name in (
        "status",
        "method",
        "solver",
        "value",
        "lower",
        "upper",
        "gap",
        "intercept",
        "iterations",
        "tol",
    ):
        assert getattr(model, name) == getattr(solution, name), name
    assert model.weights_unique is solution.weights_unique
    assert model.certificate.residuals == solution.certificate.residuals
    np.testing.assert_array_equal(model.weights, solution.weights)
    np.testing.assert_array_equal(model.support, np.flatnonzero(solution.alpha))
    np.testing.assert_array_equal(model.alpha, solution.alpha[model.support])
    assert model.history == solution.history
    assert str(model.certificate) in repr(model)


def test_only_the_points_of_the_support_are_saved(path):
    _, arrays = encoded(saved(solved("plain")))
    support = np.flatnonzero(solved("plain").alpha)
    assert 0 < support.size < len(X)
    np.testing.assert_array_equal(arrays["machines.0.storage.parts.0.X"], X[support])
    assert not any(array.shape[-2:] == (24, 24) for array in map(np.asarray, arrays.values()))
    n, m = 300, 20
    points = np.random.default_rng(1).normal(size=(n, 10))
    y = np.where(points[:, 0] > 0, 1.0, -1.0)
    grams = ko.Grams.from_kernels([ko.gaussian(0.5 + w) for w in range(m)], points)
    machine = solved("plain").learned[0]
    part = replace(machine.parts[0], grams=grams, weights=np.full(m, m**-0.5), coefficients=y / n)
    learned = replace(machine, parts=(part,), alpha=y / n)
    large = replace(solved("plain"), learned=(learned,), problem=None)
    assert large.save(path).stat().st_size < 100_000  # every point is in the support


@every(
    "loss, p, y",
    [
        (ko.squared_hinge(C=np.linspace(1, 2, 24)), 1.0, Y),
        (ko.huberized_hinge(C=1.0, tau=0.5), np.inf, Y),
        (ko.logistic(C=0.5), 1.5, Y),
        (ko.epsilon_insensitive(C=2.0, eps=0.2), 2.0, X[:, 0] + X[:, 1] ** 2),
    ],
)
def test_the_point_and_the_dual_variables_of_any_loss_are_saved(tmp_path, loss, p, y):
    problem = ball(BASE, loss, p, y)
    solution = ko.solve(problem)
    again = ko.certify(problem, ko.load(solution.save(tmp_path / "model.npz")), retrain=False)
    assert again.gap <= 1e-5
    assert again.upper == pytest.approx(solution.upper, rel=1e-12)


def test_a_trace_with_a_ridge_and_two_risks_with_prices_are_proved_again(path):
    mu, tau = cp.Variable(3, nonneg=True), cp.Variable(1, nonneg=True)
    K = ko.combine(mu, BASE) + ko.combine(tau, ko.Grams.identity(24))
    problem = cp.Problem(cp.Minimize(2 * ko.risk(K, Y, ko.hinge()) + 3), [ko.trace(K) == 24])
    ridge = ko.solve(problem)
    model = ko.load(ridge.save(path))
    again = ko.certify(problem, model, retrain=False)
    assert again.upper == pytest.approx(ridge.upper, rel=1e-12) and again.gap <= 1e-5
    np.testing.assert_allclose(model.decision_function(Z), ridge.decision_function(BASE.cross(Z)), atol=1e-12)

    other = np.where(X[:, 1] > 0, 1.0, -1.0)
    theta = cp.Variable(3, nonneg=True)
    K = ko.combine(theta, BASE)
    risks = ko.risk(K, Y, ko.hinge()) + 0.5 * ko.risk(K, other[:20], ko.squared_hinge())
    problem = cp.Problem(cp.Minimize(risks + 0.1 * cp.sum(theta)), ko.lp_ball(theta, 2))
    two = ko.solve(problem)
    model = ko.load(two.save(path))
    again = ko.certify(problem, model, retrain=False)
    assert again.gap <= 1e-5
    assert again.upper == pytest.approx(two.upper, rel=1e-12)
    expected = two.decision_function(BASE.cross(Z), risk=1)
    np.testing.assert_allclose(model.decision_function(Z, risk=1), expected, atol=1e-12)
    with pytest.raises(ko.InputError, match=r"for 2 machines \(0: hinge"):
        model.decision_function(Z)


def test_any_problem_that_is_built_again_is_proved_at_the_saved_point(path):
    def elastic_net():
        theta = cp.Variable(3, nonneg=True)
        price = cp.sum(theta) + cp.sum_squares(theta)
        return cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, BASE), Y, ko.hinge()) + 0.1 * price))

    solution = ko.solve(elastic_net())
    saved = ko.load(solution.save(path))
    np.testing.assert_allclose(
        saved.decision_function(Z), solution.decision_function(BASE.cross(Z)), rtol=0, atol=1e-12
    )
    again = ko.certify(elastic_net(), saved)
    assert again.gap <= 1e-5
    assert again.lower == pytest.approx(solution.lower, rel=1e-9)
    with pytest.raises(ko.InputError, match=r"variables of shapes \[\(3,\)\], got .*\[\(2,\)\]"):
        ko.certify(ball(FORMS["subset"], ko.hinge()), saved)


def test_a_solution_without_its_problem_predicts(path):
    model = ko.load(replace(solved("plain"), problem=None).save(path))
    assert model.decision_function(Z).shape == (5,)


def test_predictions_of_other_shapes_are_refused(path):
    points, array = (ko.load(solved(form).save(path)) for form in ("plain", "array"))
    with pytest.raises(ko.errors.ShapeError, match=r"X_new must have 3 columns.*shape \(5, 2\)"):
        points.decision_function(Z[:, :2])
    with pytest.raises(
        ko.errors.ShapeError, match=r"must have shape \(m, n_new, N\).*got an array of shape \(5, 3\)"
    ):
        array.decision_function(Z)
    with pytest.raises(ko.InputError, match="kernel_at needs all 24 points"):
        points.kernel_at(Z)
    with pytest.raises(ko.errors.ShapeError, match=r"call decision_function\(grams\.cross\(X\)\)"):
        solved("plain").decision_function(Z)


def free_signs():
    mu = cp.Variable(3)
    K = ko.combine(mu, BASE)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == 24, K >> 0])


def test_what_cannot_be_saved_is_refused(path):
    graph = nx.path_graph(24)
    nodes = ko.Grams.from_kernels([ko.diffusion(graph, 0.5), ko.diffusion(graph, 2.0)], list(graph))
    nothing = cp.Variable(2)
    for problem, piece in (
        (free_signs(), "non-negative weights, got a kernel with free signs"),
        (ball(nodes, ko.hinge()), "kernels of class diffusion.*Grams.from_array"),
        (cp.Problem(cp.Minimize(cp.sum_squares(nothing - 1))), "has none"),
    ):
        with pytest.raises(ko.errors.MethodError, match=piece):
            ko.solve(problem).save(path)
        assert not path.exists()


@pytest.mark.slow
def test_every_formulation_is_saved_or_refused(path):
    saved, entries = {}, ko.catalogue()
    for name, entry in entries.items():
        solution = entry.example(np.random.default_rng(0)).solve()
        try:
            model = ko.load(solution.save(path))
        except ko.errors.MethodError as error:
            saved[name] = str(error)
            continue
        machine = solution.learned[0]
        stacks = [part.grams for part in machine.parts if not part.is_ridge]
        new = stack = np.concatenate([np.asarray(grams)[:, :2] for grams in stacks])  # two of the N points
        if model.machines[0].storage is not None:
            (leaf,) = leaves(stacks[0].storage)
            new, stack = leaf.X[:2], stacks[0].cross(leaf.X[:2])
        ask = "decision_function" if machine.n else "kernel_at"
        found, expected = getattr(model, ask)(new), getattr(solution, ask)(stack)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=name)
    assert {name.partition(".")[0] for name in set(entries) - set(saved)} >= {"lanckriet", "lp_norm"}
    refused = {name for name, text in saved.items() if "known on the N points only" in text}
    assert refused == {
        "lanckriet.completion",
        "lanckriet.gaussian_process",
        "lanckriet.sdp",
        "similarity.indefinite_svm",
        "similarity.kernel_per_similarity",
        "similarity.single_kernel",
    }


# --------------------------------------------------------------------------------- files of strangers


def test_truncated_files_and_other_kinds_are_refused(path):
    whole = solved("plain").save(path).read_bytes()
    for k in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:k])
        with pytest.raises(ko.errors.FileError):
            ko.load(path)
    header, arrays = encoded(saved(solved("plain")))
    header["solution"]["machines"] = {"tuple": [{"machine": {}}]}
    write_file(path, "solution", {"record": header["solution"]}, arrays)
    with pytest.raises(
        ko.errors.FileError, match=rf"{path.name} must hold what .* missing entry .*entries weights, support"
    ):
        ko.load(path)
    write_file(path, "checkpoint", {}, {})
    with pytest.raises(ko.errors.FileError, match="of the kind solution or .*, got 'checkpoint'"):
        ko.load(path)
    with pytest.raises(ko.errors.FileError, match="where there is none"):
        ko.load(path.with_name("none.npz"))


def test_whole_numbers_of_a_method_are_saved_as_the_numbers_that_they_are(path):
    solution = replace(solved("plain"), build_time=0, iterations=np.int64(3), history=((0, 1, np.inf),))
    model = ko.load(solution.save(path))
    assert (model.build_time, model.iterations, model.history) == (0.0, 3, ((0.0, 1.0, np.inf),))
