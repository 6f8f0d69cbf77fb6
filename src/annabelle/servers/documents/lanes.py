"""Ways to get a question answered: plain text at once in a thread, everything else in a process that can be ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Annotated, Protocol

from pydantic import Field, TypeAdapter, ValidationError

from annabelle.core.errors import (
    AnnabelleError,
    CallerMistake,
    Conflict,
    InvalidArguments,
    NotFound,
    TooLarge,
    ToolTimeout,
    Unavailable,
)
from annabelle.servers.documents.answering import answer
from annabelle.servers.documents.kinds import kind_of
from annabelle.servers.documents.questions import Answer, Question, Refusal
from annabelle.servers.kit import in_thread

_SECONDS = 60.0
_AT_ONCE = 2
_SIMPLE = ("text", "markdown", "csv")
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
_ERRORS: tuple[type[CallerMistake], ...] = (InvalidArguments, NotFound, Conflict, TooLarge)


Said = Annotated[Answer | Refusal, Field(discriminator="ask")]


class Lane(Protocol):
    async def ask(self, question: Question, data: bytes) -> Answer: ...


class ThreadLane:
    """Answers in this process. For files whose reading can neither hang nor swell."""

    async def ask(self, question: Question, data: bytes) -> Answer:
        return await in_thread(lambda stop: answer(question, data))


class ProcessLane:
    """Answers in a process of its own, which is ended when it takes too long or nobody waits any more."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def ask(self, question: Question, data: bytes) -> Answer:
        async with self._room:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "annabelle.servers.documents.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                env={name: value for name in _KEPT_VARIABLES if (value := os.environ.get(name)) is not None},
            )  # fmt: skip
            try:
                async with asyncio.timeout(self._seconds):
                    said, _ = await process.communicate(question.model_dump_json().encode() + b"\n" + data)
            except TimeoutError as error:
                raise _took_too_long() from error
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
        return _understood(said, process.returncode)


class Lanes:
    """Sends each file the way it needs."""

    def __init__(self, careful: Lane | None = None) -> None:
        self._quick, self._careful = ThreadLane(), careful or ProcessLane()

    async def ask(self, question: Question, data: bytes) -> Answer:
        simple = question.ask not in ("picture", "members") and kind_of(data[:1_000_000], question.name) in _SIMPLE
        return await (self._quick if simple else self._careful).ask(question, data)


def _understood(said: bytes, code: int | None) -> Answer:
    if code in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        raise _took_too_long()
    try:
        found: Answer | Refusal = TypeAdapter(Said).validate_json(said)
    except ValidationError as error:
        raise Unavailable(
            "Reading the file broke down.", hint="It may be damaged, or need too much memory; try another copy."
        ) from error
    if isinstance(found, Refusal):
        raise _revived(found)
    return found


def _revived(refusal: Refusal) -> AnnabelleError:
    said = refusal.error
    kind = next((kind for kind in _ERRORS if kind.code == said.code), InvalidArguments)
    return kind(said.message, hint=said.hint, field=said.field)


def _took_too_long() -> ToolTimeout:
    return ToolTimeout(
        "The file takes too long to read.", hint="Ask for fewer pages; if one page does it, the file may be hostile."
    )
