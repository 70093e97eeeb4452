"""From an empty environment to a prediction, and model selection, as a new user does it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelopt.estimators import MKLClassifier
from tests.commands import save_table
from tests.pages import ROOT

FILES = (
    "pyproject.toml",
    "setup.py",
    "kernelopt_command.py",
    "README.md",
    "LICENSE",
)  # what a wheel is built from, beside the packages


@pytest.mark.slow
def test_the_wheel_in_an_empty_environment_fits_predicts_and_reports(tmp_path):
    source, environment = tmp_path / "source", tmp_path / "environment"
    source.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, source)
    for name in ("kernelopt", "formulations"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def ran(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean)  # noqa: S603
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran(sys.executable, "-m", "venv", environment)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    ran(scripts / "python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, source)
    (wheel,) = tmp_path.glob("kernelopt-*.whl")
    ran(scripts / "python", "-m", "pip", "install", wheel)

    data = load_breast_cancer()
    y = data.target_names[data.target]
    split = train_test_split(data.data, y, train_size=300, stratify=y, random_state=0)
    for name, X, y in (("train.csv", *split[::2]), ("test.csv", *split[1::2])):
        save_table(tmp_path / name, X, y, "diagnosis", data.feature_names.tolist())
    kernelopt = scripts / "kernelopt"
    fitted = json.loads(
        ran(kernelopt, *["fit", "train.csv", "--target", "diagnosis", "--out", "model.npz", "--json"])
    )
    assert fitted["task"] == "classification" and fitted["certificates"][0]["gap"] <= 1e-3
    assert (tmp_path / "model.npz").stat().st_size < 200_000
    ran(kernelopt, "predict", "model.npz", "test.csv", "--out", "predicted.csv")
    with (tmp_path / "predicted.csv").open(newline="") as file:
        assert np.mean([row["prediction"] for row in csv.DictReader(file)] == y) >= 0.93
    assert "lp_norm.primal" in ran(kernelopt, "list", "formulations")
    report = json.loads(ran(kernelopt, "report", "model.npz", "--data", "train.csv", "--json"))
    assert report["weights"] == fitted["weights"]
    assert report["proved_again"][0]["gap"] <= 1e-3


@pytest.mark.slow
def test_a_grid_search_over_p_c_and_the_dictionary_classifies_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
    grid = {
        "mklclassifier__p": [1.0, 2.0],
        "mklclassifier__C": [0.1, 10.0],
        "mklclassifier__kernels": [None, ["linear()", "gaussian(5.0)"]],
    }
    search = GridSearchCV(make_pipeline(StandardScaler(), MKLClassifier()), grid, cv=3)
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.score(X_new, y_new) >= 0.95  # a tuned RBF SVC has about 0.97
    best = search.best_estimator_[-1]
    assert best.certificate_.lower <= best.certificate_.upper and best.dual_gap_ <= best.tol
