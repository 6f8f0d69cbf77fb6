"""The chat of a person at a terminal."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import cast

from annabelle.cli.answering import Asker
from annabelle.cli.conversation import Conversation
from annabelle.cli.failure import tell
from annabelle.cli.hub_client import HubClient, find_hub
from annabelle.cli.hub_session import HubSession, hub_for_a_while
from annabelle.cli.hub_settings import hub_settings
from annabelle.cli.output import print_line, print_paragraph
from annabelle.cli.patience import Patience
from annabelle.cli.prompt import Prompt
from annabelle.cli.question import questions
from annabelle.cli.screen import Screen, clean
from annabelle.cli.turn_view import Asked, Change, Noticed, Sent
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject

NOT_KNOWN_YET = "Annabelle runs with settings of its own; which model answers is shown with the first answer."
OPEN_QUESTIONS = "/approvals"
LEAVE_HINT = "Ctrl-C once more, or Ctrl-D, leaves."


@dataclass(slots=True)
class _Talk:
    """One sitting: each line typed is a turn; Ctrl-C stops the turn that runs, and leaves when none does."""

    runner: asyncio.Runner
    conversation: Conversation
    screen: Screen
    prompt: Prompt
    home: Home
    model_named: bool

    def run(self) -> None:
        interrupted = False
        while True:
            try:
                line = self.prompt.read()
                interrupted = False
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                if interrupted:
                    return
                print_line(LEAVE_HINT)
                interrupted = True
                continue
            if line is None or line.strip() in ("/quit", "/exit"):
                return
            if line.strip() == OPEN_QUESTIONS:
                self._do(self._open_questions)
            elif line.strip():
                self._do(partial(self._turn, line))

    def _turn(self, line: str) -> None:
        asked = self.runner.run(self._say(line))
        Asker(self.runner, self.conversation.client).until_settled(asked, self._go_on)

    def _open_questions(self) -> None:
        """Ask what was put off, also in other chats; what follows is shown here."""
        here = self.conversation
        waiting = self.runner.run(questions(here.client, "pending"))
        if not waiting:
            print_line("No question waits for you.")
        for (thread_id, _), asked in groupby(reversed(waiting), key=lambda one: (one.thread_id, one.message_id)):
            if thread_id != here.thread_id:
                self.conversation = Conversation(here.client, here.chat_id, here.agent_id, thread_id)
            try:
                if not Asker(self.runner, here.client).until_settled([one.id for one in asked], self._go_on):
                    return
            finally:
                self.conversation = here

    def _do(self, what: Callable[[], None]) -> None:
        try:
            what()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            self._stop()
        except AnnabelleError as error:
            sys.stdout.write("\n")
            tell(error.body())

    async def _say(self, line: str) -> Sequence[str]:
        asked = await self._show(self.conversation.say(line))
        if not self.model_named:
            await self._name_model()
        return asked

    def _go_on(self, message_id: str) -> Sequence[str]:
        return self.runner.run(self._show(self.conversation.follow(message_id)))

    async def _show(self, changes: AsyncGenerator[Change]) -> Sequence[str]:
        """Show a turn to its end; the questions it ends with are put to the person then."""
        asked: list[str] = []
        self.screen.waiting()
        async with aclosing(changes):
            async for change in changes:
                if isinstance(change, Asked):
                    asked.append(change.approval_id)
                elif not (asked and isinstance(change, Sent)):
                    # The question in words is not shown: the person is asked in a moment.
                    self.screen.show(change)
        return list(dict.fromkeys(asked))

    async def _name_model(self) -> None:
        """What could not be said before the first answer: which model gives it."""
        from annabelle.cli.model_line import answered_by  # noqa: PLC0415  loaded while the hub starts

        assert self.conversation.message_id is not None
        told = await answered_by(self.home, self.conversation.client, self.conversation.message_id)
        if told is not None:
            self.model_named = True
            self.screen.show(Noticed(told))

    def _stop(self) -> None:
        try:
            stopped = self.runner.run(self.conversation.cancel())
        except KeyboardInterrupt:
            stopped = False
        except AnnabelleError as error:
            tell(error.body())
            return
        print_line("Stopped." if stopped else "Annabelle finishes this answer in the background.")


def _load_models() -> None:
    """Choosing a model takes long to import, so that is done while the hub starts."""
    importlib.import_module("annabelle.cli.model_line")


async def _greeting(home: Home, session: HubSession, status: JsonObject, agent_id: str | None) -> str | None:
    """Which model answers, by the settings of the hub, which another terminal may have started; None if unknown."""
    from annabelle.cli.model_line import model_line, profile_of  # noqa: PLC0415  loaded while the hub starts

    settings = load_settings(home) if session.own is not None else hub_settings(home, session.note)
    return await model_line(home, settings, profile_of(status, agent_id, settings)) if settings is not None else None


def _worries(status: JsonObject) -> list[str]:
    """What the hub wants its owner to know before anything is said."""
    notices = status.get("notices")
    found = cast("list[JsonObject]", notices) if isinstance(notices, list) else []
    return [clean(str(notice.get("text"))) for notice in found if notice.get("level") in ("warning", "error")]


async def _put_off(client: HubClient) -> list[str]:
    """A question that was put off must not be forgotten."""
    waiting = len(await questions(client, "pending"))
    if not waiting:
        return []
    what = "A question waits" if waiting == 1 else f"{waiting} questions wait"
    return [f"{what} for your answer: {OPEN_QUESTIONS}"]


def talk(home: Home, chat_id: str, agent_id: str | None) -> None:
    """Chat until the person leaves."""
    with hub_for_a_while(home, meanwhile=_load_models) as session, asyncio.Runner() as runner:
        client = HubClient(find_hub(home))
        prompt = Prompt(home.history_file, home.forgotten_file)
        try:
            with Patience("Looking which model answers"):
                status = runner.run(client.get("/status"))
                greeting = runner.run(_greeting(home, session, status, agent_id))
            print_paragraph(greeting or NOT_KNOWN_YET)
            for text in [*_worries(status), *runner.run(_put_off(client))]:
                print_paragraph(f"· {text}")
            print_line("Type and press Enter. Ctrl-C stops an answer, Ctrl-D leaves.")
            prompt.open()
            screen = Screen(sys.stdout, colour="NO_COLOR" not in os.environ)
            conversation = Conversation(client, chat_id, agent_id)
            _Talk(runner, conversation, screen, prompt, home, model_named=greeting is not None).run()
        finally:
            prompt.close()
            runner.run(client.__aexit__())
        print_line("Bye.")
