"""What a person reads before they say yes: all of the call, and nothing in it that hides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from annabelle.hub.approvals.questions import SHOWN_CHARS, render_questions
from annabelle.store.approvals import Approval
from hub.approvals.house import House

AT = datetime(2026, 11, 15, 18, 0, tzinfo=UTC)
ASKED = Approval(
    id="apr_1", user_id="owner", agent_id="annabelle", thread_id="thr_1", message_id="msg_1", root_id="msg_1",
    call_id="msg_1:1:0", tool="gmail_send_email", arguments={"to": ["bob@example.com"], "body": "hello"}, digest="d",
    reasons=["You did not name bob@example.com."], state="pending", created_at=AT, expires_at=AT, decided_at=None,
    decided_by=None, edited=None, note=None, used_by=None, resumed_by=None,
)  # fmt: skip


@pytest.mark.req("POL-03")
def test_it_says_what_why_what_a_yes_means_and_until_when() -> None:
    assert render_questions([ASKED]) == (
        "May I call gmail send email?\n"
        '  to: ["bob@example.com"]\n'
        '  body: "hello"\n'
        "Why I ask: You did not name bob@example.com.\n"
        "A yes makes exactly this call, once. Without an answer by 2026-11-15 18:00 UTC nothing is done.\n"
        "Answer with: annabelle approvals approve apr_1 (or deny)"
    )


@pytest.mark.req("POL-03")
@pytest.mark.parametrize(
    "char", ["\x1b", "\r", "\n", "\u202e", "\u200b", "\u2066", "\U000e0041", "\u2028", "\x7f", "\u3164"]
)
def test_what_hides_or_turns_the_writing_around_is_spelled_out(char: str) -> None:
    asked = replace(ASKED, arguments={"to": f"bob{char}@example.com", f"na{char}me": 1}, reasons=[f"be{char}cause"])
    text = render_questions([asked])
    assert char not in text.replace("\n", "") if char == "\n" else char not in text
    assert len(text.splitlines()) == 6


@pytest.mark.req("POL-03")
async def test_what_is_long_is_cut_visibly_in_the_chat_and_whole_in_the_question(house: House) -> None:
    body = "start " + "x" * 5000 + " end"
    said = await house.say({"to": "bob", "body": body})
    text = said["reply"]["text"]
    (asked,) = await house.asked()
    assert len(text) < SHOWN_CHARS + 1000
    assert "start xxx" in text
    assert 'xxx end"' in text
    assert f"of {len(body) + 2} characters are left out here: annabelle approvals show {asked['id']}" in text
    assert asked["arguments"]["body"] == body
    (event, *_rest) = await house.events(said["messageId"])
    assert event["data"]["arguments"]["body"] == body


@pytest.mark.req("POL-06")
async def test_a_secret_in_a_call_is_not_shown_and_can_not_be_sent_back_masked(house: House) -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    said = await house.say({"to": "bob", "body": f"my key is {key}"})
    (asked,) = await house.asked()
    assert key not in str(asked)
    assert key not in str(said["reply"])
    refused = await house.answer(asked["id"], arguments=asked["arguments"] | {"to": "ann"})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "arguments")
    await house.outcome(await house.answer(asked["id"]))
    assert house.posted == [{"to": "bob", "body": f"my key is {key}"}]
