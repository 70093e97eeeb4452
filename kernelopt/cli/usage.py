"""The parser of the command line: argparse, whose errors name what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from kernelopt.validation.messages import suggestion

MISSING = "the following arguments are required: "  # the beginning of the message of argparse


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest option or command, and says which option took a missing argument."""

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and keep the arguments for messages."""
        self.given = () if args is None else tuple(args)
        return super().parse_known_args(args, namespace)

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """End with an error about arguments that no option takes."""
        wrong = [text.partition("=")[0] for text in rest if text.startswith("-")]
        hint = suggestion(wrong[0], self._option_string_actions) if wrong else ""
        self.error(f"unrecognized arguments: {' '.join(rest)}" + f".{hint}" * bool(hint))

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with 2."""
        if message.startswith(MISSING):
            missing = message.removeprefix(MISSING).split(", ")
            positional = [a.metavar for a in self._actions if not a.option_strings and a.metavar in missing]
            taken = self.taken_by_an_option() if positional else None
            if taken:
                message += f". {taken[0]} has taken {taken[1]!r}: write {positional[0]} before the options"
        super().error(message)

    def taken_by_an_option(self) -> tuple[str, str] | None:
        """Return the first option with several values that was given two or more, and the last of them."""
        for start, option in enumerate(self.given, 1):
            action = self._option_string_actions.get(option)
            values = [*takewhile(lambda text: not text.startswith("-"), self.given[start:])]
            if action is not None and action.nargs == "+" and len(values) > 1:
                return option, values[-1]
        return None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = suggestion(str(value), [*map(str, action.choices or ())])
            error.message += f".{hint}" * bool(hint)
            raise


def add_table(parser: Parser, *, model: bool = False, data: bool = True) -> None:
    """Add the files that a command reads, and the option that says how numbers of a CSV file are written."""
    add = parser.add_argument
    if model:
        add("model", type=Path, metavar="MODEL", help="a file that `kernelopt fit` has written")
    if data:
        add("data", type=Path, metavar="DATA", help="a CSV or Parquet file")
    mark = "the decimal mark of numbers in a CSV file, a point or a comma (default: a point)"
    add("--decimal", choices=(".", ","), default=".", metavar="MARK", help=mark)
