"""The command line: `kernelopt list`, `check`, `fit`, `predict`, `report`, `certify` and `demo`.

Every command prints tables for people, or one JSON document with `--json`. Messages, warnings and progress
go to standard error. The exit status is

==== ==============================================================================================
0    The work is done. Where the command certifies, every bound is as tight as it must be.
1    The work cannot be done or is not certified: wrong data, an unreadable file, a gap that is too large.
2    Wrong use: an unknown option, or a value outside its range.
3    A defect of kernelopt, or of a package that it calls. `--debug` shows where.
130  Interrupted by Ctrl-C.
==== ==============================================================================================
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType

from kernelopt.cli import certify, check, demo, fit, listing, predict, report
from kernelopt.cli.output import say
from kernelopt.cli.usage import Parser
from kernelopt.errors import KerneloptError, ParameterError

COMMANDS = {
    "list": listing,
    "check": check,
    "fit": fit,
    "predict": predict,
    "report": report,
    "certify": certify,
    "demo": demo,
}
REFUSED, WRONG_USE, DEFECT, INTERRUPTED = 1, 2, 3, 130  # exit statuses; argparse too exits with 2
DEFECT_TEXT = "the command failed where it should not. Run it again with --debug, and report what it prints"


def parser() -> Parser:
    """Return the parser of the command line."""
    top = Parser(prog="kernelopt", description="Kernel learning in the language of cvxpy, certified.")
    top.add_argument("--version", action="version", version=f"kernelopt {version('kernelopt')}")
    shared = Parser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    shared.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        summary, _, description = str(command.__doc__).partition("\n\n")
        own = commands.add_parser(name, parents=[shared], help=summary, description=description)
        command.add_options(own)
        own.set_defaults(run=command.run, parser=own)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options, rest = parser().parse_known_args(arguments)
    if rest:
        options.parser.refuse(rest)
    try:
        with libraries_on_standard_error(), interrupts_end_the_command(), warnings_in_one_line():
            status = int(options.run(options))
            sys.stdout.flush()
        return status
    except (KeyboardInterrupt, Interrupted):
        return ended(options.debug, "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush of the interpreter
        return 0
    except (KerneloptError, OSError) as error:
        return ended(options.debug, str(error), WRONG_USE if isinstance(error, ParameterError) else REFUSED)
    except Exception as error:
        return ended(options.debug, f"{DEFECT_TEXT} ({type(error).__name__}: {error})", DEFECT)


def ended(debug: bool, message: str, status: int) -> int:
    """Print why the command ended, with the traceback if it is asked for, and return the exit status."""
    if debug:
        traceback.print_exc()
    say(message)
    return status


@contextmanager
def libraries_on_standard_error() -> Iterator[None]:
    """Let what compiled libraries print, such as HiGHS its name, not mix with what the command prints."""
    printed = sys.stdout
    try:
        number = printed.fileno()
    except OSError:  # a caller in Python reads what is printed
        yield
        return
    printed.flush()
    own = os.dup(number)
    os.dup2(2, number)
    with os.fdopen(own, "w", encoding=printed.encoding, errors=printed.errors) as sys.stdout:
        try:
            yield
        finally:
            os.dup2(own, number)
            sys.stdout = printed


class Interrupted(BaseException):
    """Ctrl-C. At a KeyboardInterrupt a solve returns its best point, and the command would go on."""


@contextmanager
def interrupts_end_the_command() -> Iterator[None]:
    """Raise `Interrupted` on Ctrl-C, unless the signal is ignored or handled by the caller."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings on standard error without the line of the source that gave them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: say(message)
        yield
