"""`annabelle` and `annabelle chat`: a terminal chat, answers to piped lines, or serving until stopped."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import FrameType
from typing import NoReturn, TextIO, cast

import typer

from annabelle.cli.approval_prompt import WAITING_EXIT, ApprovalPrompter, fetch_questions
from annabelle.cli.chat_news import ChatNews
from annabelle.cli.conversation import CHANNEL, Conversation
from annabelle.cli.failure import print_error
from annabelle.cli.hub_client import CliHubClient, find_hub
from annabelle.cli.hub_process import HubSession, running_hub, temporary_hub
from annabelle.cli.hub_settings import read_hub_settings
from annabelle.cli.options import DEFAULT_CHAT, Agent, Chat, Json, New, command_app
from annabelle.cli.output import ChatScreen, clean, print_json, print_line, print_paragraph
from annabelle.cli.spinner import Spinner, clear_status
from annabelle.cli.terminal_input import LinePrompt, read_answer
from annabelle.core.errors import AlreadyRunning, AnnabelleError, CallerMistake, HubUnreachable, Unavailable
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.log_tail import LogFollower
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject
from annabelle.core.turn_view import ApprovalAsked, NoticeAdded, ReplySent, TurnChange

NOT_KNOWN_YET = "Annabelle runs with settings of its own; which model answers is shown with the first answer."
OPEN_QUESTIONS = "/approvals"
LEAVING = ("/quit", "/exit")
LEAVE_HINT = "Ctrl-C once more, or Ctrl-D, leaves."


@dataclass(slots=True)
class _TerminalChat:
    """One chat at a terminal. Ctrl-C stops the running turn, or leaves if none runs."""

    runner: asyncio.Runner
    hubs: ExitStack
    """Those that were started here, to be stopped when the chat ends."""
    conversation: Conversation
    screen: ChatScreen
    prompt: LinePrompt
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
            if line is None or line.strip() in LEAVING:
                return
            if line.strip() == OPEN_QUESTIONS:
                self._run_safely(self._ask_open_questions)
            elif line.strip():
                self._run_safely(partial(self._run_turn, line))

    def _run_turn(self, line: str) -> None:
        self.conversation.message_id = None
        line_id = new_id("cli")
        try:
            asked = self.runner.run(self._say(line, line_id))
        except HubUnreachable:
            if running_hub(self.home) is not None:
                raise
            self._start_hub()
            kept = self.conversation.message_id
            asked = self.runner.run(self._say(line, line_id)) if kept is None else self._go_on(kept)
        ApprovalPrompter(self.runner, self.conversation.client).until_settled(asked, self._go_on)

    def _start_hub(self) -> None:
        """Another one, because the hub of this chat was killed. It knows every message that was accepted."""
        clear_status()
        self.hubs.enter_context(temporary_hub(self.home))
        self.runner.run(self.conversation.client.__aexit__())
        self.conversation.client = CliHubClient(find_hub(self.home))

    def _ask_open_questions(self) -> None:
        """Ask postponed questions, also of other chats, and show here what follows."""
        here = self.conversation
        waiting = self.runner.run(fetch_questions(here.client, "pending"))
        if not waiting:
            print_line("No question waits for you.")
        for (thread_id, _), asked in groupby(reversed(waiting), key=lambda one: (one.thread_id, one.message_id)):
            if thread_id != here.thread_id:
                self.conversation = Conversation(here.client, here.chat_id, here.agent_id, thread_id)
            try:
                if not ApprovalPrompter(self.runner, here.client).until_settled([one.id for one in asked], self._go_on):
                    return
            finally:
                self.conversation = here

    def _run_safely(self, what: Callable[[], None]) -> None:
        try:
            what()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            self._stop()
        except AnnabelleError as error:
            sys.stdout.write("\n")
            print_error(error.body())

    async def _say(self, line: str, line_id: str) -> Sequence[str]:
        asked = await self._show(self.conversation.say(line, line_id))
        if not self.model_named:
            await self._name_model()
        return asked

    def _go_on(self, message_id: str) -> Sequence[str]:
        return self.runner.run(self._show(self.conversation.follow(message_id)))

    async def _show(self, changes: AsyncGenerator[TurnChange]) -> Sequence[str]:
        """Show a turn until it ends, and return the questions it asks."""
        asked: list[str] = []
        goes_on: str | None = None
        self.screen.show_waiting()
        async with aclosing(changes):
            async for change in changes:
                if isinstance(change, ApprovalAsked):
                    asked.append(change.approval_id)
                elif not (asked and isinstance(change, ReplySent)):
                    # Skip the question in words: the person is asked in a moment.
                    self.screen.show(change)
                if isinstance(change, ReplySent):
                    goes_on = change.goes_on or goes_on
        if goes_on is not None:  # a question was answered by a command
            return await self._show(self.conversation.follow(goes_on))
        return list(dict.fromkeys(asked))

    async def _name_model(self) -> None:
        """Show which model answered, if it was unknown before the first answer."""
        from annabelle.cli.model_line import find_answering_model  # noqa: PLC0415  loaded while the hub starts

        assert self.conversation.message_id is not None
        told = await find_answering_model(self.home, self.conversation.client, self.conversation.message_id)
        if told is not None:
            self.model_named = True
            self.screen.show(NoticeAdded(told))

    def _stop(self) -> None:
        try:
            stopped = self.runner.run(self.conversation.cancel())
        except KeyboardInterrupt:
            stopped = False
        except AnnabelleError as error:
            print_error(error.body())
            return
        print_line("Stopped." if stopped else "Annabelle finishes this answer in the background.")


def _load_models() -> None:
    """Import model selection while the hub starts, because it is slow."""
    importlib.import_module("annabelle.cli.model_line")
    importlib.import_module("annabelle.llm.model_catalogue")


async def _build_greeting(home: Home, session: HubSession, status: JsonObject, agent_id: str | None) -> str | None:
    """Which model answers by the settings of the running hub; None if unknown."""
    from annabelle.cli.model_line import find_profile  # noqa: PLC0415  loaded while the hub starts
    from annabelle.llm.model_catalogue import describe_model  # noqa: PLC0415

    settings = load_settings(home) if session.own is not None else read_hub_settings(home, session.note)
    return (
        await describe_model(home, settings, find_profile(status, agent_id, settings)) if settings is not None else None
    )


def _find_warnings(status: JsonObject) -> list[str]:
    notices = status.get("notices")
    found = cast("list[JsonObject]", notices) if isinstance(notices, list) else []
    return [clean(str(notice.get("text"))) for notice in found if notice.get("level") in ("warning", "error")]


async def _list_commands(client: CliHubClient) -> list[str]:
    """The commands that the hub answers, for completion; what is typed is sent to it in any case."""
    try:
        found = cast("list[JsonObject]", (await client.get("/commands"))["commands"])
    except CallerMistake:  # a hub of an older version
        return []
    return [f"/{one['name']}" for one in found]


async def _describe_pending(client: CliHubClient) -> list[str]:
    waiting = len(await fetch_questions(client, "pending"))
    if not waiting:
        return []
    what = "A question waits" if waiting == 1 else f"{waiting} questions wait"
    return [f"{what} for your answer: {OPEN_QUESTIONS}"]


_MODEL_SETTINGS = ("thinker_llm_provider", "compatible_base_url", "ollama_model", "lmstudio_model", "embedded_model")


def offer_setup(home: Home) -> None:
    """At the very first start: set up now, or talk to the packaged model at once."""
    if not _is_new(home):
        return
    clear_status()
    answer = read_answer("This is the first start. Choose a model, your name and accounts now? [Y/n] ")
    if answer is not None and answer.strip().lower() in ("", "y", "yes"):
        with contextlib.suppress(typer.Abort):
            importlib.import_module("annabelle.cli.init").Setup(home.prepare(), asks=True).guide()
    else:
        print_line("Then with the packaged model. annabelle init asks again at any time.")
    print_line("")


def _is_new(home: Home) -> bool:
    """Whether nobody has talked here yet or said which model answers."""
    if home.settings_file.exists() or home.history_file.exists() or running_hub(home) is not None:
        return False
    settings = load_settings(home)
    chosen = [name for name in settings.model_fields_set if name.endswith("_api_key") or name in _MODEL_SETTINGS]
    return not any(getattr(settings, name) for name in chosen)


def run_chat(home: Home, chat_id: str, agent_id: str | None, channel: str = CHANNEL) -> None:
    with ExitStack() as hubs, asyncio.Runner() as runner:
        session = hubs.enter_context(temporary_hub(home, meanwhile=_load_models))
        client = CliHubClient(find_hub(home))
        conversation = Conversation(client, chat_id, agent_id, channel=channel)
        with Spinner("Looking which model answers"):
            commands = runner.run(_list_commands(client))
        prompt = LinePrompt(home.history_file, home.forgotten_file, [*commands, OPEN_QUESTIONS, *LEAVING])
        news = ChatNews(home, prompt)
        try:
            with Spinner("Looking which model answers"):
                status = runner.run(client.get("/status"))
                greeting = runner.run(_build_greeting(home, session, status, agent_id))
            print_paragraph(greeting or NOT_KNOWN_YET)
            for text in [*_find_warnings(status), *runner.run(_describe_pending(client))]:
                print_paragraph(f"· {text}")
            print_line("Type and press Enter. Ctrl-C stops an answer, Ctrl-D leaves, /help lists the commands.")
            prompt.open()
            news.start()
            screen = ChatScreen(sys.stdout, colour="NO_COLOR" not in os.environ)
            _TerminalChat(runner, hubs, conversation, screen, prompt, home, model_named=greeting is not None).run()
        finally:
            news.stop()
            prompt.close()
            runner.run(conversation.client.__aexit__())
        print_line("Bye.")


POLL_SECONDS = 0.2


def serve_until_stopped(session: HubSession, log: LogFollower) -> NoReturn:
    """Show the hub's log until a signal ends this process or the hub ends."""
    if session.own is None:
        raise AlreadyRunning(
            f"Annabelle already runs at {session.note.url} (process {session.note.pid}).",
            hint="Stop it first (annabelle down), or watch it: annabelle logs -f",
        )
    sys.stderr.write(f"Annabelle serves at {session.note.url} until it is stopped.\n")
    while session.own.process.poll() is None:
        for line in log.new_lines():
            sys.stderr.write(f"{line}\n")
        time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The hub ended by itself (exit code {session.own.process.returncode}).",
        hint="Its log tells why: annabelle logs",
    )


def _exit_on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def answer_lines(home: Home, chat_id: str, agent_id: str | None, *, json: bool, channel: str = CHANNEL) -> int:
    """Answer every line of standard input; returns the exit code of the first failed line."""
    previous = signal.signal(signal.SIGTERM, _exit_on_signal)
    log = LogFollower(home.logs / "hub.log")
    try:
        with temporary_hub(home) as session:
            conversation = Conversation(CliHubClient(find_hub(home)), chat_id, agent_id, channel=channel)
            code = _answer_all(conversation, json)
            if code is None and channel != CHANNEL:
                raise CallerMistake("There is nothing to say.", hint="Type it at a terminal, or pipe lines in.")
            if code is None:
                serve_until_stopped(session, log)
            return code
    finally:
        signal.signal(signal.SIGTERM, previous)


def _answer_all(conversation: Conversation, json: bool) -> int | None:
    """The first nonzero code, or 0; None if there was no line."""
    code: int | None = None
    stdin: TextIO | None = sys.stdin
    with asyncio.Runner() as runner:
        try:
            # readline takes each line as it comes; iteration would wait for a full buffer.
            while stdin is not None and (line := stdin.readline()):
                if line.strip():
                    failed = _answer_line(runner, conversation, line.strip(), json)
                    code = code or failed
        finally:
            runner.run(conversation.client.__aexit__())
    return code


def _answer_line(runner: asyncio.Runner, conversation: Conversation, line: str, json: bool) -> int:
    try:
        answer = runner.run(conversation.answer(line))
    except HubUnreachable:
        raise
    except AnnabelleError as error:
        if json:
            failed: JsonObject = {"question": line, "error": error.body().model_dump(exclude_none=True)}
            print_json(failed)
        else:
            print_error(error.body())
        return error.exit_code
    if json:
        waits: JsonObject = {"approvals": answer.asked} if answer.asked else {}
        print_json({"question": line, "answer": answer.text, "messageId": conversation.message_id, **waits})
    else:
        print_line(answer.text)
    return WAITING_EXIT if answer.asked else 0


def is_interactive(*, json: bool) -> bool:
    # sys.stdin is None if the descriptor was closed before the start.
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not json  # pyright: ignore[reportUnnecessaryComparison]


def talk(home: Home, chat_id: str, agent_id: str | None, *, json: bool, channel: str = CHANNEL) -> None:
    """Hold a conversation in a chat: at the terminal, or with every line that is piped in."""
    if is_interactive(json=json):
        run_chat(home, chat_id, agent_id, channel)
        return
    raise typer.Exit(answer_lines(home, chat_id, agent_id, json=json, channel=channel))


app = command_app()


@app.command()
def chat(chat: Chat = DEFAULT_CHAT, new: New = False, agent: Agent = None, json: Json = False) -> None:
    """Talk to Annabelle. Starts everything that is needed, and stops at the end what it has started.

    Lines piped in are answered one by one. Without a terminal and without a line, it serves until it is stopped.
    """
    home = Home.from_environment()
    if is_interactive(json=json):
        offer_setup(home)
    talk(home, new_id("chat") if new else chat, agent, json=json)
