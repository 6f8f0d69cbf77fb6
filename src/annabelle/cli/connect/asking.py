"""Asks for what is missing: unseen where it is a secret, line by line from a pipe, and never a machine."""

from __future__ import annotations

import getpass
import sys

import typer

from annabelle.core.errors import CallerMistake

MAX_CHARS = 1000


def ask(what: str, option: str, *, secret: bool = False) -> str:
    """The next answer; `option` is how it could have been given instead."""
    line = _from_terminal(what, secret=secret) if sys.stdin.isatty() else sys.stdin.readline(MAX_CHARS + 2)
    answer = line.rstrip("\r\n") if secret else line.strip()  # blanks belong to a password
    if not answer.strip():
        raise CallerMistake(f"{what} is missing.", hint=f"Give it with {option}, or run this in a terminal.")
    return checked(what, answer)


def checked(what: str, answer: str) -> str:
    """An answer as it may be used: one line of a bearable length."""
    if len(answer) > MAX_CHARS:
        raise CallerMistake(f"{what} is too long.")
    if any(ord(char) < 32 or ord(char) == 127 for char in answer):
        raise CallerMistake(f"{what} has a control character in it.")
    return answer


def _from_terminal(what: str, *, secret: bool) -> str:
    # Questions go to stderr, so that stdout has nothing but the answer of the command.
    shown = f"{what}: "
    try:
        if secret:
            return getpass.getpass(shown, stream=sys.stderr)
        sys.stderr.write(shown)
        sys.stderr.flush()
        return input()
    except EOFError as error:
        sys.stderr.write("\n")
        raise typer.Abort from error
