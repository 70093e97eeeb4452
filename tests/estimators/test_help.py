"""`help` of an estimator shows what a user calls, and says what it does."""

from __future__ import annotations

import inspect
import pydoc

from kernelopt import estimators
from tests.every import every

CALLED = {
    "fit", "predict", "predict_proba", "decision_function", "score", "score_samples", "kernel", "transform",
    "save", "certify",
}  # fmt: skip
CLASSES = [
    kind
    for name in estimators.__all__
    if isinstance(kind := getattr(estimators, name), type) and hasattr(kind, "fit")
]


def owner(kind, name):
    """The package of the class that defines an attribute."""
    return next(base for base in kind.__mro__ if name in vars(base)).__module__.partition(".")[0]


def is_called(attribute):
    """Whether an attribute of a class is a method or a property, and no constant or default."""
    return callable(attribute) or isinstance(attribute, property)


@every("kind", CLASSES)
def test_what_is_public_is_for_the_user_and_documented(kind):
    requests = {"set_fit_request", "set_score_request", "get_params", "set_params"}  # of scikit-learn
    ours = {name for name in dir(kind) if not name.startswith("_") and owner(kind, name) == "kernelopt"}
    shown = {name for name in ours - requests if is_called(inspect.getattr_static(kind, name))}
    assert shown - {"formulation_"} <= CALLED and {"fit", "save", "certify"} <= shown
    assert all(inspect.getdoc(getattr(kind, name)) for name in shown)
    printed = pydoc.plain(pydoc.render_doc(kind))
    assert "fit(self" in printed and "read_training" not in printed.replace("_read_training", "")


def test_help_of_the_classifier_has_its_methods_first():
    printed = pydoc.plain(pydoc.render_doc(estimators.MKLClassifier))
    methods = [
        line.split("(")[0].removeprefix(" |  ")
        for line in printed.splitlines()
        if line.startswith(" |  fit(")
    ]
    assert methods == ["fit"]
    for name in ("decision_function", "predict", "score", "save", "certify", "transform", "kernel"):
        assert f" |  {name}(" in printed
