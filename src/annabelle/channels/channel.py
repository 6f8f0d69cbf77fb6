"""The port of a channel: what comes in, what goes out, and who is at the other end (CHN-01).

A channel knows its own wire and nothing of Annabelle. The hub decides who may speak, stores what came in before it
is acknowledged, and sends what is to be said exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from pydantic import Field

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import Name
from annabelle.core.models import FrozenModel
from annabelle.core.tools import JsonObject

MALFORMED: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError, RecursionError)
"""What reading an update raises that is not as it should be: one such update is skipped, and the next one read."""


@dataclass(frozen=True, slots=True)
class ChannelAccount:
    """Annabelle's own account in a channel."""

    id: str
    name: str
    """What people call it there, as `@annabelle_bot`."""
    invite: str = ""
    """An address that opens a chat with it and sends a pairing code, with `{code}` for the code."""


class Attachment(FrozenModel):
    """A file that came with a message; the channel fetches it by its id."""

    id: str
    name: str
    kind: Literal["file", "image", "voice"] = "file"
    size: int | None = None


class Update(FrozenModel):
    """One message of a person, as the channel has delivered it."""

    external_id: Name = Field(description="Unique within the channel: a repeat of it is the same message")
    chat_id: Name
    sender_id: Name
    sender_name: str = ""
    text: str
    sent_at: datetime
    addressed: bool = Field(default=True, description="False in a group where others are spoken to")
    automatic: bool = Field(default=False, description="Sent by a program, or by Annabelle's own account")
    stale: bool = Field(default=False, description="Too old to be answered: it is only listed")
    attachments: tuple[Attachment, ...] = ()
    pressed: str | None = Field(default=None, description="Id of the button press to acknowledge")


@dataclass(frozen=True, slots=True)
class Poll:
    """What has come in, and where to go on. The channel delivers again what lies behind the cursor."""

    updates: Sequence[Update]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Button:
    """Pressing it says its command, as if the person had written it."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class OutgoingPart:
    """One message of the channel: Markdown that fits, buttons below it or a file."""

    text: str
    buttons: Sequence[Button] = ()
    file: Path | None = None
    reply_to: str | None = None
    """External id of the message that this answers."""
    key: str = ""
    """The same for every attempt to send this part, and no other part's."""


class NotDelivered(AnnabelleError):
    """Certainly not delivered. It is tried again after `retry_after` seconds; None if that would not help."""

    code = "not_delivered"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeliveryUnknown(AnnabelleError):
    """The connection broke after it was sent: nobody knows whether it arrived."""

    code = "delivery_unknown"


class Channel(Protocol):
    name: str
    longest: int
    """Characters of one message."""
    can_remove: bool
    """Whether messages can be taken back."""
    editable: bool
    """Whether messages can be changed and taken back, so that progress can be shown."""
    repeat_seconds: float
    """For so long, a part sent again with the same key is the same message: no outcome stays unknown."""

    async def connect(self) -> ChannelAccount:
        """Find out who we are there. Raises AnnabelleError if it refuses us."""
        ...

    async def poll(self, cursor: str | None) -> Poll:
        """Wait for what comes in, for at most about a minute. Raises NotDelivered if the channel is out of reach."""
        ...

    async def send(self, chat_id: str, part: OutgoingPart) -> str:
        """Send one message and return its id. Raises NotDelivered or DeliveryUnknown."""
        ...

    async def edit(self, chat_id: str, sent_id: str, part: OutgoingPart) -> None: ...

    async def remove(self, chat_id: str, sent_ids: Sequence[str]) -> None: ...

    def find_message_id(self, external_id: str) -> str | None:
        """The id by which a message of a person can be removed; None if it has none."""
        ...

    async def show_typing(self, chat_id: str) -> None: ...

    async def acknowledge(self, pressed: str, text: str = "") -> None:
        """End the waiting sign of a pressed button."""
        ...

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class WebhookChannel(Channel, Protocol):
    """A channel that can call the hub instead of being asked."""

    webhook: str
    """The address it calls; empty if it is asked."""
    secret: str
    """What it sends along with each call."""

    def read(self, raw: JsonObject) -> Update | None: ...
