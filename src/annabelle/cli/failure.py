"""Ends a failed command: one sentence and a hint on stderr, an exit code, no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from typing import Protocol, runtime_checkable

from typer import Abort
from typer.exceptions import TyperException

from annabelle.cli.spinner import clear_status
from annabelle.core.errors import AnnabelleError, ErrorBody, explain_shortage
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor

DEBUG_VARIABLE = "ANNABELLE_DEBUG"
INTERRUPTED = 130


@runtime_checkable
class _ShowableError(Protocol):
    def show(self) -> None: ...


def show(error: Exception) -> int:
    """Show the error on stderr and return the exit code."""
    clear_status()
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, Abort):
        return INTERRUPTED
    if isinstance(error, TyperException):
        return _print_usage(error)
    if isinstance(error, BrokenPipeError):
        # The reader closed the pipe. Without this, Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    known = error if isinstance(error, AnnabelleError) else explain_shortage(error)
    if known is not None:
        print_error(known.body())
        return known.exit_code
    _log_traceback(error)
    print_error(
        ErrorBody(
            code="internal_error",
            message=f"Something went wrong inside Annabelle: {type(error).__name__}.",
            hint=f"The details are in the log (annabelle logs cli); {DEBUG_VARIABLE}=1 shows them here.",
        )
    )
    return 1


def print_error(body: ErrorBody) -> None:
    """Write one error to stderr, as a sentence or as JSON."""
    if "--json" in sys.argv:
        sys.stderr.write(json.dumps({"error": body.model_dump(exclude_none=True)}, ensure_ascii=False) + "\n")
        return
    sys.stderr.write(f"{body.message}\n")
    if body.hint:
        sys.stderr.write(f"{body.hint}\n")


def _print_usage(error: TyperException) -> int:
    if "--json" in sys.argv:
        print_error(ErrorBody(code="usage", message=error.format_message()))
    elif isinstance(error, _ShowableError):
        error.show()
    else:
        sys.stderr.write(f"{error.format_message()}\n")
    return error.exit_code


def _log_traceback(error: Exception) -> None:
    text = "".join(traceback.format_exception(error))
    home = Home.from_environment()
    with contextlib.suppress(OSError):
        home.logs.mkdir(parents=True, exist_ok=True)
        with (home.logs / "cli.log").open("a", encoding="utf-8") as log:
            log.write(f"{now().isoformat(timespec='seconds')} {Redactor.from_environment()(text)}\n")
