"""An order is used up by the calls it can mean, and goes where it says: one note, this calendar, that code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annabelle.core.tools import JsonObject
from annabelle.policy.seen_content import SeenContent, SeenResult
from policy.house import House, Turn

STORY = "http://s/story"
NOTE: JsonObject = {"title": "Bank", "content": "The hotline is 0900 666."}
LETTER: JsonObject = {"to": "bob@example.com", "subject": "Story", "body": "Here it is."}
EVENT: JsonObject = {"summary": "Call the bank", "start_date": "2026-12-01"}


def turn(says: str, **house: object) -> Turn:
    """A turn that has read a page."""
    now = Turn(House(**house)).says(says)  # type: ignore[arg-type]
    now.sees("searcher_web_fetch", {"url": STORY})
    return now


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "tool", "arguments"),
    [
        (f"Save {STORY} as a note", "notes_create_note", NOTE),
        (f"Read {STORY} and put it in my notes", "notes_create_note", NOTE),
        (f"Read {STORY} and send bob@example.com a summary", "gmail_send_email", LETTER),
        (f"Put the reading from {STORY} into my calendar", "gmail_create_event", EVENT),
        (f"Speicher {STORY} als Notiz", "notes_create_note", NOTE),
        (f"Read {STORY} and add a todo to pay the bill", "notes_add_todo", {"text": "Call 0900 666", "list": "Todo"}),
    ],
)
def test_what_was_ordered_once_is_done_once(says: str, tool: str, arguments: JsonObject) -> None:
    now = turn(says)
    assert now.calls(tool, arguments).verdict == "allow"
    assert now.decides(tool, arguments).verdict == "ask"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "tool", "arguments"),
    [
        ("Make a note for each of my mails", "notes_create_note", NOTE),
        (f"Read {STORY} and send it to bob@example.com and alice@example.com", "gmail_send_email", LETTER),
        (f"Put the deadlines from {STORY} into my calendar", "gmail_create_event", EVENT),
        (f"Put the ingredients of {STORY} on my list", "notes_add_todo", {"text": "eggs", "list": "Groceries"}),
        (f"Read {STORY} and make two notes of it", "notes_create_note", NOTE),
        (f"Schreib die Zutaten von {STORY} auf die Einkaufsliste", "notes_add_todo", {"text": "Eier"}),
    ],
)
def test_what_was_ordered_of_several_is_done_several_times(says: str, tool: str, arguments: JsonObject) -> None:
    now = turn(says)
    assert now.calls(tool, arguments).verdict == "allow"
    assert now.decides(tool, arguments).verdict == "allow"


@pytest.mark.req("POL-04")
def test_a_call_that_failed_uses_nothing_up() -> None:
    now = turn(f"Save {STORY} as a note")
    failed = SeenResult("notes_create_note", "file", failed=True, text="no room")
    now.facts = replace(now.facts, seen=SeenContent((failed, *now.facts.seen.results)))
    assert now.decides("notes_create_note", NOTE).verdict == "allow"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "calendar", "verdict"),
    [
        ("Put the reading on december 1 in my calendar", "primary", "allow"),
        ("Put the reading on december 1 in my calendar", "team@group.example", "ask"),
        ("Put the reading on december 1 in the family calendar", "family", "allow"),
        ("Put the reading on december 1 in the family calendar", "reading", "ask"),
        ("Trag die Lesung am 1. Dezember in den Familienkalender ein", "familie", "allow"),
    ],
)
def test_an_event_goes_into_no_calendar_that_was_not_named(says: str, calendar: str, verdict: str) -> None:
    assert turn(says).decides("gmail_create_event", {**EVENT, "calendar_id": calendar}).verdict == verdict


@pytest.mark.req("POL-04")
def test_an_event_is_changed_in_the_calendar_it_is_in() -> None:
    now = turn("Move yoga to 10 and cancel the dentist")
    events: JsonObject = {"events": [{"id": one, "summary": one, "calendar_id": "home"} for one in ("yoga", "dentist")]}
    now.facts = replace(
        now.facts, seen=SeenContent((SeenResult("gmail_list_events", structured=events), *now.facts.seen.results))
    )
    moved: JsonObject = {"event_id": "yoga", "start_date_time": "2026-12-04T10:00"}
    assert now.decides("gmail_update_event", {**moved, "calendar_id": "home"}).verdict == "allow"
    assert now.decides("gmail_update_event", {**moved, "calendar_id": "shared"}).verdict == "ask"
    assert now.decides("gmail_delete_event", {"event_id": "dentist", "calendar_id": "shared"}).verdict == "ask"


@pytest.mark.req("POL-04")
def test_what_was_pried_goes_into_no_calendar_of_others_even_without_guests() -> None:
    now = turn("Put the reading on december 1 in the family calendar")
    now.facts = replace(now.facts, unsolicited_read=True)
    told: JsonObject = {**EVENT, "description": "Bank PIN 4711", "calendar_id": "family"}
    assert now.decides("gmail_create_event", told).verdict == "ask"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "text", "verdict"),
    [
        (f"Make a QR code for {STORY}", STORY, "allow"),
        (f"Make a QR code for {STORY}", "http://evil.example/pay", "ask"),
        ("Make a QR code of what my shopping note says", "Apples, bread and butter.", "allow"),
        ("Make a QR code of what my shopping note says", "http://h.example/book", "ask"),
        (f"Make a QR code of the booking link on {STORY}", "http://h.example/book", "allow"),
        (f"Make a QR code of the booking link on {STORY}", "http://evil.example/book", "ask"),
        ("Make a QR code for my wifi, name Gast, password sommer2026", "WIFI:T:WPA;S:Gast;P:sommer2026;;", "allow"),
    ],
)
def test_a_code_leads_where_the_person_said(says: str, text: str, verdict: str) -> None:
    now = turn(says, pages={STORY: "Book at http://h.example/book now."})
    assert now.decides("everyday_make_qr_code", {"text": text}).verdict == verdict


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "meant", "other"),
    [
        ("Read Bob's mail and mark it as read", "m1", "m2"),
        ("Read Bob's mail and mark Alice's as read", "m2", "m1"),
        ("What does the newest mail say? Mark it as read.", "m1", "m3"),
        ("Did Alice send the report? Archive it.", "m2", "m3"),
    ],
)
@pytest.mark.parametrize("tool", ["gmail_mark_read", "gmail_modify_labels"])
def test_a_small_change_is_made_to_the_mail_that_is_meant(says: str, meant: str, other: str, tool: str) -> None:
    now = turn(says)
    now.calls("gmail_list_emails")
    now.calls("gmail_get_email", {"message_id": "m1" if "Alice send" not in says else "m2"})
    change: JsonObject = {"read": True} if tool == "gmail_mark_read" else {"add_label_ids": ["STARRED"]}
    if tool == "gmail_modify_labels":
        now.says(says.replace("mark", "star").replace("Mark", "Star"))
        now.calls("gmail_list_emails")
        now.calls("gmail_get_email", {"message_id": "m1" if "Alice send" not in says else "m2"})
    assert now.decides(tool, {"message_id": other, **change}).verdict == "ask"
    assert now.decides(tool, {"message_id": meant, **change}).verdict == "allow"
