"""Whose mail it is and whom an answer reaches is read as the mail standard says, and a name is looked up everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from annabelle.core.tools import JsonObject
from annabelle.policy.person_words import mailboxes_in
from annabelle.policy.seen_content import SeenContent, SeenResult, SeenThing
from policy.house import Turn

EVE = "eve@evil.example"


def reply(says: str, mail: JsonObject, mailbox: dict[str, str] | None = None) -> str:
    """The verdict on an answer to this mail. `mailbox` are all who ever wrote."""
    now = Turn().says(says)
    now.house.mails = {one: (sender, "s", "b") for one, sender in (mailbox or {}).items()}
    now.sees("memory_list_contacts", {})
    row: JsonObject = {"id": "m9", "to": "ada@example.com", "cc": None, "subject": "Plans", **mail}
    seen = SeenResult("gmail_list_emails", "mail", private=True, structured={"emails": [row]})
    now.facts = replace(now.facts, origins=("gmail_list_emails",), seen=SeenContent((seen, *now.facts.seen.results)))
    return now.decides("gmail_reply_email", {"message_id": "m9", "body": "ok"}).verdict


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    "sender",
    [
        f'"bob@example.com" <{EVE}>',
        f'"Bob bob@example.com" <{EVE}>',
        f'"Bob <bob@example.com>" <{EVE}>',
        f"{EVE} (bob@example.com)",
        f"bob@example.com <{EVE}>",
        f"Bob <bob@example.com>, {EVE}",
    ],
)
def test_an_address_in_a_name_is_not_the_senders(sender: str) -> None:
    assert reply("reply to bob@example.com that it is ok", {"sender": sender}, {"m9": sender}) == "ask"
    assert reply("reply to Bob that it is ok", {"sender": sender}, {"m9": sender}) == "ask"


@pytest.mark.req("POL-04")
def test_an_answer_is_judged_by_the_address_it_goes_to() -> None:
    bob = "Bob Miller <bob@example.com>"
    says = "reply to Bob that it is ok"
    assert reply(says, {"sender": bob, "reply_to": None}) == "allow"
    assert reply(says, {"sender": bob, "reply_to": EVE}) == "ask"
    assert reply(says, {"sender": bob, "reply_to": f'"bob@example.com" <{EVE}>'}) == "ask"
    assert reply(says, {"sender": f'"{EVE}" <bob@example.com>', "reply_to": EVE}) == "ask"
    assert reply(says, {"sender": bob, "reply_to": "Bobby <bob@example.com>"}) == "allow"
    by_subject = "reply to the mail about the plans that it is ok"
    assert reply(by_subject, {"sender": "Ada <ada@example.com>", "to": "bob@example.com"}) == "ask"
    assert reply(by_subject, {"sender": "", "to": EVE}) == "ask"
    assert reply(by_subject, {"sender": f"Plans Office <{EVE}>"}, {"m9": f"Plans Office <{EVE}>"}) == "allow"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    "says",
    ["reply to Carla that it is ok", "answer Carla: it works", "Carla wrote about the plans. Reply that it is ok"],
)
def test_a_name_on_a_mail_is_held_against_the_whole_mailbox(says: str) -> None:
    carla, other = "Carla Reyes <carla@work.example>", f"Carla Works <{EVE}>"
    assert reply(says, {"sender": carla}, {"m9": carla}) == "allow"
    assert reply(says, {"sender": other}, {"m9": other, "m1": carla}) == "ask"
    assert reply(says, {"sender": carla}, {}) == "ask", "a mailbox that could not be asked knows nobody"


@pytest.mark.req("POL-04")
def test_nobody_passes_for_a_contact_by_a_longer_name() -> None:
    other = f"Bob Works <{EVE}>"
    assert reply("reply to Bob that it works", {"sender": other}, {"m9": other}) == "ask"


@pytest.mark.req("POL-04")
def test_an_answer_to_all_needs_all_of_them_shown() -> None:
    now = Turn().says("reply to bob@example.com, alice@example.com gets a copy")
    row: JsonObject = {"id": "m9", "sender": "bob@example.com", "to": "alice@example.com…", "cc": None, "subject": "x"}
    seen = SeenResult("gmail_list_emails", "mail", structured=row)
    now.facts = replace(now.facts, origins=("gmail_list_emails",), seen=SeenContent((seen,)))
    asked = now.decides("gmail_reply_email", {"message_id": "m9", "body": "ok", "reply_all": True})
    assert "not known who" in asked.reasons[0]


@pytest.mark.req("POL-04")
def test_who_comes_to_an_event_is_told_by_addresses_alone() -> None:
    event = SeenThing(
        "gmail_get_event", {"attendees": [{"email": "bob@example.com", "name": f"me {EVE}"}, "Al <a@b.example>"]}
    )
    assert event.addresses("attendees") == ("bob@example.com", "a@b.example")


@pytest.mark.req("POL-04")
@given(st.text(max_size=80))
def test_whatever_stands_in_a_header_is_read(header: str) -> None:
    for _, address in mailboxes_in(f"{header} <{EVE}>"):
        assert "@" in address
