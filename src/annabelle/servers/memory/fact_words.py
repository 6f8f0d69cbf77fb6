"""What a fact may say and where it may say it comes from, checked before anything is opened."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Call
from annabelle.servers.memory.ownership import origin_of
from annabelle.servers.memory.safety import refuse_secret, without_secrets
from annabelle.servers.memory.wording import Label, cleaned, one_line

MAX_CHARACTERS = 2000
_QUOTED = 1000
_SOURCES = {"agent": "chat", "api": "API", "cli": "terminal", "hub": "Annabelle"}

Agent = Annotated[str | None, Field(description="The agent whose memory is meant; leave it out for your own")]
FactText = Annotated[str, Field(description=f"The statement, at most {MAX_CHARACTERS:,} characters")]
Source = Annotated[Label | None, Field(description='Where it comes from in a few words, as in "import of notes.md"')]


class StatedOrigin(BaseModel):
    """What the hub knows of where a fact was read: the conversation, the message, and the words themselves."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Annotated[str, Field(max_length=40)] = "conversation"
    conversation_id: int | None = None
    message_id: Annotated[str | None, Field(max_length=100)] = None
    thread_id: Annotated[str | None, Field(max_length=100)] = None
    quote: str | None = None


FactOrigin = Annotated[
    StatedOrigin | None, Field(description="For Annabelle's own use, when she learns from a conversation; leave it out")
]


def fact_text(text: str, field: str = "fact") -> str:
    """The statement as it is kept: one line, bounded, and without a secret in it."""
    # Looked at before anything is done with it, so that a megabyte costs nothing.
    words = one_line(text) if len(text) <= 4 * MAX_CHARACTERS else text
    if len(words) > MAX_CHARACTERS:
        raise InvalidArguments(
            f"The fact is {len(words):,} characters long, and at most {MAX_CHARACTERS:,} are kept.",
            hint="Store a shorter statement, or several.",
            field=field,
        )
    if not any(character.isalnum() for character in words):
        raise InvalidArguments("The fact has no words in it.", hint="Say what is to be remembered.", field=field)
    refuse_secret(words, field=field)
    return words


def source_of(call: Call, source: str | None, stated: StatedOrigin | None) -> tuple[Trust, str, JsonObject]:
    """How far a fact may be trusted, where it comes from in words, and what is kept to explain it."""
    trust, origin = origin_of(call)
    if stated is not None:
        if call.caller != "hub":
            raise NotAllowed("Only Annabelle herself may say where a fact was read.", hint="Leave origin out.")
        origin |= stated.model_dump(exclude_none=True)
        if stated.quote:
            origin["quote"], _ = without_secrets(cleaned(stated.quote[:_QUOTED]))
    if source:
        refuse_secret(source, field="source")
    return trust, source or call.channel or _SOURCES[call.caller or "agent"], origin
