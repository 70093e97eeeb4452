"""`stability`: how far weights of kernels depend on the sample, and what each kernel adds to the score."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from kernelopt.errors import InputError
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.comparing import measure_of, parts_of, read_data, standard_error
from kernelopt.estimators.cross_validated import splits_of
from kernelopt.estimators.kernels import forget_matrices
from kernelopt.estimators.mkl import MKLRegressor, used_for
from kernelopt.estimators.workers import in_workers
from kernelopt.figures import STYLE, legend_below, machine_labels, name_rows, new_axes, shortened_name
from kernelopt.methods import Solution
from kernelopt.plain_tables import text_table
from kernelopt.running import user_call
from kernelopt.validation import Array, Index, as_generator, positive, whole

USED = 1e-6  # share of the largest weight from which a kernel is used


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """Weights that were learned on resamples, and scores without each kernel. `print` shows a table.

    Parameters
    ----------
    names : tuple of m str
        Of the kernels.
    weights : array of shape (m,), or (k, m) where each class or target has its own
        The weights on all samples.
    resampled : array of shape (n_resamples, m) or (n_resamples, k, m)
        The weights on each resample.
    losses : array of shape (n_splits, m)
        The score with all kernels minus the score without one, on the test samples of each split.
    score : float
        The mean score with all kernels.
    level : float
        Of the intervals.
    measure : str
        What the scores are.
    machines : tuple of k str
        The classes or targets with weights of their own; empty where all have the same.
    """

    names: tuple[str, ...]
    weights: Array
    resampled: Array
    losses: Array
    score: float
    level: float
    measure: str
    machines: tuple[str, ...] = ()

    @property
    def intervals(self) -> Array:
        """The quantiles (1 - level) / 2 and (1 + level) / 2 of the resampled weights, (2, m) or (2, k, m)."""
        return np.quantile(self.resampled, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)

    @property
    def used(self) -> Array:
        """The share of the resamples in which a weight is not zero, of the shape of `weights`."""
        used = self.resampled > USED * self.resampled.max(axis=-1, keepdims=True)
        return np.asarray(used.mean(axis=0))

    def as_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the table, as ``pandas.DataFrame`` takes them.

        They are kernel, weight, lower, upper, used, loss and standard_error: the ends of the interval of the
        weight, the share of resamples that use the kernel, the mean loss in score without it, and the
        standard error of this mean over the splits. Where each class or target has weights of its own, it is
        the column machine, and each has the rows of all kernels. The losses are of all machines together.
        """
        lower, upper = self.intervals
        count = max(1, len(self.machines))
        machine = {"machine": np.repeat(self.machines, len(self.names)).tolist()} if self.machines else {}
        return machine | {
            "kernel": [*self.names] * count,
            "weight": self.weights.ravel().tolist(),
            "lower": lower.ravel().tolist(),
            "upper": upper.ravel().tolist(),
            "used": self.used.ravel().tolist(),
            "loss": self.losses.mean(axis=0).tolist() * count,
            "standard_error": [standard_error(each) for each in self.losses.T] * count,
        }

    def __str__(self) -> str:
        columns = self.as_dict()
        shapes = [".3f", ".3f", ".3f", ".0%", "+.4f", ".4f"]
        words = [*columns][: -len(shapes)]
        rows = [
            [*row[: len(words)], *map(format, row[len(words) :], shapes)]
            for row in zip(*columns.values(), strict=True)
        ]
        ends = [f"{(1 - self.level) / 2:.1%}", f"{(1 + self.level) / 2:.1%}"]
        head = [*words, "weight", *ends, "used", f"loss of {self.measure}", "std. error"]
        return (
            f"{len(self.resampled)} resamples; {self.measure} {self.score:.3f} with all kernels\n"
            f"{text_table(head, rows, len(shapes))}"
        )

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the interval of each weight, the weight on all samples, and the loss in score beside it.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        columns = self.as_dict()
        lower, upper, weights = (columns[name] for name in ("lower", "upper", "weight"))
        ax, rows = new_axes(ax, rows=len(weights)), np.arange(len(weights))
        ax.hlines(rows, lower, upper, color=STYLE.light, linewidth=3, label=f"{self.level:.0%} of resamples")
        ax.plot(weights, rows, "o", color=STYLE.dark, markersize=4, label="all samples")
        beside = {"transform": ax.get_yaxis_transform(), "fontsize": STYLE.font, "va": "center"}
        for i, (loss, error) in enumerate(zip(columns["loss"], columns["standard_error"], strict=True)):
            ax.text(1.02, i, f"{loss:+.3f} ± {error:.3f}", **beside)
        ax.text(1.02, -0.75, f"{self.measure} lost without it,\n± standard error", **beside)
        words = zip(*(columns[name] for name in ("machine", "kernel") if name in columns), strict=True)
        name_rows(ax, [", ".join(map(shortened_name, row)) for row in words])
        ax.set(xlim=(0, 1.05 * max(*upper, *weights) or 1.0), xlabel="weight")
        told = f"{len(self.resampled)} resamples; {self.measure} {self.score:.3f} with all kernels"
        ax.set_title(f"Kernel weights\n{told}")
        legend_below(ax)
        return ax


def stability(
    model: Any,
    X: Any,
    y: Any,
    n_resamples: int = 50,
    *,
    level: float = 0.95,
    cv: Any = 5,
    scoring: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Stability:
    r"""Return how far the weights of kernels depend on the sample, and the loss in score without each kernel.

    The model is fitted on bootstrap resamples: n samples that are drawn with replacement, of classes as many
    of each as there are. A weight's interval has the middle share `level` of its values. The losses are of a
    cross-validation, in which the weights of the other kernels are learned again. The first says which
    weights another sample of the same source would give, and the second which kernels predictions need. Of
    two kernels that replace each other both losses are about zero, and the intervals are wide.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLClassifierCV or MKLRegressorCV, or a pipeline that ends with one
        It is cloned, and need not be fitted. It has at least two kernels. A C that is chosen by
        cross-validation is chosen once, on all samples.
    X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
        The samples.
    y : array of shape (n,), or (n, k) of k targets
        Their labels or targets.
    n_resamples : int >= 2, default 50
        The number of times that the model is fitted for the intervals.
    level : float in (0, 1), default 0.95
        Quantiles near the ends of few resamples are rough: 50 have their 2.5 % quantile at the second
        smallest value.
    cv : int, splitter or iterable of splits, default 5
        As for `cross_val_score`, for the losses in score.
    scoring : str or function, optional
        As for `cross_val_score`; by default the accuracy or R^2, of several targets its mean.
    n_jobs : int, optional
        The number of processes.
    random_state : int, Generator or None, default None
        The seed of the resamples.

    Returns
    -------
    Stability
        The weights of all resamples, their intervals, and the losses in score.

    Raises
    ------
    InputError
        If the model is none of these or has one kernel, or if an argument is wrong.

    Notes
    -----
    Intervals describe the spread on resamples. They are no confidence intervals of the weights on infinitely
    many samples, for two reasons. Zero is the end of a weight's range, where the bootstrap is not consistent
    [1]_. And a resample has about 63 % of the samples, some of them several times, which count as one sample
    of a larger C: narrow kernels fit it more closely, so that the weight on all samples may be outside of its
    interval.

    References
    ----------
    .. [1] Andrews, Inconsistency of the bootstrap when a parameter is on the boundary of the parameter space,
       Econometrica 68 (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import MKLRegressor, stability
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> kernels = [("first", "linear()", [0]), ("second", "linear()", [1])]
    >>> found = stability(MKLRegressor(kernels), X, 3 * X[:, 0] + X[:, 1], 20, random_state=0)
    >>> found.names, found.resampled.shape, found.losses.shape
    (('first', 'second'), (20, 2), (5, 2))
    >>> bool((found.losses[:, 0] > found.losses[:, 1]).all())
    True
    """
    learner, X, y = read_data(model, X, y, "stability")
    count = whole(n_resamples, "n_resamples", 2, "a whole number of at least 2")
    level, rng = positive(level, "level", below=1.0), as_generator(random_state)
    classes = is_classifier(learner)
    splits = splits_of(cv, y, classes)
    with user_call():
        fitted = clone(model).fit(X, y)
        whole_fit = parts_of(fitted, "stability")[1]
        names, weights = whole_fit.kernel_names_, whole_fit.weights_
        if len(names) < 2:
            raise InputError(
                "model must have at least two kernels, got one in stability: without it nothing is left. "
                "Pass kernels=None for the default ones."
            )
        model = at_fixed_C(model, whole_fit)
        resamples = [(model, X, y, resample(y, rng, classes)) for _ in range(count)]
        resampled = [*in_workers(weights_on, resamples, n_jobs, "learning on resample")]
        tasks = [(model, X, y, train, test, scoring) for train, test in splits]
        scores = np.array([*in_workers(scores_on, tasks, n_jobs, "scoring without each kernel on split")])
    losses, mean = scores[:, :1] - scores[:, 1:], float(scores[:, 0].mean())
    found = names, weights, np.array(resampled), losses, mean, level, measure_of(scoring, classes)
    return Stability(*found, machine_labels(whole_fit) if weights.ndim == 2 else ())


def at_fixed_C(model: Any, fitted: Any) -> Any:
    """Return a model with the C of its fitted estimator, which may have chosen it."""
    before, learner = parts_of(model, "stability")
    kind: Any = MKLClassifier if is_classifier(learner) else MKLRegressor
    shared = learner.get_params(deep=False).keys() & signature(kind).parameters.keys() - {"C"}
    fixed = kind(C=fitted.C_, **{name: getattr(learner, name) for name in shared})
    return fixed if before is None else make_pipeline(before, fixed)


def resample(y: Any, rng: np.random.Generator, classes: bool) -> Index:
    """Return n positions that are drawn with replacement, of classes as many of each as there are."""
    if not classes:
        return rng.integers(len(y), size=len(y))
    members = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.concatenate([rng.choice(each, each.size) for each in members])


def weights_on(model: Any, X: Any, y: Any, chosen: Index) -> Array:
    """Return the weights that are learned on some samples, shape (m,) or (k, m)."""
    fitted = clone(model).fit(_safe_indexing(X, chosen), y[chosen])
    return np.asarray(parts_of(fitted, "stability")[1].weights_)


def scores_on(model: Any, X: Any, y: Any, train: Index, test: Index, scoring: Any) -> list[float]:
    """Return the score of a split with all kernels, and the scores without each of them."""
    before, learner = parts_of(clone(model), "stability")
    A, B = (_safe_indexing(X, part) for part in (train, test))
    if before is not None:
        A, B = before.fit_transform(A, y[train]), before.transform(B)
    grams, tasks, shared = learner._prepare(A, y[train])
    each, scorer, m = tasks(learner.C), check_scoring(learner, scoring), len(grams)
    used = used_for(grams, each)
    starts: list[Solution] = []
    scores = []
    for kept in [np.arange(m), *(np.delete(np.arange(m), i) for i in range(m))]:
        fitted, part = copy(learner), grams.subset(kept)
        centred = part if used is grams else used.subset(kept)
        begin = [started(solution, kept) for solution in starts] or None
        solutions = fitted._learn_tasks(part, centred, each, shared, begin)
        starts = starts or solutions  # with all kernels
        weights = np.zeros((*fitted.weights_.shape[:-1], m))
        weights[..., kept] = fitted.weights_
        fitted.weights_ = weights
        scores.append(float(scorer(fitted, B, y[test])))
    forget_matrices(grams)
    return scores


def started(solution: Solution, kept: Index) -> Solution:
    """Return a solution, of which a start reads the weights of some kernels and the dual variables alone."""
    certificate = solution.certificate
    point = {variable: np.asarray(theta)[kept] for variable, theta in certificate.point.items()}
    return replace(solution, certificate=replace(certificate, point=point))
