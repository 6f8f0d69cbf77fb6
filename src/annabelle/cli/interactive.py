"""The chat of a person at a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from annabelle.cli.conversation import Conversation
from annabelle.cli.failure import tell
from annabelle.cli.hub_client import HubClient, find_hub
from annabelle.cli.hub_session import hub_for_a_while
from annabelle.cli.model_line import model_line
from annabelle.cli.output import print_line
from annabelle.cli.prompt import Prompt
from annabelle.cli.screen import Screen, clean
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

LEAVE_HINT = "Ctrl-C once more, or Ctrl-D, leaves."


@dataclass(slots=True)
class _Talk:
    """One sitting: each line typed is a turn; Ctrl-C stops the turn that runs, and leaves when none does."""

    runner: asyncio.Runner
    conversation: Conversation
    screen: Screen
    prompt: Prompt

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
            if line.strip():
                self._turn(line)

    def _turn(self, line: str) -> None:
        try:
            self.runner.run(self._say(line))
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            self._stop()
        except AnnabelleError as error:
            sys.stdout.write("\n")
            tell(error.body())

    async def _say(self, line: str) -> None:
        self.screen.waiting()
        async with aclosing(self.conversation.say(line)) as changes:
            async for change in changes:
                self.screen.show(change)

    def _stop(self) -> None:
        try:
            stopped = self.runner.run(self.conversation.cancel())
        except KeyboardInterrupt:
            stopped = False
        except AnnabelleError as error:
            tell(error.body())
            return
        print_line("Stopped." if stopped else "Annabelle finishes this answer in the background.")


async def _worries(client: HubClient) -> list[str]:
    """What the hub wants its owner to know before anything is said."""
    notices = (await client.get("/status")).get("notices")
    found = cast("list[JsonObject]", notices) if isinstance(notices, list) else []
    return [clean(str(notice.get("text"))) for notice in found if notice.get("level") in ("warning", "error")]


def talk(home: Home, chat_id: str, agent_id: str | None) -> None:
    """Chat until the person leaves."""
    with hub_for_a_while(home), asyncio.Runner() as runner:
        client = HubClient(find_hub(home))
        prompt = Prompt(home.history_file)
        try:
            print_line(runner.run(model_line(home)))
            for text in runner.run(_worries(client)):
                print_line(f"· {text}")
            print_line("Type and press Enter. Ctrl-C stops an answer, Ctrl-D leaves.")
            prompt.open()
            screen = Screen(sys.stdout, colour="NO_COLOR" not in os.environ)
            _Talk(runner, Conversation(client, chat_id, agent_id), screen, prompt).run()
        finally:
            prompt.close()
            runner.run(client.__aexit__())
        print_line("Bye.")
