"""Classification into two classes by the sign of a real function."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from kernelopt.estimators.labels import ScoredMixin
from kernelopt.validation import Array


class TwoClassMixin(ScoredMixin, ClassifierMixin):
    """A classifier of two classes. It predicts `classes_[1]` where `decision_function` is positive."""

    classes_: Any

    def decision_function(self, X: Any) -> Array:
        """Return the values of the machine at samples, shape (n_new,), positive for `classes_[1]`."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Return the class of each sample, shape (n_new,); X and errors as for `decision_function`."""
        values = self.decision_function(X)  # it raises NotFittedError before `classes_` is missed
        return self.classes_[(values > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
