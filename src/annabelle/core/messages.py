"""Messages and turn events of every channel. Readers drop events of older attempts; a replay repeats their `key`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from annabelle.core.ids import new_id
from annabelle.core.models import FrozenModel

OWNER = "owner"
"""The only user of a single-user install."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


def now() -> datetime:
    return datetime.now(UTC)


MessageSource = Literal["user", "command", "agent", "error", "decision", "outside_agent", "skill"]
"""`command` is a command of the person, which no model sees and no call can be justified with. `agent` is Annabelle's
own answer. `decision` is her note of a person's answer to a question, and `outside_agent`
an agent that calls with a token of the person: both are not the person's own words. `skill` is what the person
confirmed that a skill does, and counts as their words in its runs only (POL-09)."""

TELEGRAM: Final = "telegram"
TELEGRAM_ACCOUNT: Final = "telegram_account"
MATRIX: Final = "matrix"
EMAIL: Final = "email"
CHAT_APPS: Final = frozenset({TELEGRAM, TELEGRAM_ACCOUNT, MATRIX, EMAIL})
"""Channels to which messages are sent. A terminal or a program reads them from the thread."""

SKILLS: Final = "skill"
"""The channel of a skill's runs. Each has a thread of its own, whose chat is the fire."""
GOALS: Final = "goal"
"""The channel of goals. The chat is the goal."""
USER_AGENT: Final = "user_agent"
"""The channel of the agent that knows all goals of a person. The chat is the person."""


class InboundMessage(FrozenModel):
    """One message as it entered, parsed once at the edge."""

    id: str = Field(default_factory=lambda: new_id("msg"))
    channel: Name
    chat_id: Name
    sender_id: Name
    user_id: Name = OWNER
    source: Literal["user", "command", "outside_agent", "skill"] = "user"
    text: str
    external_id: Name | None = Field(
        default=None, description="The channel's own id; a repeat of it is the same message"
    )
    agent_id: Name | None = Field(default=None, description="Ask for this agent instead of the bound one")
    sent_at: datetime = Field(default_factory=now)
    scopes: frozenset[str] | None = Field(
        default=None, description="What the token it came with may do; None: all that its person may"
    )


MessageState = Literal["queued", "running", "done", "failed"]

EventType = Literal[
    "think", "text", "tool_start", "tool_complete", "usage", "notice", "approval", "message", "error", "done"
]


class TurnEvent(FrozenModel):
    """One thing that happened in the turn of one message."""

    message_id: str
    key: str = Field(description="Unique within the message; a second event with the same key is the same event")
    type: EventType
    step: int = 0
    attempt: int = 0
    data: dict[str, object] = Field(default_factory=dict)
    at: datetime = Field(default_factory=now)


class StoredEvent(TurnEvent):
    """A turn event after the hub has written it down: `seq` is what Last-Event-ID counts."""

    seq: int
    thread_id: str
