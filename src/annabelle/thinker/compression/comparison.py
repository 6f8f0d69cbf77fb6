"""Replays recorded conversations with compression and compares what would have been sent with what was."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.contract import ThinkingSettings, TokenUsage, TurnBrief
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject
from annabelle.llm.prices import price_call
from annabelle.llm.providers import PROVIDERS, Endpoint
from annabelle.llm.token_estimate import estimate_tokens
from annabelle.thinker.compression.context_compressor import ContextCompressor
from annabelle.thinker.compression.context_loss import find_lost_values, find_needed_values, is_valid_chain
from annabelle.thinker.compression.port import CompressionRequest
from annabelle.thinker.prompt.message_repair import repair_messages


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One recorded conversation."""

    id: str
    messages: list[ModelMessage]


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """The conversations of a JSON lines file, compressed or not; InvalidArguments names a bad line."""
    try:
        with _open_file(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_trajectory(line, f"{path.name}, line {number}")
    except OSError as error:
        raise InvalidArguments(f"{path} can not be read: {error.strerror or error}.", field="FILE") from error
    except UnicodeDecodeError as error:
        raise InvalidArguments(f"{path} is no text.", hint="Give a file of JSON lines.", field="FILE") from error


def _open_file(path: Path) -> TextIO:
    return (
        cast("TextIO", gzip.open(path, "rt", encoding="utf-8")) if path.suffix == ".gz" else path.open(encoding="utf-8")
    )


def parse_openai_messages(rows: Sequence[JsonObject]) -> list[ModelMessage]:
    """Converts messages with `role`, `content` and `tool_calls`, the format of model services."""
    messages: list[ModelMessage] = []
    for row in rows:
        role, text = row.get("role"), _content_text(row.get("content"))
        if role == "assistant":
            parts: list[ModelResponsePart] = [TextPart(content=text)] if text else []
            parts += [_parse_call(one) for one in _as_rows(row.get("tool_calls"))]
            messages.append(ModelResponse(parts=parts))
        elif role == "tool":
            result = ToolReturnPart(str(row.get("name") or "tool"), text, str(row.get("tool_call_id") or ""))
            last = messages[-1] if messages else None
            if isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts):
                messages[-1] = ModelRequest(parts=[*last.parts, result])
            else:
                messages.append(ModelRequest(parts=[result]))
        elif role in ("system", "developer"):
            messages.append(ModelRequest(parts=[SystemPromptPart(content=text)]))
        elif role == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(content=text)]))
        else:
            raise ValueError(f"the role {role!r} is unknown")
    return messages


def _parse_trajectory(line: str, where: str) -> Trajectory:
    hint = 'Each line must be a list of messages, or an object with "messages", in the format of OpenAI.'
    try:
        row = cast("object", json.loads(line))
        fields = cast("JsonObject", row) if isinstance(row, dict) else {"messages": row}
        messages = parse_openai_messages(_as_rows(fields.get("messages")))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{where} is no conversation: {error}.", hint=hint, field="FILE") from error
    if not messages:
        raise InvalidArguments(f"{where} has no messages.", hint=hint, field="FILE")
    return Trajectory(str(fields.get("id") or where), messages)


def _parse_call(row: JsonObject) -> ToolCallPart:
    function = row.get("function")
    named = cast("JsonObject", function) if isinstance(function, dict) else {}
    arguments = named.get("arguments")
    args = cast("JsonObject", arguments) if isinstance(arguments, dict) else str(arguments or "{}")
    return ToolCallPart(str(named.get("name") or "tool"), args, str(row.get("id") or ""))


def _as_rows(value: object) -> list[JsonObject]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in cast("list[object]", value)):
        raise ValueError("messages and calls must be lists of objects")
    return cast("list[JsonObject]", value)


def _content_text(content: object) -> str:
    if isinstance(content, list):
        parts = (cast("JsonObject", one) for one in cast("list[object]", content) if isinstance(one, dict))
        return "\n".join(str(part.get("text") or "") for part in parts)
    return "" if content is None else str(content)


_CHANNEL: Final = "comparison"


@dataclass(slots=True)
class ComparisonResult:
    """One conversation, without and with the thinking phase."""

    id: str
    requests: int = 0
    shortened: int = 0
    calls: int = 0
    """Model calls of the thinking phase itself."""
    tokens_without: int = 0
    tokens_with: int = 0
    output_tokens: int = 0
    milliseconds: float = 0.0
    invalid: int = 0
    needed: int = 0
    lost: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Tools with a value of their call that was no longer visible."""

    @property
    def same(self) -> bool:
        """Whether every recorded call could still have been made."""
        return not self.lost and not self.invalid


async def compare_trajectory(trajectory: Trajectory, settings: ThinkingSettings, model: str) -> ComparisonResult:
    """Replay each recorded request with the thinking phase, by rules alone."""
    thinking = ContextCompressor(settings.model_copy(update={"enabled": True, "model": ""}))
    static, conversation = _split_static(trajectory.messages)
    head = estimate_tokens(static, model=model)
    outcome = ComparisonResult(trajectory.id)
    brief: TurnBrief | None = None
    goal: ModelRequest | None = None
    for place, message in enumerate(conversation):
        if isinstance(message, ModelRequest):
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                goal, brief = message, _make_brief()
            continue
        if goal is None or brief is None:
            continue
        before = conversation[:place]
        outcome.requests += 1
        thought = await thinking.think(CompressionRequest(brief, outcome.requests, before, goal, model=model))
        sent = thought.compressed_history
        outcome.tokens_without += head + estimate_tokens(before, model=model)
        outcome.tokens_with += head + estimate_tokens(sent, model=model)
        outcome.output_tokens += estimate_tokens([message], model=model)
        outcome.shortened += thought.metrics["strategy"] != "none"
        milliseconds = thought.metrics["duration_ms"]
        outcome.milliseconds += milliseconds if isinstance(milliseconds, float) else 0.0
        outcome.invalid += not is_valid_chain(sent)
        _record_losses(message, [*static, *before], [*static, *sent], outcome)
    return outcome


def estimate_cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars by the price table, for `provider:model` or a model of a single provider; None if unknown."""
    prefix, colon, rest = model.partition(":")
    named = [one for one in PROVIDERS.values() if colon and one.name == prefix]
    places = named or [one for one in PROVIDERS.values() if not one.local]
    usage = TokenUsage(input_tokens=input_tokens, output_tokens=output_tokens)
    for provider in places:
        price = price_call(Endpoint(provider, ""), rest if named else model, usage)
        if price.known:
            return price.usd
    return None


def _record_losses(
    message: ModelResponse, before: Sequence[ModelMessage], sent: Sequence[ModelMessage], outcome: ComparisonResult
) -> None:
    for call in (part for part in message.parts if isinstance(part, ToolCallPart)):
        needed = frozenset(find_needed_values([call], before))
        outcome.needed += len(needed)
        outcome.lost += [(call.tool_name, value) for value in sorted(find_lost_values(needed, sent))]


def _split_static(messages: Sequence[ModelMessage]) -> tuple[list[ModelMessage], list[ModelMessage]]:
    """Split into static messages and the conversation."""
    chain = repair_messages(messages)
    static = [one for one in chain if any(isinstance(part, SystemPromptPart) for part in one.parts)]
    return static, [one for one in chain if one not in static]


def _make_brief() -> TurnBrief:
    message_id = new_id("msg")
    return TurnBrief(
        message_id=message_id, thread_id=_CHANNEL, trace_id=new_id("tr"), channel=_CHANNEL, chat_id=_CHANNEL,
        sender_id=_CHANNEL, text="",
    )  # fmt: skip


_THREAD_ID: Final = re.compile(r"[\w-]{1,120}")


def load_recorded_session(home: Home, thread_id: str) -> Trajectory | None:
    """All turns of a session, compacted ones included; None if there is no such session. Writes nothing."""
    if _THREAD_ID.fullmatch(thread_id) is None:
        return None
    messages: list[ModelMessage] = []
    for path in sorted(home.agents.glob(f"*/sessions/{thread_id}.jsonl")):
        older = path.parent / "older" / path.name
        messages += [*(_read_messages(older) if older.is_file() else ()), *_read_messages(path)]
    return Trajectory(thread_id, messages) if messages else None


def _read_messages(path: Path) -> list[ModelMessage]:
    """Read-only: only the thinker that writes this file may repair it."""
    messages: list[ModelMessage] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StorageTrouble(f"The session {path.name} can not be read: {error.strerror}.") from error
    for line in lines:
        try:
            record = cast("JsonObject", json.loads(line))
            if record["type"] == "cleared":
                messages.clear()
            elif record["type"] == "turn":
                messages += ModelMessagesTypeAdapter.validate_python(record["messages"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # a torn line, or a turn of another version
    return messages
