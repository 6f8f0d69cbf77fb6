"""Reads a workspace file and has a question about it answered: plain text in a thread, everything else in a worker
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import PurePosixPath
from typing import Annotated, Protocol, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

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
from annabelle.servers.documents.answers import answer_question, kind_of
from annabelle.servers.documents.questions import AnyDocumentQuestion, DocumentAnswer, WorkerRefusal
from annabelle.servers.kit import current_call, in_thread
from annabelle.servers.kit.files.workspace import Workspace

_SECONDS = 60.0
_AT_ONCE = 2
_SIMPLE = ("text", "markdown", "csv")
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
_ERRORS: tuple[type[CallerMistake], ...] = (InvalidArguments, NotFound, Conflict, TooLarge)


WorkerMessage = Annotated[DocumentAnswer | WorkerRefusal, Field(discriminator="ask")]


class QuestionRunner(Protocol):
    async def ask(self, question: AnyDocumentQuestion, data: bytes) -> DocumentAnswer: ...


class ThreadRunner:
    """Answers in this process, for files that cannot hang the reader or exhaust its memory."""

    async def ask(self, question: AnyDocumentQuestion, data: bytes) -> DocumentAnswer:
        return await in_thread(lambda stop: answer_question(question, data))


class WorkerRunner:
    """Answers in a process of its own, which is ended when it takes too long or nobody waits any more."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def ask(self, question: AnyDocumentQuestion, data: bytes) -> DocumentAnswer:
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
                raise _timeout_error() from error
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
        return _read_message(said, process.returncode)


def _read_message(said: bytes, code: int | None) -> DocumentAnswer:
    if code in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        raise _timeout_error()
    try:
        found: DocumentAnswer | WorkerRefusal = TypeAdapter(WorkerMessage).validate_json(said)
    except ValidationError as error:
        raise Unavailable(
            "Reading the file broke down.", hint="It may be damaged, or need too much memory; try another copy."
        ) from error
    if isinstance(found, WorkerRefusal):
        raise _to_error(found)
    return found


def _to_error(refusal: WorkerRefusal) -> AnnabelleError:
    said = refusal.error
    kind = next((kind for kind in _ERRORS if kind.code == said.code), InvalidArguments)
    return kind(said.message, hint=said.hint, field=said.field)


def _timeout_error() -> ToolTimeout:
    return ToolTimeout(
        "The file takes too long to read.", hint="Ask for fewer pages; if one page does it, the file may be hostile."
    )


A = TypeVar("A", bound=BaseModel)

MAX_BYTES = 50_000_000

DocumentPath = Annotated[
    str,
    Field(min_length=1, max_length=1000, description="File in the workspace, or an absolute path in a granted folder"),
]


class DocumentQueries:
    """Reads a file of the workspace and answers a question about it. `careful` reads what is not plain text."""

    def __init__(self, workspace: Workspace, careful: QuestionRunner | None = None) -> None:
        self._workspace = workspace
        self._quick, self._careful = ThreadRunner(), careful or WorkerRunner()

    async def ask(self, path: str, question: AnyDocumentQuestion, answer: type[A]) -> tuple[str, int, A]:
        """The path as shown, the file's size, and the answer."""
        file = await self._workspace.read(path, MAX_BYTES)
        question = question.model_copy(update={"name": PurePosixPath(path).name[:255]})
        await current_call().progress(1, 2, f"reading {question.name}")
        simple = question.ask not in ("picture", "members") and kind_of(file.data[:1_000_000], question.name) in _SIMPLE
        found = await (self._quick if simple else self._careful).ask(question, file.data)
        await current_call().progress(2, 2)
        if not isinstance(found, answer):
            raise TypeError(f"{question.ask} was answered with {type(found).__name__}")
        return file.path, len(file.data), found
