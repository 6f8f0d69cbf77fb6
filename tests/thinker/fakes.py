"""Parts of a thinker for tests of the loop alone: a model that follows a list, tools in a dict, steps in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart

from annabelle.core.contract import AgentProfile, ModelCall, TokenUsage, ToolCall, ToolList, TurnLimits, TurnResult
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolResult, ToolSpec
from annabelle.core.trace import TraceFile
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.llm.gguf_models import PACKAGED
from annabelle.llm.types import Completed, ModelChoice, ModelEvent, ModelRequest, Purpose, TextDelta, ToolMode
from annabelle.thinker.assembly import make_conversations
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import StepFunction, WorkflowFunction
from annabelle.thinker.live_turn import LiveTurn, TurnStream
from annabelle.thinker.loop.deps import ThinkerDeps
from annabelle.thinker.prompt.clock import parse_time_zone
from annabelle.thinker.prompt.memory_recall import MemoryRecall
from annabelle.thinker.prompt.persona import PersonaResolver
from annabelle.thinker.prompt.prompt import LayeredPromptBuilder
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.summariser import Summariser
from annabelle.thinker.turn import TurnWorkflow
from thinker.fake_hub import tool
from thinker.plain_parts import AllAllowed, NoPlaybooks, WholeHistory
from thinker.thinkers import brief

Reply = str | list[tuple[str, Any]] | AnnabelleError | Callable[[ModelRequest], Any]
Tool = Callable[[dict[str, Any]], Any]


class ListedModel:
    """Answers by a list: a text, a list of calls, or an error to raise. Its last entry is given for ever."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.tool_mode: ToolMode = "native"

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice:
        return ModelChoice("compatible", "listed", self.tool_mode, "It is the only one.")

    async def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply = reply(request)
        if asyncio.iscoroutine(reply):
            reply = await reply
        if isinstance(reply, AnnabelleError):
            raise reply
        if isinstance(reply, str):
            yield TextDelta(reply)
            parts: list[Any] = [TextPart(content=reply)] if reply else []
        else:
            ids = f"c{len(self.requests)}"
            parts = [ToolCallPart(name, arguments, f"{ids}_{n}") for n, (name, arguments) in enumerate(reply)]
        usage = TokenUsage(input_tokens=10, output_tokens=5, cost_usd=0.001)
        call = ModelCall(
            call_id=request.call_id, agent_id="tess", user_id="owner", message_id=None, trace_id=None, purpose="chat",
            provider="compatible", model="listed", usage=usage, duration_ms=1,
        )  # fmt: skip
        yield Completed(ModelResponse(parts=parts), usage, call)


class SmallModel(ListedModel):
    """As if only the packaged model were there."""

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice:
        return ModelChoice("embedded", PACKAGED, "trained", "It is what there is.")


class DictTools:
    """Tools as functions; what they return is the text or the whole result, an error makes a failure."""

    def __init__(self, *, read_only: tuple[str, ...] = (), **tools: Tool) -> None:
        self.functions = tools
        self.specs: list[ToolSpec] = [tool(name, read_only=name in read_only) for name in sorted(tools)]
        self.calls: list[ToolCall] = []
        self.running = self.most_running = 0

    def expect_tools(self, version: str | None) -> None:
        pass

    async def tools(self) -> ToolList:
        return ToolList(version="1", tools=tuple(self.specs))

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        self.calls.append(call)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            result = self.functions[call.name](dict(call.arguments))
            if asyncio.iscoroutine(result):
                result = await result
        finally:
            self.running -= 1
        if isinstance(result, AnnabelleError):
            return ToolResult.failure(result.body())
        return result if isinstance(result, ToolResult) else ToolResult(text=str(result))


class MemoryEngine:
    """Steps in a list. A second run over the same list is a replay: recorded results, no work."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.waits: list[float] = []
        self.signals: set[str] = set()
        self._position = 0

    def rewind(self, keep: int | None = None) -> None:
        """As after a crash with so many finished steps."""
        self._position = 0
        self.records = self.records[:keep]

    async def step(self, name: str, work: StepFunction) -> Any:
        index = self._position
        self._position += 1
        if index >= len(self.records):
            self.records += [None] * (index + 1 - len(self.records))
            try:
                self.records[index] = await work()
            except AnnabelleError as error:
                self.records[index] = error
        if isinstance(self.records[index], AnnabelleError):
            raise self.records[index]
        return self.records[index]

    async def wait(self, topic: str, timeout: float) -> bool:
        self.waits.append(timeout)
        return topic in self.signals

    async def signal(self, workflow_id: str, topic: str) -> None:
        self.signals.add(topic)

    def workflow(self, name: str, function: WorkflowFunction) -> None: ...

    async def launch(self) -> None: ...

    async def start(self, name: str, workflow_id: str, argument: Any) -> None: ...

    async def finished(self, workflow_id: str) -> None: ...

    async def exists(self, workflow_id: str) -> bool:
        return False

    async def recorded(self, workflow_id: str, timeout: float) -> None: ...

    async def close(self) -> None: ...


class Bench:
    """A whole turn in memory, with the session in real files."""

    def __init__(self, folder: Path, model: ListedModel, tools: DictTools, **limits: Any) -> None:
        self.model, self.tools, self.engine = model, tools, MemoryEngine()
        trace, costs = TraceFile(folder / "traces.jsonl", "thinker", Redactor()), CostMeter()
        settings = Settings(retry_base_seconds=10, thinker_input_max_chars=200)
        self.sessions = make_conversations(
            FileSessionStore(folder / "sessions", "tess"),
            self.engine,
            Summariser(model, costs),
            make_embedder(EmbeddingConfig(), None),
            settings,
            trace,
        )
        profile = AgentProfile(agent_id="tess", limits=TurnLimits(**limits))
        self.parts = ThinkerDeps(
            profile=profile,
            settings=settings,
            generation=1,
            engine=self.engine,
            model=model,
            hub=tools,
            sessions=self.sessions,
            prompt_builder=LayeredPromptBuilder(PersonaResolver(folder, profile, ""), parse_time_zone("UTC")),
            memory_recall=MemoryRecall(tools),
            selector=AllAllowed(),
            playbooks=NoPlaybooks(),
            compressor=WholeHistory(),
            trace=trace,
            costs=costs,
        )
        self.live = self.new_live("msg_none")

    def new_live(self, message_id: str) -> LiveTurn:
        return LiveTurn(TurnStream("st_test", message_id))

    async def run(self, text: str = "hello", **fields: Any) -> TurnResult:
        asked = brief(text, **fields)
        self.live = self.new_live(asked.message_id)
        self.engine.rewind(0) if "message_id" not in fields else self.engine.rewind()
        logging.getLogger().addHandler(self.parts.notices)
        try:
            await TurnWorkflow(self.parts, asked, now(), self.live).run()
        finally:
            logging.getLogger().removeHandler(self.parts.notices)
        assert self.live.result is not None
        return self.live.result

    def facts(self, kind: str) -> list[dict[str, Any]]:
        return [fact for fact in self.live.stream.facts() if fact["type"] == kind]

    def sent(self, number: int = -1) -> list[ModelMessage]:
        """The messages of one request to the model."""
        return self.model.requests[number].messages
