"""A newer attempt replaces what an older one showed; nothing is told twice; the end is always the finished text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.core.messages import EventType, TurnEvent
from annabelle.core.turn_view import (
    ApprovalAsked,
    NoticeAdded,
    ReplySent,
    TextAdded,
    TextReplaced,
    ToolFinished,
    ToolStarted,
    TurnChange,
    TurnView,
    TurnViewEnded,
    TurnViewFailed,
)

MESSAGE = "msg_1"


def event(type_: EventType, key: str, step: int = 1, attempt: int = 0, **data: object) -> TurnEvent:
    return TurnEvent(message_id=MESSAGE, key=key, type=type_, step=step, attempt=attempt, data=data)


def delta(text: str, n: int, step: int = 1, attempt: int = 0) -> TurnEvent:
    return event("text", f"{step}:{attempt}:{n}", step, attempt, text=text)


def final(text: str, step: int = 1, attempt: int = 0) -> TurnEvent:
    return event("text", f"{step}:text", step, attempt, text=text, final=True)


def changes(*events: TurnEvent) -> list[TurnChange]:
    view = TurnView(MESSAGE)
    return [change for one in events for change in view.apply(one)]


def painted(*events: TurnEvent) -> list[str]:
    """The text of each step as a screen would hold it."""
    view, steps, speaking = TurnView(MESSAGE), list[str](), -1
    for one in events:
        for change in view.apply(one):
            if one.type == "text" and one.step != speaking:
                steps, speaking = [*steps, ""], one.step
            if isinstance(change, TextAdded):
                steps[-1] += change.text
            elif isinstance(change, TextReplaced):
                steps[-1] = change.text
    return steps


def test_pieces_are_added_and_the_finished_text_adds_only_what_is_missing():
    assert changes(delta("Hel", 1), delta("lo", 2), final("Hello!")) == [
        TextAdded("Hel"),
        TextAdded("lo"),
        TextAdded("!"),
    ]


def test_a_newer_attempt_takes_back_what_the_older_one_said():
    assert changes(delta("Half a sen", 1), delta("Whole", 1, attempt=100)) == [
        TextAdded("Half a sen"),
        TextReplaced("Whole"),
    ]


def test_an_older_attempt_that_comes_late_is_passed_over():
    assert changes(delta("new", 1, attempt=100), delta("old", 9)) == [TextAdded("new")]


def test_the_finished_text_counts_whichever_attempt_it_came_from():
    assert painted(delta("other words", 1, attempt=100), final("The answer", attempt=0)) == ["The answer"]


def test_the_same_event_after_a_reconnect_is_told_once():
    assert changes(delta("a", 1), delta("a", 1), final("a"), final("a")) == [TextAdded("a")]


def test_events_of_other_messages_are_passed_over():
    assert TurnView("msg_2").apply(delta("a", 1)) == []


ATTEMPTS = st.lists(st.lists(st.text(min_size=1, max_size=4), max_size=4), min_size=1, max_size=4)


@given(steps=st.lists(ATTEMPTS, min_size=1, max_size=4), doubled=st.lists(st.integers(0, 40), max_size=10))
def test_whatever_was_tried_the_screen_ends_with_the_finished_text_of_each_step(
    steps: list[list[list[str]]], doubled: list[int]
):
    told: list[TurnEvent] = []
    for step, attempts in enumerate(steps):
        for attempt, pieces in enumerate(attempts):
            told += [delta(piece, n, step, attempt) for n, piece in enumerate(pieces)]
        told.append(final("".join(attempts[-1]) + ".", step, len(attempts) - 1))
    # A reader that was cut off hears some events twice, later than the first time.
    told += [told[position % len(told)] for position in doubled]
    assert painted(*told) == ["".join(attempts[-1]) + "." for attempts in steps]


def test_tools_notices_messages_and_the_end_are_told():
    start = event("tool_start", "1:tool:0:start", call_id="c", name="filer_read", arguments={"path": "a"})
    done = event("tool_complete", "1:tool:0:complete", call_id="c", name="filer_read", status="success", duration_ms=3)
    assert changes(
        start,
        done,
        event("notice", "n", text="Careful."),
        event("message", "message", text="Hi"),
        event("done", "done", success=True),
    ) == [
        ToolStarted("c", "filer_read", {"path": "a"}),
        ToolFinished("c", "filer_read", True, "", 3.0),
        NoticeAdded("Careful."),
        ReplySent("Hi"),
        TurnViewEnded(),
    ]


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({"text": "x", "error": {"code": "provider_refused", "message": "The key is wrong.", "hint": "Set it."}},
         "The key is wrong.", "Set it."),
        ({"text": "Only text."}, "Only text.", None),
        ({}, "The turn failed.", None),
    ],
)  # fmt: skip
def test_a_failure_says_what_is_known_of_it(data: dict[str, object], message: str, hint: str | None):
    (failed,) = changes(event("error", "error", **data))
    assert isinstance(failed, TurnViewFailed)
    assert (failed.error.message, failed.error.hint) == (message, hint)


@pytest.mark.req("POL-03")
def test_a_call_that_waits_is_told_as_the_question_and_as_no_outcome():
    waiting = event(
        "tool_complete", "1:tool:0:complete", name="send", call_id="c", status="waiting", approval_id="apr_1"
    )
    asked = event("approval", "approval:apr_1", approval_id="apr_1", tool="send", arguments={})
    assert changes(waiting, asked, event("message", "message", text="May I?")) == [
        ApprovalAsked("apr_1"),
        ReplySent("May I?"),
    ]


@pytest.mark.req("THR-05")
def test_a_long_wait_is_one_line_and_what_has_no_words_is_none():
    wait = {"attempt": 4, "attempts": 6, "seconds": 10.2, "retryAt": "2026-11-18T09:00:00.000+00:00"}
    told = changes(
        event("notice", "model-retry:1:1", **{**wait, "seconds": 1.5}),
        event("notice", "model-retry:1:3", text="No answer. The next try is in 10 seconds.", **wait),
        event("notice", "progress:1", progress="page 2", call_id="a"),
    )
    assert told == [NoticeAdded("No answer. The next try is in 10 seconds.")]
