"""The chat on a terminal shows every change once and lets no model or tool steer the terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import termios

from hypothesis import given, strategies as st

from annabelle.cli.output import ChatScreen, clean
from annabelle.core.errors import ErrorBody
from annabelle.core.turn_view import (
    NoticeAdded,
    ReasoningAdded,
    ReplySent,
    TextAdded,
    TextReplaced,
    ToolFinished,
    ToolStarted,
    TurnViewEnded,
    TurnViewFailed,
)


def shown(
    *changes: TextAdded
    | TurnViewEnded
    | TurnViewFailed
    | NoticeAdded
    | TextReplaced
    | ReplySent
    | ReasoningAdded
    | ToolFinished
    | ToolStarted,
) -> str:
    out = io.StringIO()
    screen = ChatScreen(out, colour=False)
    for change in changes:
        screen.show(change)
    return out.getvalue()


def test_a_streamed_answer_is_not_repeated_when_it_is_delivered():
    assert shown(TextAdded("Hello "), TextAdded("you"), ReplySent("Hello you"), TurnViewEnded()) == "Hello you\n"


def test_an_answer_that_was_not_streamed_is_shown_when_it_is_delivered():
    assert shown(ReplySent("Hello"), TurnViewEnded()) == "Hello\n"


def test_tool_activity_stands_between_the_steps():
    started = ToolStarted("c", "filer_read", {"path": "a.txt"})
    finished = ToolFinished("c", "filer_read", True, "", 12.3)
    assert shown(
        TextAdded("Let me see."), started, finished, TextAdded("It says hi."), ReplySent("It says hi."), TurnViewEnded()
    ) == ('Let me see.\n⚙ filer read path="a.txt"\n✓ filer read 12 ms\nIt says hi.\n')


def test_a_failed_tool_says_why():
    assert "✗ filer read 1 ms: No such file." in shown(ToolFinished("c", "filer_read", False, "No such\nfile.", 1))


def test_an_error_is_a_sentence_and_a_hint():
    assert shown(TurnViewFailed(ErrorBody(code="x", message="The key is wrong.", hint="Set it."))) == (
        "The key is wrong.\nSet it.\n"
    )


def test_without_a_terminal_to_erase_on_a_new_attempt_says_so():
    assert shown(TextAdded("Half"), TextReplaced("Whole"), TurnViewEnded()) == "Half\n(once more)\nWhole\n"


@given(st.text())
def test_no_control_sequence_of_a_model_reaches_the_terminal(text: str):
    painted = shown(TextAdded(text + "\x1b]0;title\x07\x9b31m"), ReplySent(text), NoticeAdded(text), TurnViewEnded())
    assert not {char for char in painted if (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f"}


def test_ordinary_text_is_left_as_it_is():
    assert clean("Grüße, 世界 🎉\n\tok") == "Grüße, 世界 🎉\n\tok"


def test_on_a_terminal_a_new_attempt_takes_the_place_of_the_old_one():
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 10, 0, 0))
    with os.fdopen(slave, "w") as out:
        screen = ChatScreen(out, colour=False)
        screen.show(TextAdded("Half a sentence\nand more"))  # two rows and one row of ten columns
        screen.show(TextReplaced("Whole"))
    painted = b""
    with contextlib.suppress(OSError):  # the end, once the other side is closed
        while piece := os.read(master, 4096):
            painted += piece
    os.close(master)
    assert painted.decode().endswith("\r\x1b[2A\x1b[JWhole")
