"""Approval questions at the terminal: fetches and shows them, asks the person, and submits the answer (POL-03)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from annabelle.cli.failure import print_error
from annabelle.cli.hub_client import CliHubClient
from annabelle.cli.output import print_line, print_paragraph
from annabelle.cli.terminal_input import edit_text, read_answer
from annabelle.core.errors import AnnabelleError, CallerMistake, Conflict, HubUnreachable, NotFound
from annabelle.core.ids import is_id
from annabelle.core.text import escape_invisible, escape_invisible_json, is_invisible
from annabelle.core.tools import JsonObject, name_in_words

WAITING_EXIT: Final = 6
"""Exit code when the turn waits for an approval that nobody could give."""
SHOWN_CHARS: Final = 1_500
_LONGEST_ARGUMENTS: Final = 80
_MOST: Final = 500
_OUTCOMES: Final = {"pending": "waits", "used": "approved and done", "cancelled": "taken back"}


class OfferedAllowance(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    words: str


class ApprovalQuestion(BaseModel):
    """A question from the hub; unused fields are kept for `--json`."""

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
    always: OfferedAllowance | None = None

    @property
    def is_pending(self) -> bool:
        return self.state == "pending"

    @property
    def outcome(self) -> str:
        return _OUTCOMES.get(self.state, self.state)

    def call_lines(self, *, whole: bool) -> list[str]:
        """The exact call, line by line. Long values are cut unless `whole`, with a note that says so."""
        lines = [escape_invisible(self.tool)]
        for name, value in self.arguments.items():
            lines += _argument_lines(escape_invisible(name), value, whole=whole)
        return lines if self.arguments else [*lines, "  (without arguments)"]

    @property
    def is_long(self) -> bool:
        return self.call_lines(whole=True) != self.call_lines(whole=False)

    @property
    def summary(self) -> str:
        """The arguments on one short line, for a list."""
        flat = " ".join(
            f"{escape_invisible(name)}={escape_invisible_json(value)}" for name, value in self.arguments.items()
        )
        return flat if len(flat) <= _LONGEST_ARGUMENTS else flat[: _LONGEST_ARGUMENTS - 1] + "…"

    @property
    def why(self) -> str:
        return " ".join(map(escape_invisible, self.reasons)) or "It needs your yes."


async def fetch_questions(client: CliHubClient, state: str | None = None) -> list[ApprovalQuestion]:
    """The person's own questions, newest first."""
    wanted = {} if state is None else {"state": state}
    found = await client.get("/approvals", limit=_MOST, **wanted)
    return [ApprovalQuestion.model_validate(one) for one in cast("list[JsonObject]", found["approvals"])]


async def fetch_question(client: CliHubClient, approval_id: str) -> ApprovalQuestion:
    return ApprovalQuestion.model_validate(await client.get(f"/approvals/{approval_id}"))


async def find_question(client: CliHubClient, given: str) -> ApprovalQuestion:
    """Find a question by its id or a unique start or end of it, pending ones first."""
    if is_id(given):
        return await fetch_question(client, given)
    fitting = [one for one in await fetch_questions(client) if given and _matches_id(one.id, given)]
    meant = [one for one in fitting if one.is_pending] or fitting
    if not meant:
        raise NotFound(
            f"There is no question {escape_invisible(given)!r}.", hint="annabelle approvals --all lists them."
        )
    if len(meant) > 1:
        ids = ", ".join(one.id for one in meant[:5])
        raise CallerMistake(
            f"{escape_invisible(given)!r} fits {len(meant)} questions: {ids}.", hint="Give more of the id."
        )
    return meant[0]


def format_time(moment: datetime) -> str:
    """A time in this machine's time zone."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def to_editable_json(arguments: JsonObject) -> str:
    """The arguments as JSON for an editor, with invisible characters escaped."""
    text = json.dumps(arguments, ensure_ascii=False, indent=2)
    return "".join(_escape(char) if char != "\n" and is_invisible(char) else char for char in text)


def read_arguments(text: str) -> JsonObject:
    try:
        value: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        place = f": {error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise CallerMistake(f"The arguments are not valid JSON{place}. Nothing was answered.") from error
    if not isinstance(value, dict):
        raise CallerMistake("The arguments must be one JSON object. Nothing was answered.")
    return cast("JsonObject", value)


def _matches_id(approval_id: str, given: str) -> bool:
    return approval_id.startswith((given, f"apr_{given}")) or approval_id.endswith(given)


def _argument_lines(name: str, value: object, *, whole: bool) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        text = "\n".join(escape_invisible(line) for line in value.split("\n"))
        lines = _shorten(text, whole=whole).split("\n")
        # Mark each line, so that a value cannot pass for the next argument.
        return [f"  {name}:", *(f"    │ {line}" for line in lines)]
    return [f"  {name}: {_shorten(escape_invisible_json(value), whole=whole)}"]


def _shorten(text: str, *, whole: bool) -> str:
    if whole or len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} [… {len(text) - 2 * half} of {len(text)} characters are left out here …] {text[-half:]}"


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


AnswerKey = Literal["y", "n", "e", "a", "s", "l"]
LATER: Final = "Nothing is done until you answer: annabelle approvals, or /approvals in a chat"
_UNCLEAR: Final = "Type one of the letters; words may follow a no: n, she is on leave"
_WORDS: Final[dict[str, AnswerKey]] = {
    "y": "y", "yes": "y", "n": "n", "no": "n", "e": "e", "edit": "e", "a": "a", "always": "a", "s": "s", "show": "s",
    "l": "l", "later": "l",
}  # fmt: skip


async def submit_answer(client: CliHubClient, approval_id: str, answer: JsonObject) -> JsonObject:
    return await client.post(f"/approvals/{approval_id}", answer)


def print_task_outcome(said: JsonObject, answer: JsonObject) -> bool:
    """Say what a background task does with the answer. False if the question belongs to no task."""
    if said.get("taskId") is None:
        return False
    does = "ends without the call" if answer["verdict"] == "deny" else "goes on"
    print_line(f"The task in the background {does}: annabelle tasks")
    return True


@dataclass(frozen=True, slots=True)
class ApprovalPrompter:
    runner: asyncio.Runner
    client: CliHubClient
    read: Callable[[str], str | None] = read_answer

    def until_settled(self, asked: Sequence[str], go_on: Callable[[str], Sequence[str]]) -> bool:
        """Ask, let the turn continue, and repeat while it asks again. False if a question was postponed."""
        while asked:
            going_on = self.ask_all(asked)
            if not going_on:
                return going_on is not None
            asked = go_on(going_on)
        return True

    def ask_all(self, asked: Sequence[str]) -> str | None:
        """Return the message that continues the turn, "" if there is none, or None if a question was postponed."""
        going_on = ""
        for approval_id in asked:
            try:
                given = self._ask(self.runner.run(fetch_question(self.client, approval_id)))
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                given = None
            except (Conflict, NotFound) as error:
                print_error(error.body())  # just answered elsewhere, or expired
                continue
            if given is None:
                print_line(LATER)
                return None
            going_on = given or going_on
        return going_on

    def _ask(self, asked: ApprovalQuestion) -> str | None:
        """Return None for later, "" if nothing continues yet, else the message that continues the turn."""
        if not asked.is_pending:
            print_line(f"The question about {escape_invisible(asked.tool)} is over: {asked.outcome}.")
            return asked.continued_by or ""
        _print_question(asked, whole=False)
        while True:
            typed = self.read(_choices(asked))
            key, note = _parse_choice(typed)
            if key == "l":
                return None
            if key is None or (key == "a" and asked.always is None) or (key == "s" and not asked.is_long):
                print_line(_UNCLEAR)
                continue
            if key == "s":
                _print_question(asked, whole=True)
                continue
            try:
                return self._answer(asked, key, note)
            except (Conflict, NotFound, HubUnreachable):
                raise
            except AnnabelleError as error:
                print_error(error.body())

    def _answer(self, asked: ApprovalQuestion, key: AnswerKey, note: str) -> str:
        answer: JsonObject = {"verdict": "deny" if key == "n" else "approve"}
        if note:
            answer["note"] = note
        if key == "e":
            changed = read_arguments(edit_text(to_editable_json(asked.arguments), ".json"))
            if changed == asked.arguments:
                raise CallerMistake("You changed nothing. Say yes to make the call as it is.")
            answer["arguments"] = changed
        if key == "a":
            answer["always"] = True
        said = self.runner.run(submit_answer(self.client, asked.id, answer))
        print_task_outcome(said, answer)
        return str(said.get("messageId") or "")


def _print_question(asked: ApprovalQuestion, *, whole: bool) -> None:
    first, *rest = asked.call_lines(whole=whole)
    print_line(f"May I call {name_in_words(first)}?")
    for line in rest:
        print_line(line)
    print_paragraph(f"Why I ask: {asked.why}")
    print_paragraph(f"A yes makes exactly this call, once. The question waits until {format_time(asked.expires_at)}.")
    if asked.always is not None:
        print_paragraph(f"Always means: {escape_invisible(asked.always.words)}")


def _choices(asked: ApprovalQuestion) -> str:
    always = " / [a]lways" if asked.always is not None else ""
    show = " / [s]how all of it" if asked.is_long else ""
    return f"[y]es / [n]o / [e]dit{always}{show} / [l]ater? "


def _parse_choice(typed: str | None) -> tuple[AnswerKey | None, str]:
    """The choice, and the words after a no, which go to the agent: `no, she is on leave`.

    Other choices must stand alone: `a moment, please` is not always, and `yes, but to Ben` does not approve this call.
    """
    if typed is None:
        return "l", ""
    first, _, rest = typed.strip().partition(" ")
    key, note = _WORDS.get(first.rstrip(",.:;!").lower()), rest.strip()
    return (key if key == "n" or not note else None), note
