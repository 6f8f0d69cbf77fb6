"""`annabelle` without a terminal: answers the lines it is piped, one by one; with none, serves until stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import FrameType
from typing import NoReturn, TextIO

from annabelle.cli.conversation import Conversation
from annabelle.cli.failure import tell
from annabelle.cli.hub_client import HubClient, find_hub
from annabelle.cli.hub_session import hub_for_a_while
from annabelle.cli.log_follower import LogFollower
from annabelle.cli.output import print_json, print_line
from annabelle.cli.question import WAITING_EXIT
from annabelle.cli.serve import serve
from annabelle.core.errors import AnnabelleError, HubUnreachable
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def answer_lines(home: Home, chat_id: str, agent_id: str | None, *, json: bool) -> int:
    """Answer every line of standard input; the exit code is the one of the first line that failed."""
    previous = signal.signal(signal.SIGTERM, _leave)
    log = LogFollower(home.logs / "hub.log")
    try:
        with hub_for_a_while(home) as session:
            conversation = Conversation(HubClient(find_hub(home)), chat_id, agent_id)
            code = _answer_lines(conversation, json)
            if code is None:
                serve(session, log)
            return code
    finally:
        signal.signal(signal.SIGTERM, previous)


def _answer_lines(conversation: Conversation, json: bool) -> int | None:
    """The first code that was not 0, or 0; None when there was no line at all."""
    code: int | None = None
    stdin: TextIO | None = sys.stdin
    with asyncio.Runner() as runner:
        try:
            # readline, not iteration: the next line is taken when it comes, not when a buffer is full.
            while stdin is not None and (line := stdin.readline()):
                if line.strip():
                    failed = _answer(runner, conversation, line.strip(), json)
                    code = code or failed
        finally:
            runner.run(conversation.client.__aexit__())
    return code


def _answer(runner: asyncio.Runner, conversation: Conversation, line: str, json: bool) -> int:
    try:
        answer = runner.run(conversation.answer(line))
    except HubUnreachable:
        raise
    except AnnabelleError as error:
        if json:
            failed: JsonObject = {"question": line, "error": error.body().model_dump(exclude_none=True)}
            print_json(failed)
        else:
            tell(error.body())
        return error.exit_code
    if json:
        waits: JsonObject = {"approvals": answer.asked} if answer.asked else {}
        print_json({"question": line, "answer": answer.text, "messageId": conversation.message_id, **waits})
    else:
        print_line(answer.text)
    return WAITING_EXIT if answer.asked else 0
