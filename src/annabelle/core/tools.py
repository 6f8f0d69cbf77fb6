"""Specs, calls and results of tools."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field

from annabelle.core.errors import ErrorBody, OutcomeUnknown
from annabelle.core.models import FrozenModel
from annabelle.core.trust import Label, Provenance, Risk, Source, Trust

JsonObject = dict[str, object]
_TAG: Final = re.compile(r"^\[[^\]]*\]\s*")

Audience = Literal["everyone", "people", "hub", "named"]
"""`people` hides a tool from agents; `hub` also from the API: only the hub itself calls it. `named` is for turns of
agents whose brief names the tool, and for nobody else."""


class ToolAnnotations(FrozenModel):
    """What a tool may do, as its server declares it. An absent hint is read as the dangerous answer."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether repeating a call that may already have happened has no second effect."""
        return self.read_only or self.idempotent


class ToolSpec(FrozenModel):
    """One tool as the model and the API see it, under its exposed name `{server}_{tool}`."""

    name: str
    server: str
    original_name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    group: str = ""
    keywords: tuple[str, ...] = Field(default=(), description="Words of a message that call for this tool's server")
    audience: Audience = Field(default="everyone", description="Who may see and call it")


class CallContext(FrozenModel):
    """Who calls, and on whose behalf. Made by the hub from authenticated facts, never from arguments."""

    caller: Literal["agent", "api", "cli", "hub"]
    agent_id: str | None = None
    user_id: str
    thread_id: str | None = None
    chat_id: str | None = None
    channel: str | None = None
    message_id: str | None = None
    call_id: str | None = Field(default=None, description="Turn, step and index; a repeat replays, never repeats")
    trace_id: str | None = None
    provenance: Provenance | None = Field(default=None, description="Set for servers whose manifest asks for it")
    askable: bool = Field(
        default=False, exclude=True, description="Whether the turn can be parked until the person has answered"
    )
    judged: bool = Field(
        default=False, exclude=True, description="Policy has decided on the call that this one is a part of"
    )
    queued_as: str | None = Field(
        default=None, exclude=True, description="The call that queued this one: a yes to that one is a yes to this one"
    )
    allowed_tools: tuple[str, ...] | None = Field(
        default=None, exclude=True, description="In a run of a skill: the only tools it may call (SKL-03)"
    )
    confirmed: bool = Field(
        default=False, exclude=True, description="The person said yes to exactly this call when they made its skill"
    )
    labels: tuple[Label, ...] = Field(default=(), description="What policy knows of whatever comes back")
    secrets: tuple[str, ...] = Field(
        default=(), exclude=True, repr=False, description="Values the arguments hold that the server must not log"
    )
    secret_sites: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, exclude=True, repr=False, description="By such a value: the only sites it is for"
    )


class ToolResult(FrozenModel):
    """What came back: text for the model, structure for machines, or an error that says what to do next."""

    text: str
    display: str | None = Field(default=None, description="The text for a person, where it is another one")
    structured: JsonObject | None = None
    is_error: bool = False
    error: ErrorBody | None = None
    duration_ms: float = 0.0
    trust: Trust = "untrusted"
    source: Source | None = Field(default=None, description="Where the content came from")
    labels: tuple[Label, ...] = ()
    risk: Risk = Field(default="none", description="What the guardian said of it")
    approval_id: str | None = Field(default=None, description="The call was not made: it waits for the person's yes")
    replayed: bool = False

    @property
    def for_person(self) -> str:
        return self.text if self.display is None else self.display

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows if the call took effect."""
        return self.is_error and self.error is not None and self.error.code == OutcomeUnknown.code

    @classmethod
    def failure(cls, body: ErrorBody) -> ToolResult:
        text = body.message if body.hint is None else f"{body.message} {body.hint}"
        return cls(text=text, is_error=True, error=body)


def name_in_words(name: str) -> str:
    """A tool's name as people read it."""
    return name.replace("_", " ")


def first_sentence(description: str) -> str:
    """The first sentence, without the group in brackets, which is for the model, and without its full stop."""
    return _TAG.sub("", " ".join(description.split())).partition(". ")[0].rstrip(".")
