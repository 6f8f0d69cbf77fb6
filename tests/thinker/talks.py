"""Conversations for tests of sessions: in files and in tables, with a model that sums up by a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.contract import TokenUsage
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.embeddings import Embedder, EmbeddingConfig, make_embedder
from annabelle.store.database import Database
from annabelle.thinker.assembly import make_conversations
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import StepFunction, WorkflowFunction
from annabelle.thinker.loop.model_call import dump_message
from annabelle.thinker.session.database_store import DatabaseSessionStore
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.session.session_store import SessionStore
from annabelle.thinker.session.summariser import Summariser
from thinker.fakes import ListedModel

THREAD = "thr_one"
MakeStore = Callable[[], SessionStore]


def every_few_bytes(start: int, end: int) -> list[int]:
    """Where to cut a file: at every seventh byte, and at each of the first and last ten."""
    return sorted({*range(start, end, 7), *range(start, min(start + 10, end)), *range(max(start, end - 10), end)})


def turn(
    number: int, *, said: str = "", result: str = "", at: datetime | None = None, task: bool = False
) -> SessionTurn:
    """One turn, with a tool call in it when there is a result."""
    user, assistant = said or f"question {number}", f"answer {number}"
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(content=user)])]
    if result:
        messages.append(ModelResponse(parts=[ToolCallPart("look", {"text": "x"}, f"c{number}")]))
        messages.append(ModelRequest(parts=[ToolReturnPart("look", result, f"c{number}")]))
    messages.append(ModelResponse(parts=[TextPart(content=assistant)]))
    return SessionTurn(
        message_id=f"msg_{number}",
        trace_id=f"tr_{number}",
        user_id="owner",
        at=at or now(),
        user=user,
        assistant=assistant,
        messages=[dump_message(message) for message in messages],
        tools=("look",) if result else (),
        usage=TokenUsage(input_tokens=10, output_tokens=2),
        task=task,
    )


class NowEngine:
    """Runs a workflow when it is started, once per id, with steps that are done where they stand."""

    def __init__(self) -> None:
        self.functions: dict[str, WorkflowFunction] = {}
        self.runs: dict[str, asyncio.Task[Any]] = {}

    def workflow(self, name: str, function: WorkflowFunction) -> None:
        self.functions[name] = function

    async def start(self, name: str, workflow_id: str, argument: Any) -> None:
        if workflow_id not in self.runs:
            self.runs[workflow_id] = asyncio.create_task(self.functions[name](argument))  # type: ignore[arg-type]

    async def step(self, name: str, work: StepFunction) -> Any:
        return await work()

    async def launch(self) -> None: ...

    async def wait(self, topic: str, timeout: float) -> bool:
        return False

    async def signal(self, workflow_id: str, topic: str) -> None: ...

    async def finished(self, workflow_id: str) -> None: ...

    async def exists(self, workflow_id: str) -> bool:
        return workflow_id in self.runs

    async def recorded(self, workflow_id: str, timeout: float) -> None: ...

    async def close(self) -> None: ...


class Talk:
    """The conversations of one agent, and what they are made of."""

    def __init__(
        self, store: SessionStore, model: ListedModel, folder: Path, embedder: Embedder | None = None, **settings: Any
    ) -> None:
        self.store, self.model, self.engine, self.costs = store, model, NowEngine(), CostMeter()
        self.sessions = make_conversations(
            store,
            self.engine,
            Summariser(model, self.costs),
            embedder or make_embedder(EmbeddingConfig(), None),
            Settings(**settings),
            TraceFile(folder / "traces.jsonl", "thinker", Redactor()),
        )

    async def say(self, *turns: SessionTurn) -> None:
        """Turns as they end: written, answered, and whatever follows done."""
        for one in turns:
            await self.sessions.append(THREAD, one)
            self.sessions.answered(THREAD)
            await self.settled()

    async def settled(self) -> None:
        """Wait for everything that goes on behind the answers."""
        await asyncio.gather(*self.sessions._tasks)  # pyright: ignore[reportPrivateUsage]
        await asyncio.gather(*self.engine.runs.values())

    def prompt(self, number: int = -1) -> str:
        """The words of one request to the model."""
        parts = [part for message in self.model.requests[number].messages for part in message.parts]
        return "\n".join(str(getattr(part, "content", "")) for part in parts)


@pytest.fixture(params=["files", "postgresql"])
async def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    """Makes stores over the same sessions, each as a process of its own would have it."""
    if request.param == "files":
        yield lambda: FileSessionStore(tmp_path / "sessions", "tess")
        return
    database = await Database.open(str(request.getfixturevalue("postgres_tables_url")))
    yield lambda: DatabaseSessionStore(database, "tess")
    await database.close()
