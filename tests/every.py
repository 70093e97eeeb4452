"""One test over many values: a failure names the values at which it happened."""

from __future__ import annotations

import functools
import inspect


def every(names, values, ids=None):
    """Run a test for all `values` of the arguments `names`, as one test.

    It is written like `pytest.mark.parametrize`, for values at which one fact is stated again: they make one
    test instead of many. The first failure ends it, and a note names the values.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [tuple(row) if len(names) > 1 else (row,) for row in values]

    def label(k, row):
        if callable(ids):
            return ", ".join(str(ids(value)) for value in row)
        return str(list(ids)[k]) if ids is not None else ", ".join(f"{value!r:.60}" for value in row)

    def decorate(test):
        @functools.wraps(test)
        def run(**others):
            for k, row in enumerate(rows):
                try:
                    test(**others, **dict(zip(names, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"at {', '.join(names)}: {label(k, row)}")
                    raise

        kept = [p for name, p in inspect.signature(test).parameters.items() if name not in names]
        run.__signature__ = inspect.Signature(kept)
        return run

    return decorate
