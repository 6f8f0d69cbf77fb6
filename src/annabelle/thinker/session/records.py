"""The lines of a session: a header, one record per turn, and what stands in the place of turns that were summed up."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import Usage
from annabelle.core.errors import ErrorBody
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject

VERSION = 1
ArchiveReason = Literal["session_timeout", "feed_complete", "manual"]

_log = logging.getLogger(__name__)


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# A time somebody wrote without a zone can still be compared with ours.
_Moment = Annotated[datetime, AfterValidator(_with_zone)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)

    def line(self) -> JsonObject:
        """As it is written down."""
        return self.model_dump(mode="json", exclude_none=True)


R = TypeVar("R", bound=_Record)


class Header(_Record):
    type: Literal["header"] = "header"
    version: int = VERSION
    agent_id: str
    thread_id: str
    created_at: _Moment = Field(default_factory=now)
    archived: tuple[str, ...] = Field(
        default=(), description="The last messages of the conversation before; their turns are not written again"
    )


class TurnRecord(_Record):
    """One turn, whole: what was asked, what was answered, and the model messages in between."""

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
    usage: Usage = Usage()
    limit: str | None = None
    error: ErrorBody | None = None
    task: bool = Field(default=False, description="Proactive work: no conversation, so it is not archived (SES-07)")


class Compaction(_Record):
    """What stands in the place of the turns up to a message. The turns themselves are kept beside the session."""

    type: Literal["compaction"] = "compaction"
    message_id: str = Field(description="The last message that was summed up")
    at: _Moment = Field(default_factory=now)
    summary: str
    turns: int = Field(default=0, description="Turns that are summed up, those of earlier compactions too")


class Archive(_Record):
    """A conversation that ended, whole."""

    type: Literal["archive"] = "archive"
    thread_id: str
    user_id: str
    message_id: str = Field(description="Its last message")
    # Not a fixed set of words: a reader must not lose a conversation over a reason it does not know.
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
        return archive_id(self.thread_id, self.message_id)


def archive_id(thread_id: str, message_id: str) -> str:
    return f"{thread_id}:{message_id}"


def turn_of(record: JsonObject) -> TurnRecord | None:
    """The turn of a line; none when it is something else, or not whole."""
    return read_as(TurnRecord, record) if record.get("type") == "turn" else None


def read_as(model: type[R], record: JsonObject) -> R | None:
    try:
        return model.model_validate(record)
    except ValidationError:
        _log.warning("a record of kind %s with missing or wrong fields was passed over", model.__name__)
        return None


def chars_of(turn: TurnRecord) -> int:
    """How much of it a model reads: everything said, every call's arguments and every result."""
    return sum(_chars(message.get("parts")) for message in turn.messages) or len(turn.user) + len(turn.assistant)


def _chars(value: object) -> int:
    """Lengths of what is said in a part; what describes the part itself, as its kind and its time, is not counted."""
    if isinstance(value, list):
        return sum(_chars(item) for item in cast("list[object]", value))
    if not isinstance(value, dict):
        return 0
    part = cast("JsonObject", value)
    return sum(_length(part[key]) for key in ("content", "args", "tool_name") if part.get(key))


def _length(value: object) -> int:
    if isinstance(value, dict):
        return sum(len(str(key)) + _length(item) for key, item in cast("dict[object, object]", value).items())
    if isinstance(value, list):
        return sum(_length(item) for item in cast("list[object]", value))
    return len(str(value))
