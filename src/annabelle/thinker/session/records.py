"""The records of a session (header, turns, compactions, archives) and the state they add up to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import TokenUsage
from annabelle.core.errors import ErrorBody
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject

VERSION = 1
ArchiveReason = Literal["session_timeout", "feed_complete", "manual"]

_log = logging.getLogger(__name__)


def _ensure_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# A time without a zone must still be comparable.
_Moment = Annotated[datetime, AfterValidator(_ensure_zone)]


class _SessionRecord(BaseModel):
    model_config = ConfigDict(frozen=True)

    def to_json(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_none=True)


R = TypeVar("R", bound=_SessionRecord)


class SessionHeader(_SessionRecord):
    type: Literal["header"] = "header"
    version: int = VERSION
    agent_id: str
    thread_id: str
    created_at: _Moment = Field(default_factory=now)
    archived: tuple[str, ...] = Field(
        default=(), description="The last messages of the conversation before; their turns are not written again"
    )


class SessionTurn(_SessionRecord):
    """A whole turn: question, answer, and the model messages in between."""

    type: Literal["turn"] = "turn"
    message_id: str
    trace_id: str
    user_id: str
    at: _Moment = Field(default_factory=now)
    user: str
    assistant: str = ""
    messages: list[JsonObject] = Field(
        default_factory=list[JsonObject],
        description="From the user's message on; a call is always followed by its result",
    )
    tools: tuple[str, ...] = ()
    usage: TokenUsage = TokenUsage()
    limit: str | None = None
    error: ErrorBody | None = None
    task: bool = Field(default=False, description="Proactive work: no conversation, so it is not archived (SES-07)")


class Compaction(_SessionRecord):
    """Replaces the turns up to a message. The turns themselves are stored beside the session."""

    type: Literal["compaction"] = "compaction"
    message_id: str = Field(description="The last message that was summed up")
    at: _Moment = Field(default_factory=now)
    summary: str
    turns: int = Field(default=0, description="Turns that are summed up, those of earlier compactions too")


class Archive(_SessionRecord):
    """A whole conversation that has ended."""

    type: Literal["archive"] = "archive"
    thread_id: str
    user_id: str
    message_id: str = Field(description="Its last message")
    # Any text, so that an unknown reason does not make the record unreadable.
    reason: str
    summary: str
    started_at: _Moment
    ended_at: _Moment
    archived_at: _Moment = Field(default_factory=now)
    message_count: int
    input_tokens: int = 0
    output_tokens: int = 0
    turns: list[JsonObject] = Field(default_factory=list[JsonObject])

    @property
    def id(self) -> str:
        return build_archive_id(self.thread_id, self.message_id)


def build_archive_id(thread_id: str, message_id: str) -> str:
    return f"{thread_id}:{message_id}"


def parse_turn(record: JsonObject) -> SessionTurn | None:
    """The turn of a record; None if it is something else or invalid."""
    return parse_record(SessionTurn, record) if record.get("type") == "turn" else None


def parse_record(model: type[R], record: JsonObject) -> R | None:
    try:
        return model.model_validate(record)
    except ValidationError:
        _log.warning("an invalid record of kind %s was skipped", model.__name__)
        return None


def count_chars(turn: SessionTurn) -> int:
    """What a model reads of it: all text, arguments and results."""
    return sum(_count_part_chars(message.get("parts")) for message in turn.messages) or len(turn.user) + len(
        turn.assistant
    )


def _count_part_chars(value: object) -> int:
    """The content of parts, without fields such as kind and time."""
    if isinstance(value, list):
        return sum(_count_part_chars(item) for item in cast("list[object]", value))
    if not isinstance(value, dict):
        return 0
    part = cast("JsonObject", value)
    return sum(_count_value_chars(part[key]) for key in ("content", "args", "tool_name") if part.get(key))


def _count_value_chars(value: object) -> int:
    if isinstance(value, dict):
        return sum(
            len(str(key)) + _count_value_chars(item) for key, item in cast("dict[object, object]", value).items()
        )
    if isinstance(value, list):
        return sum(_count_value_chars(item) for item in cast("list[object]", value))
    return len(str(value))


@dataclass(frozen=True, slots=True)
class SessionState:
    """The current state of a conversation."""

    turns: Sequence[SessionTurn] = ()
    """The latest turns that are not compacted, oldest first."""
    compaction: Compaction | None = None
    count: int = 0
    """All turns that are not compacted, also those not in `turns`."""
    chars: int = 0
    """Characters a model would read of the whole conversation."""
    last_at: datetime | None = None

    @property
    def last_message_id(self) -> str | None:
        return self.turns[-1].message_id if self.turns else None

    @property
    def conversational(self) -> bool:
        return any(not turn.task for turn in self.turns)


@dataclass(slots=True)
class SessionLines:
    """The parsed lines of a session."""

    header: SessionHeader | None = None
    compaction: Compaction | None = None
    open: dict[str, tuple[SessionTurn, JsonObject]] = field(default_factory=dict[str, tuple[SessionTurn, JsonObject]])
    """Turns that are not compacted."""
    closed: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Turns before a clear, kept for people."""
    others: list[JsonObject] = field(default_factory=list[JsonObject])
    """Unknown lines, which are kept."""

    @classmethod
    def parse(cls, records: Iterable[JsonObject]) -> SessionLines:
        lines = cls()
        for record in records:
            lines._add_record(record)
        return lines

    def _add_record(self, record: JsonObject) -> None:
        kind = record.get("type")
        if kind == "cleared":
            self.closed |= {name: raw for name, (_turn, raw) in self.open.items()}
            self.open, self.compaction = {}, None
        elif kind == "header" and (header := parse_record(SessionHeader, record)) is not None:
            self.header = header
        elif kind == "compaction" and (compaction := parse_record(Compaction, record)) is not None:
            self._apply_compaction(compaction)
        elif (turn := parse_turn(record)) is not None:
            if turn.message_id not in self.closed:
                self.open.setdefault(turn.message_id, (turn, record))
        else:
            self.others.append(record)

    def _apply_compaction(self, compaction: Compaction) -> None:
        self.compaction = compaction
        if compaction.message_id in self.open:
            names = list(self.open)
            for name in names[: names.index(compaction.message_id) + 1]:
                self.closed[name] = self.open.pop(name)[1]

    @property
    def turns(self) -> list[SessionTurn]:
        return [turn for turn, _raw in self.open.values()]

    @property
    def message_ids(self) -> set[str]:
        """Every message with a record here, or at the end of the conversation before."""
        return {*self.open, *self.closed, *(self.header.archived if self.header is not None else ())}

    def to_state(self, most: int) -> SessionState:
        turns = self.turns
        summed_up = len(self.compaction.summary) if self.compaction is not None else 0
        return SessionState(
            turns=turns[-most:],
            compaction=self.compaction,
            count=len(turns),
            chars=summed_up + sum(map(count_chars, turns)),
            last_at=max((turn.at for turn in turns), default=None),
        )

    def split_after(self, message_id: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """The open turns up to a message and those after it, as raw records."""
        names = list(self.open)
        cut = names.index(message_id) + 1
        raw = [line for _turn, line in self.open.values()]
        return raw[:cut], raw[cut:]
