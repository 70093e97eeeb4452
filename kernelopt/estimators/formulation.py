"""`FormulationClassifier`, and the functions that build formulations of the catalogue by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from kernelopt.catalog import Entry, Formulation, catalogue
from kernelopt.comparisons import sample_triplets
from kernelopt.docstrings import parameters_of
from kernelopt.errors import InputError, ParameterError
from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.labels import MachineClassifier
from kernelopt.grams import Grams
from kernelopt.methods import Solution
from kernelopt.records import Digest
from kernelopt.validation import Array, one_of, shown
from kernelopt.validation.messages import suggestion

KEYWORDS = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)  # arguments with a name


def entry_named(name: Any) -> Entry:
    """Return the formulation with a name such as "lanckriet.soft_margin".

    Raises
    ------
    ParameterError
        If none of that name is installed.
    """
    found = catalogue()
    if not isinstance(name, str) or name not in found:
        meant = suggestion(name, found) if isinstance(name, str) else ""
        raise ParameterError(
            f"formulation must be a name of the catalogue or a function, got {shown(name)}.{meant} "
            f"There are {', '.join(found) or 'none: install kernelopt, so that its entry points are known'}."
        )
    return found[name]


def built(name: str, *data: Any, **options: Any) -> Formulation:
    """Return the formulation of a name on some data."""
    return entry_named(name).build(*data, **options)


def as_options(given: Any) -> dict[str, Any]:
    """Return a copy of a dict of options, None as an empty one."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(
            f"options must be a dict from name to value, got {shown(given)} ({type(given).__name__}). Pass "
            'options={"p": 2.0}, say.'
        )
    return dict(given or {})


def checked_options(
    given: Any, build: Callable[..., Any], name: str, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a builder, with those defaults that it takes.

    Parameters
    ----------
    given : dict or None
    build : function of kernels, data and options
    name : str
        The builder in messages.
    defaults : dict
        Values of options that are not given.

    Raises
    ------
    ParameterError
        If the builder takes fewer than two arguments, an option is unknown, or one without a default is
        missing.
    """
    chosen = as_options(given)
    taken = list(signature(build).parameters.values())
    if len(taken) < 2:
        raise ParameterError(
            f"formulation must be a function of the kernels and the labels, got {name} of {len(taken)} "
            "arguments. Define it as def mine(grams, y, ...)."
        )
    known = {p.name: p for p in taken[2:] if p.kind in KEYWORDS}
    options: dict[str, Any] = {key: value for key, value in defaults.items() if key in known} | chosen
    unknown = [key for key in options if key not in known]
    if unknown and not any(p.kind is Parameter.VAR_KEYWORD for p in taken):
        meant = suggestion(str(unknown[0]), known)
        there = f"It has {', '.join(known)}." if known else "It has none: leave the options out."
        raise ParameterError(
            f"options must be arguments of the formulation {name}, got {unknown[0]!r}.{meant} {there}"
        )
    missing = [key for key, p in known.items() if p.default is Parameter.empty and key not in options]
    if missing:
        example = ", ".join(f'"{key}": ...' for key in missing)
        raise ParameterError(
            f"options must hold the arguments {', '.join(missing)} of the formulation {name}, which have no "
            f"default, got {shown(list(options))}. Pass options={{{example}}}, or "
            f"--option {'=VALUE '.join(missing)}=VALUE on the command line."
        )
    return options


TAKES = ("labels", "targets", "triplets")
TRIPLETS_PER_SAMPLE = 3  # comparisons that are drawn from the labels, for each sample
PREFIX = "options__"  # of an option among the parameters, as for the parts of a Pipeline
WRAPPED = (  # the least that a formulation states; the pages of the documentation have it too
    'ko.Formulation("mine", problem, K, theta, lambda: ko.dualize(problem), "equal", "reference")'
)


@parameters_of(KernelEstimator)
class FormulationClassifier(MachineClassifier, KernelEstimator):
    """Classifier of two classes by a formulation of the catalogue or by a function that makes one.

    Parameters
    ----------
    formulation : str or function, default "lp_norm.primal"
        A name of the catalogue, as `kernelopt list formulations` prints them, or a function of (grams, y)
        that returns a `kernelopt.Formulation`.
    options : dict, optional
        Keyword arguments of the formulation, such as ``{"p": 1.5, "loss": kernelopt.hinge(10.0)}``. A search
        varies one of them by its name, as in ``GridSearchCV(model, {"options__p": [1.0, 2.0]})``.
    takes : "labels", "targets" or "triplets", optional
        What the function takes beside kernels: the labels -1 and +1, the same as targets, or comparisons,
        which are drawn from the labels, three for each sample. By default what the catalogue says, and
        "labels" for a function.
    C : float > 0, default 1.0
        Passed to formulations with an argument C, unless `options` have one. Where a formulation learns a
        kernel and no machine, it is the C of the support vector machine on the kernel. Other formulations,
        such as "lp_norm.primal", take it with their loss: ``options={"loss": kernelopt.hinge(10.0)}``.
    tol : float > 0, default 1e-4
        Certified gap to reach, relative to the value.
    kernels, normalize, method, time_limit
        As for `KernelEstimator`.
    random_state : int, Generator or None, default 0
        The seed of comparisons and of the default kernels.

    Attributes
    ----------
    classes_ : array of shape (2,)
    formulation_ : Formulation
        With its `problem`, for `kernelopt.explain`, `dualize` and `show`. A loaded estimator has none.
    triplets_ : array of shape (T, 3)
        The comparisons, if the formulation takes them.
    weights_ : array of shape (m,)
    dual_coef_ : array of shape (1, n_support), or (m, n_support) for a sum of functions
    support_, intercept_, kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_
        As for `MKLClassifier`.

    Notes
    -----
    For more classes use scikit-learn's OneVsRestClassifier. For formulations that take similarities there is
    `SimilarityClassifier`.

    Examples
    --------
    >>> from kernelopt.estimators import FormulationClassifier
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["a", "b", "b", "a"]
    >>> kernels = ["linear()", "polynomial(2)"]
    >>> model = FormulationClassifier("lanckriet.soft_margin", kernels, options={"C": 10.0})
    >>> model.fit(X, y).predict(X).tolist()
    ['a', 'b', 'b', 'a']
    """

    _two_classes = True
    _fitted_forms = KernelEstimator._fitted_forms | {"classes_": Any, "_labels_checksum": Digest}

    def __init__(
        self,
        formulation: str | Callable[..., Formulation] = "lp_norm.primal",
        kernels: Any = None,
        *,
        options: Mapping[str, Any] | None = None,
        takes: str | None = None,
        C: float = 1.0,
        normalize: str = "multiplicative",
        method: Any = "auto",
        tol: float = 1e-4,
        time_limit: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.formulation = formulation
        self.kernels = kernels
        self.options = options
        self.takes = takes
        self.C = C
        self.normalize = normalize
        self.method = method
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state

    @one_call
    def fit(self, X: Any, y: Any) -> FormulationClassifier:
        """Solve the formulation, and keep its machine.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,)
            Labels of two classes.

        Returns
        -------
        FormulationClassifier
            The estimator itself.

        Raises
        ------
        LabelError
            If there are not two classes.
        ParameterError
            If there is no such formulation, if it takes similarities, or if an option is unknown or missing.
        InputError
            If an argument is wrong, or if the learned kernel is not known at new samples.
        """
        grams, labels, solution = self._fit_formulation(X, y)
        weights, alpha, b = self._machine(grams, solution, labels[0])
        self._keep_machines(alpha, np.array([b]), weights)
        return self

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Array]]:
        _, takes = self._builder()
        samples, labels = self._read_classes(X, y, most=2)
        grams = self._fit_kernels(samples)
        if takes == "triplets":
            count = TRIPLETS_PER_SAMPLE * len(samples)
            self.triplets_ = sample_triplets(labels[0], count, random_state=self.random_state)
        return grams, labels

    def _formulated(self, grams: Grams, labels: list[Any]) -> Formulation:
        build, takes = self._builder()
        name = getattr(self.formulation, "__name__", str(self.formulation))
        options = checked_options(self.options, build, name, {"C": self.C})
        formulation = build(grams, self.triplets_ if takes == "triplets" else labels[0], **options)
        if not isinstance(formulation, Formulation):
            raise ParameterError(
                f"formulation must make a kernelopt.Formulation, got {type(formulation).__name__} from "
                f"{name}. Wrap a problem: return {WRAPPED}, with the expressions K of the kernel and theta "
                "of the weights."
            )
        return formulation

    def _solve(self, problem: Any, **options: Any) -> Solution:
        self._formulation: Formulation = problem
        return super()._solve(problem, **options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also each option as ``options__name``.

        Parameters
        ----------
        deep : bool, default True
            Whether options are parameters too.
        """
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if deep and isinstance(self.options, Mapping):
            parameters |= {f"{PREFIX}{name}": value for name, value in self.options.items()}
        return parameters

    def set_params(self, **parameters: Any) -> FormulationClassifier:
        """Set parameters, and options by ``options__name``: the others stay as they are.

        Parameters
        ----------
        **parameters
            Values by name.
        """
        super().set_params(**{k: v for k, v in parameters.items() if not k.startswith(PREFIX)})
        chosen = {k.removeprefix(PREFIX): v for k, v in parameters.items() if k.startswith(PREFIX)}
        if chosen:
            self.options = as_options(self.options) | chosen  # a copy: others may hold the given dict
        return self

    @property
    def formulation_(self) -> Formulation:
        """The formulation of `fit`; a loaded estimator has none, since files hold no problems."""
        check_is_fitted(self)
        if not hasattr(self, "_formulation"):
            raise InputError(
                "the formulation must be known from fit, got an estimator from a file. Build the formulation "
                "again, or fit."
            )
        return self._formulation

    def _builder(self) -> tuple[Callable[..., Any], str]:
        """Return the function that makes the formulation, and what it takes."""
        if callable(self.formulation):
            return self.formulation, one_of("labels" if self.takes is None else self.takes, "takes", TAKES)
        entry = entry_named(self.formulation)
        takes = entry.takes if self.takes is None else one_of(self.takes, "takes", TAKES)
        if takes not in TAKES:
            other = "SimilarityClassifier" if takes == "similarities" else "OneClassMKL"
            raise ParameterError(
                f"formulation must take {', '.join(TAKES)}, got {entry.name}, which takes {takes}. "
                f"Use {other}."
            )
        return entry.build, takes

    def _machine(self, grams: Grams, solution: Solution, labels: Array) -> tuple[Array, Array, float]:
        """Return the weights, the dual variables, shape (1, n) or (m, n), and the intercept."""
        weights = np.asarray(solution.weights, dtype=float)
        if weights.shape != (len(grams),):
            raise InputError(
                f"the formulation must learn one weight for each of the {len(grams)} kernels, got weights of "
                f"shape {weights.shape}. New samples need a combination of the kernels."
            )
        alpha = np.asarray(solution.alpha)
        if alpha.size:
            return weights, np.atleast_2d(alpha), float(solution.intercept)
        machine = SVC(C=self.C, kernel="precomputed").fit(grams.combine(weights), labels)
        alpha = np.zeros((1, labels.size))
        alpha[0, machine.support_] = machine.dual_coef_[0]
        return weights, alpha, float(machine.intercept_[0])
