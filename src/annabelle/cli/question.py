"""A question of Annabelle's as the terminal has it: the exact call, why it is asked, and until when (POL-03)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from annabelle.cli.hub_client import HubClient
from annabelle.core.errors import CallerMistake, NotFound
from annabelle.core.ids import is_id
from annabelle.core.tools import JsonObject
from annabelle.core.visible import hidden, visible, visible_data

WAITING_EXIT: Final = 6
"""A command ends with this when the answer is a question nobody was there to answer."""
SHOWN_CHARS: Final = 1_500
_LONGEST_ARGUMENTS: Final = 80
_MOST: Final = 500
_OUTCOMES: Final = {"pending": "waits", "used": "approved and done", "cancelled": "taken back"}


class Allowance(BaseModel):
    """The rule that `always` would make."""

    model_config = ConfigDict(frozen=True, extra="allow")

    words: str


class Question(BaseModel):
    """One question, as the hub tells it; what is not needed here is kept for whoever wants all of it."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    id: str
    state: str
    tool: str
    arguments: JsonObject
    edited: JsonObject | None = None
    reasons: list[str] = []
    agent_id: str = ""
    thread_id: str = ""
    message_id: str = ""
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    note: str | None = None
    continued_by: str | None = None
    always: Allowance | None = None

    @property
    def waits(self) -> bool:
        return self.state == "pending"

    @property
    def outcome(self) -> str:
        return _OUTCOMES.get(self.state, self.state)

    def call(self, *, whole: bool) -> list[str]:
        """The exact call, line by line. Long values are cut unless all of it is wanted, which says so."""
        lines = [visible(self.tool)]
        for name, value in self.arguments.items():
            lines += _argument(visible(name), value, whole=whole)
        return lines if self.arguments else [*lines, "  (without arguments)"]

    @property
    def long(self) -> bool:
        """Whether the call is cut when it is not shown whole."""
        return self.call(whole=True) != self.call(whole=False)

    @property
    def short(self) -> str:
        """The arguments in a few words, for a list."""
        flat = " ".join(f"{visible(name)}={visible_data(value)}" for name, value in self.arguments.items())
        return flat if len(flat) <= _LONGEST_ARGUMENTS else flat[: _LONGEST_ARGUMENTS - 1] + "…"

    @property
    def why(self) -> str:
        return " ".join(map(visible, self.reasons)) or "It needs your yes."


async def questions(client: HubClient, state: str | None = None) -> list[Question]:
    """The person's own, newest first."""
    wanted = {} if state is None else {"state": state}
    found = await client.get("/approvals", limit=_MOST, **wanted)
    return [Question.model_validate(one) for one in cast("list[JsonObject]", found["approvals"])]


async def question(client: HubClient, approval_id: str) -> Question:
    return Question.model_validate(await client.get(f"/approvals/{approval_id}"))


async def found(client: HubClient, given: str) -> Question:
    """The one that is meant: by its id, or by a beginning or end of it that fits no other. Waiting ones come first."""
    if is_id(given):
        return await question(client, given)
    fitting = [one for one in await questions(client) if given and _fits(one.id, given)]
    meant = [one for one in fitting if one.waits] or fitting
    if not meant:
        raise NotFound(f"There is no question {visible(given)!r}.", hint="annabelle approvals --all lists them.")
    if len(meant) > 1:
        ids = ", ".join(one.id for one in meant[:5])
        raise CallerMistake(f"{visible(given)!r} fits {len(meant)} questions: {ids}.", hint="Give more of the id.")
    return meant[0]


def when(moment: datetime) -> str:
    """A time as the clock of this machine shows it."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def as_edited(arguments: JsonObject) -> str:
    """The arguments as JSON for an editor, with what can not be seen written out in JSON's own way."""
    text = json.dumps(arguments, ensure_ascii=False, indent=2)
    return "".join(_escaped(char) if char != "\n" and hidden(char) else char for char in text)


def read_arguments(text: str) -> JsonObject:
    """What a person wrote as arguments."""
    try:
        value: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        place = f": {error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise CallerMistake(f"The arguments are not valid JSON{place}. Nothing was answered.") from error
    if not isinstance(value, dict):
        raise CallerMistake("The arguments must be one JSON object. Nothing was answered.")
    return cast("JsonObject", value)


def _fits(approval_id: str, given: str) -> bool:
    return approval_id.startswith((given, f"apr_{given}")) or approval_id.endswith(given)


def _argument(name: str, value: object, *, whole: bool) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        text = "\n".join(visible(line) for line in value.split("\n"))
        lines = _cut(text, whole=whole).split("\n")
        # Marked line by line: what stands in a value can not pass for the next argument.
        return [f"  {name}:", *(f"    │ {line}" for line in lines)]
    return [f"  {name}: {_cut(visible_data(value), whole=whole)}"]


def _cut(text: str, *, whole: bool) -> str:
    if whole or len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} [… {len(text) - 2 * half} of {len(text)} characters are left out here …] {text[-half:]}"


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
