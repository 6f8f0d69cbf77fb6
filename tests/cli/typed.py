"""`annabelle` run in the test's own process: the same `main`, without the second it takes to start an interpreter."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

from annabelle.cli.app import main
from cli.terminal import json_only


@dataclass(frozen=True)
class Typed:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; stderr stays empty."""
        assert (self.code, self.err) == (0, ""), self
        return json_only(self.out)


class Keyboard:
    """Types commands on a home, one after the other."""

    def __init__(self, known: dict[str, str], patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        for name, value in known.items():
            patch.setenv(name, value)

    def __call__(self, *arguments: str, stdin: str = "") -> Typed:
        self._patch.setattr(sys, "argv", ["annabelle", *arguments])
        self._patch.setattr(sys, "stdin", io.StringIO(stdin))
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return Typed(code, out.getvalue(), err.getvalue())

    def said(self, *arguments: str) -> str:
        """What a command that works says."""
        done = self(*arguments)
        assert (done.code, done.err) == (0, ""), done
        return done.out
