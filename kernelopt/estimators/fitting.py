"""`fit` as one call of the user: a time limit covers all of it, and what it leaves is of use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from kernelopt.errors import Stopped, TimeLimitError
from kernelopt.methods.solution import Solution
from kernelopt.running import Call, running_call
from kernelopt.validation import positive

F = TypeVar("F", bound=Callable[..., Any])
WITHOUT_MATRICES = (
    "Or take Gaussian kernels by name, kernels=['gaussian(0.6 median)', 'gaussian(1.2 median)'], with "
    'normalize="trace": the method "newton" learns from the points, without a matrix.'
)


class Fit(Call):
    """The call of an estimator's `fit`.

    Reading and evaluating end at the time limit with an error, since without all kernels there is no problem.
    A solve returns its best result in time by itself. So it is given the rest of the limit, and this call has
    no deadline from then on.

    Attributes
    ----------
    solves : int
        The number of solves that were started.
    expected, rounds : int
        The number of solves that are to come, and of evaluations of all kernels between them.
    avoidable : bool
        Whether kernels of points are evaluated between all of them, as Gaussian ones need not be.
    """

    def __init__(self, name: str, time_limit: float | None) -> None:
        super().__init__(time_limit)
        self.name, self.solves, self.expected, self.rounds = name, 0, 1, 0
        self.avoidable = False
        self._evaluating_since: float | None = None
        self._evaluation = self._evaluations = 0.0  # seconds of the last evaluation, and of all of them
        self.show("reading the samples")

    @property
    def left(self) -> float:
        """The seconds until the time limit, infinite without one, and zero after Ctrl-C."""
        if self.interrupted:
            return 0.0
        return math.inf if self.time_limit is None else max(0.0, self.time_limit - self.seconds)

    def evaluate(self) -> None:
        """Let evaluations of kernels end at the time limit."""
        if self.time_limit is not None and not self.interrupted:
            self._deadline = self.began + self.time_limit
        self._evaluating_since = self.seconds

    def limit_of_solve(self) -> float | None:
        """Return the time limit of the next solve: its part of what is left for all that are expected.

        Raises
        ------
        Stopped
            If the time limit was exceeded by so much that no other solve can start.
        """
        if self.time_limit is not None and self.seconds > 0.3 + 1.07 * self.time_limit:
            raise Stopped
        if self._evaluating_since is not None:
            self._evaluation, self._evaluating_since = self.seconds - self._evaluating_since, None
            self._evaluations += self._evaluation
        part = (self.left - self.rounds * self._evaluation) / max(1, self.expected)
        self.expected, self.solves = self.expected - 1, self.solves + 1
        if not self.interrupted:
            self._deadline = math.inf
        return None if math.isinf(part) else max(1e-6, part)  # without time it trains a machine on a sample

    def time_for(self, solves: float, evaluations: float) -> bool:
        """Whether these solves and evaluations fit into the limit, if they take as long as those so far."""
        solve = (self.seconds - self._evaluations) / max(1, self.solves)
        return self.left >= solves * solve + evaluations * self._evaluation

    def unfinished(self) -> BaseException:
        """Return the error of a call that has ended without a machine."""
        done = [f"reached the {self.stage}"] if self.stage else []
        cure = "Give more time, or fit on fewer samples."
        if self.solves:
            done.append(f"started {self.solves} solve{'s' * (self.solves > 1)}")
        elif self.steps is not None:
            done.append(f"evaluated {int(self.steps.done)} of {self.steps.total} kernels")
            kernels = self.seconds - self.steps.seconds + self.steps.predicted
            if not self.stage and math.isfinite(kernels):
                cure = f"The kernels alone take about {kernels:.2g} s. {cure}"
        if self.avoidable:
            cure = f"{cure} {WITHOUT_MATRICES}"
        had = f"{self.name} had {' and '.join(done) or 'evaluated no kernel'}"
        if self.interrupted:
            error = KeyboardInterrupt()
            error.add_note(f"{had} when it was interrupted: there is no machine yet.")
            return error
        return TimeLimitError(
            f"a machine must be trained within time_limit = {self.time_limit:g}, got none: {had} in "
            f"{self.seconds:.1f} s. {cure}"
        )


def one_call(fit: F) -> F:
    """Let a `fit` be one call, which `time_limit` and Ctrl-C end; an error leaves the estimator as it was."""

    @wraps(fit)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        limit = getattr(self, "time_limit", None)
        name = type(self).__name__
        before = dict(vars(self))
        call = Fit(name, None if limit is None else positive(limit, "time_limit"))
        call.verbose = getattr(self, "verbose", False) is True
        try:
            with call:
                fitted = fit(self, *args, **kwargs)
                found = self.solution_
                if not is_constant(found if isinstance(found, tuple) else [found]):
                    return fitted
            raise call.unfinished()
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            if isinstance(error, TimeLimitError):  # of a solve: its limit was a part of the call's
                raise call.unfinished() from None
            raise
        finally:
            call.close()

    return called  # type: ignore[return-value]


def running_fit() -> Fit | None:
    """Return the running `fit`, None where a method of an estimator was called by itself."""
    call = running_call()
    return call if isinstance(call, Fit) else None


def expect(stage: str, solves: int, rounds: int = 0) -> None:
    """Tell the running `fit` what it is at, for its progress line, and what is to come; see `Fit`."""
    fit = running_fit()
    if fit is not None:
        if fit.interrupted:  # a solve has returned its best machine, which is not the one to be learned
            raise Stopped
        fit.stage, fit.expected, fit.rounds = stage, solves, rounds


def time_for(solves: float, evaluations: float) -> bool:
    """Whether the running `fit` has time for these solves and evaluations of all kernels."""
    fit = running_fit()
    return fit is None or fit.time_for(solves, evaluations)


def limit_of_solve(time_limit: float | None) -> float | None:
    """Return the time limit of the next solve of the running `fit`; outside of one it is `time_limit`."""
    fit = running_fit()
    return time_limit if fit is None else fit.limit_of_solve()


def is_constant(solutions: Sequence[Solution]) -> bool:
    """Whether calls were ended with constant machines, or without machines at weights of zero.

    They may be optimal, as for a tiny C: then their gap says so.
    """
    ended = all(each.ended_by_caller and each.gap > (each.tol or 0.0) for each in solutions)
    learned = [[m.alpha for m in each.learned] or [each.weights] for each in solutions]
    return ended and not any(np.any(array) for arrays in learned for array in arrays)
