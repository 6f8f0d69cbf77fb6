"""Asks the person at the terminal about calls that wait, and hands their answers over. Ctrl-C means: later."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from annabelle.cli.editor import edited
from annabelle.cli.failure import tell
from annabelle.cli.hub_client import HubClient
from annabelle.cli.output import print_line, print_paragraph
from annabelle.cli.prompt import read_answer
from annabelle.cli.question import Question, as_edited, question, read_arguments, when
from annabelle.core.errors import AnnabelleError, CallerMistake, Conflict, HubUnreachable, NotFound
from annabelle.core.tools import JsonObject
from annabelle.core.visible import visible

Key = Literal["y", "n", "e", "a", "s", "l"]
LATER: Final = "Nothing is done until you answer: annabelle approvals, or /approvals in a chat"
_UNCLEAR: Final = "Type one of the letters; words may follow a no: n, she is on leave"
_WORDS: Final[dict[str, Key]] = {
    "y": "y", "yes": "y", "n": "n", "no": "n", "e": "e", "edit": "e", "a": "a", "always": "a", "s": "s", "show": "s",
    "l": "l", "later": "l",
}  # fmt: skip


async def hand_over(client: HubClient, approval_id: str, answer: JsonObject) -> JsonObject:
    """Give the answer to the hub, which says what came of it."""
    return await client.post(f"/approvals/{approval_id}", answer)


def tell_of_task(said: JsonObject, answer: JsonObject) -> bool:
    """Say what a task in the background does with the answer; whether the question was one of a task."""
    if said.get("taskId") is None:
        return False
    does = "ends without the call" if answer["verdict"] == "deny" else "goes on"
    print_line(f"The task in the background {does}: annabelle tasks")
    return True


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts questions to one person, one after the other."""

    runner: asyncio.Runner
    client: HubClient
    read: Callable[[str], str | None] = read_answer

    def until_settled(self, asked: Sequence[str], go_on: Callable[[str], Sequence[str]]) -> bool:
        """Ask about all of it, let the turn go on, and ask again when it asks again. Whether nothing waits now."""
        while asked:
            going_on = self.ask_all(asked)
            if not going_on:
                return going_on is not None
            asked = go_on(going_on)
        return True

    def ask_all(self, asked: Sequence[str]) -> str | None:
        """The message that carries the turn on; empty when none does from here, None when something was put off."""
        going_on = ""
        for approval_id in asked:
            try:
                given = self._ask(self.runner.run(question(self.client, approval_id)))
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                given = None
            except (Conflict, NotFound) as error:
                tell(error.body())  # answered elsewhere just now, or over
                continue
            if given is None:
                print_line(LATER)
                return None
            going_on = given or going_on
        return going_on

    def _ask(self, asked: Question) -> str | None:
        """None: later. Empty: the turn waits for more, or a task asked; else the message that carries the turn on."""
        if not asked.waits:
            print_line(f"The question about {visible(asked.tool)} is over: {asked.outcome}.")
            return asked.continued_by or ""
        _show(asked, whole=False)
        while True:
            typed = self.read(_choices(asked))
            key, note = _understood(typed)
            if key == "l":
                return None
            if key is None or (key == "a" and asked.always is None) or (key == "s" and not asked.long):
                print_line(_UNCLEAR)
                continue
            if key == "s":
                _show(asked, whole=True)
                continue
            try:
                return self._answer(asked, key, note)
            except (Conflict, NotFound, HubUnreachable):
                raise
            except AnnabelleError as error:
                tell(error.body())

    def _answer(self, asked: Question, key: Key, note: str) -> str:
        answer: JsonObject = {"verdict": "deny" if key == "n" else "approve"}
        if note:
            answer["note"] = note
        if key == "e":
            changed = read_arguments(edited(as_edited(asked.arguments), ".json"))
            if changed == asked.arguments:
                raise CallerMistake("You changed nothing. Say yes to make the call as it is.")
            answer["arguments"] = changed
        if key == "a":
            answer["always"] = True
        said = self.runner.run(hand_over(self.client, asked.id, answer))
        tell_of_task(said, answer)
        return str(said.get("messageId") or "")


def _show(asked: Question, *, whole: bool) -> None:
    first, *rest = asked.call(whole=whole)
    print_line(f"May I call {first}?")
    for line in rest:
        print_line(line)
    print_paragraph(f"Why I ask: {asked.why}")
    print_paragraph(f"A yes makes exactly this call, once. The question waits until {when(asked.expires_at)}.")
    if asked.always is not None:
        print_paragraph(f"Always means: {visible(asked.always.words)}")


def _choices(asked: Question) -> str:
    always = " / [a]lways" if asked.always is not None else ""
    show = " / [s]how all of it" if asked.long else ""
    return f"[y]es / [n]o / [e]dit{always}{show} / [l]ater? "


def _understood(typed: str | None) -> tuple[Key | None, str]:
    """What was chosen, and the words behind a no, which go to the agent: `no, she is on leave`.

    Anything else stands alone: `a moment, please` is no always, and `yes, but to Ben` is no yes to this call.
    """
    if typed is None:
        return "l", ""
    first, _, rest = typed.strip().partition(" ")
    key, note = _WORDS.get(first.rstrip(",.:;!").lower()), rest.strip()
    return (key if key == "n" or not note else None), note
