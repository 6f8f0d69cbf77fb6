"""What the tools share: a file of the workspace, and a question about it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field

from annabelle.servers.documents.lanes import Lane
from annabelle.servers.documents.questions import Question
from annabelle.servers.kit import current_call
from annabelle.servers.kit.files.workspace import Workspace

A = TypeVar("A", bound=BaseModel)

MAX_BYTES = 50_000_000

Path = Annotated[
    str,
    Field(min_length=1, max_length=1000, description="File in the workspace, or an absolute path in a granted folder"),
]


class Desk:
    """Takes a file from the workspace and has a question about it answered."""

    def __init__(self, workspace: Workspace, lane: Lane) -> None:
        self._workspace, self._lane = workspace, lane

    async def ask(self, path: str, question: Question, answer: type[A]) -> tuple[str, int, A]:
        """How to speak of the file, its size, and the answer."""
        file = await self._workspace.read(path, MAX_BYTES)
        await current_call().progress(1, 2, f"reading {question.name}")
        found = await self._lane.ask(question, file.data)
        await current_call().progress(2, 2)
        if not isinstance(found, answer):
            raise TypeError(f"{question.ask} was answered with {type(found).__name__}")
        return file.path, len(file.data), found


def name_of(path: str) -> str:
    return PurePosixPath(path).name[:255]
