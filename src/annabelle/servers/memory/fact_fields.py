"""Facts as the tools take them and show them. Untrusted text is quoted, so that a model reads it as data (MEM-09)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.result_text import for_model
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory, Trust
from annabelle.servers.kit import Call
from annabelle.servers.memory.arguments import Label, clean_text, mask_secrets, one_line, refuse_secret, resolve_origin

if TYPE_CHECKING:
    from annabelle.store.memory.facts import Fact


MAX_CHARACTERS = 2000
_QUOTED = 1000
_SOURCES = {"agent": "chat", "api": "API", "cli": "terminal", "hub": "Annabelle"}

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


def check_fact_text(text: str, field: str = "fact") -> str:
    """The statement as it is kept: one line, bounded, and without a secret in it."""
    # Checked first, so that a huge text costs nothing.
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


def resolve_source(call: Call, source: str | None, stated: StatedOrigin | None) -> tuple[Trust, str, JsonObject]:
    """How far a fact may be trusted, where it comes from in words, and what is kept to explain it."""
    trust, origin = resolve_origin(call)
    if stated is not None:
        if call.caller != "hub":
            raise NotAllowed("Only Annabelle herself may say where a fact was read.", hint="Leave origin out.")
        origin |= stated.model_dump(exclude_none=True)
        if stated.quote:
            origin["quote"], _ = mask_secrets(clean_text(stated.quote[:_QUOTED]))
    if source:
        refuse_secret(source, field="source")
    return trust, source or call.channel or _SOURCES[call.caller or "agent"], origin


class FactShown(BaseModel):
    """A fact of a result."""

    model_config = ConfigDict(frozen=True)

    id: int
    fact: str
    category: FactCategory
    confidence: float
    source: str
    trust: Trust
    learnt_from: list[str] = Field(description="Tools whose output it may stem from, when it is untrusted")
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None
    retired_because: Literal["superseded", "merged", "deleted"] | None
    superseded_by: int | None

    def to_line(self) -> str:
        """One line for a model or a person: `12 [background] …`."""
        return format_fact_line(self)


def show_fact(fact: Fact) -> FactShown:
    learnt_from = tools_of_origin(fact.origin) if fact.trust == "untrusted" else []
    values = {**asdict(fact), "confidence": round(fact.confidence, 3), "learnt_from": learnt_from}
    return FactShown.model_validate(values)


def show_facts(facts: Iterable[Fact]) -> list[FactShown]:
    return [show_fact(fact) for fact in facts]


def tools_of_origin(origin: JsonObject) -> list[str]:
    """The tools named by an origin."""
    tools = origin.get("tools")
    return [name for name in cast("list[object]", tools) if isinstance(name, str)] if isinstance(tools, list) else []


def format_fact_line(fact: FactShown | Fact) -> str:
    """`12 [background] …`, or `12 [background, untrusted: learnt from searcher_web_fetch] "…"`."""
    row = fact if isinstance(fact, FactShown) else show_fact(fact)
    marks: list[str] = [for_model(row.category)]
    if row.trust == "untrusted":
        origin = ", ".join(row.learnt_from) or "content others wrote"
        marks.append(for_model(f"untrusted: learnt from {origin}", "others may have written this"))
    if row.retired_because == "deleted":
        marks.append("deleted")
    elif row.retired_because is not None:
        by = for_model(f" by {row.superseded_by}") if row.superseded_by else ""
        marks.append(f"{row.retired_because}{by}")
    text = row.fact if row.trust == "trusted" else json.dumps(row.fact, ensure_ascii=False)
    said = ", ".join(filter(None, marks))
    return f"{for_model(f'{row.id} ')}{f'[{said}] ' if said else ''}{text}"
