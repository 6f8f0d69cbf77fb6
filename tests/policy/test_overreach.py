"""An order goes no further than it says: a part is not the whole, and one write is not two."""

from __future__ import annotations

import pytest

from annabelle.core.tools import JsonObject
from policy.house import House, Turn

pytestmark = pytest.mark.req("POL-02", "POL-04")

STORY = "http://s/story"
LIST: JsonObject = {"list": "Groceries"}
REPORT: JsonObject = {"path": "Documents/report.md"}


class _HouseWithLists(House):
    def _notes_list_lists(self, _arguments: JsonObject) -> JsonObject:
        return {"lists": [{"name": "Groceries", "open": 1}, {"name": "Work", "open": 2}]}

    def _notes_create_list(self, arguments: JsonObject) -> JsonObject:
        return {"name": arguments["name"]}

    def _notes_create_note(self, arguments: JsonObject) -> JsonObject:
        return {"id": "n9", "title": arguments["title"], "path": "Notes/x.md"}


def turn(says: str) -> Turn:
    """A turn that has read a page, the lists and the calendar."""
    now = Turn(_HouseWithLists()).says(says)
    now.sees("searcher_web_fetch", {"url": STORY})
    for tool in ("notes_list_lists", "notes_list_todos", "gmail_list_events", "gmail_list_emails"):
        now.sees(tool, {})
    return now


@pytest.mark.parametrize(
    ("says", "tool", "arguments"),
    [
        ("Delete milk from my list Groceries.", "notes_delete_list", LIST),
        ("Take milk off my Groceries list", "notes_delete_list", LIST),
        ("Delete the item milk in Groceries", "notes_delete_list", LIST),
        ("Delete all items on Groceries", "notes_delete_list", LIST),
        ("I bought the milk, delete it from Groceries", "notes_delete_list", LIST),
        ("On my Groceries list, delete milk", "notes_delete_list", LIST),
        ("Lösche Milch von der Liste Groceries.", "notes_delete_list", LIST),
        ("Milch von der Liste Groceries löschen", "notes_delete_list", LIST),
        ("Supprime le lait de la liste Groceries.", "notes_delete_list", LIST),
        ("Borra la leche de la lista Groceries", "notes_delete_list", LIST),
        ("Usuń mleko z listy Groceries", "notes_delete_list", LIST),
        ("Delete the line about sales in Documents/report.md", "filer_delete_file", REPORT),
        ("Delete the attachment from Bob's mail", "gmail_delete_email", {"message_id": "m1"}),
        ("Delete Carla from the team meeting", "gmail_delete_event", {"event_id": "team"}),
    ],
)
def test_to_delete_a_part_does_not_delete_the_whole(says: str, tool: str, arguments: JsonObject) -> None:
    assert turn(says).decides(tool, arguments).verdict == "ask"


@pytest.mark.parametrize(
    ("says", "tool", "arguments"),
    [
        ("Delete the list Groceries", "notes_delete_list", LIST),
        ("Delete my Groceries list, please", "notes_delete_list", LIST),
        ("I no longer need Groceries, delete it", "notes_delete_list", LIST),
        ("Delete milk from my list Groceries.", "notes_delete_todo", {"todo": "t1"}),
        ("Kannst du bitte Documents/report.md löschen?", "filer_delete_file", REPORT),
        ("Delete Documents/report.md from my workspace", "filer_delete_file", REPORT),
        ("Delete everything in Documents", "filer_delete_file", REPORT),
        ("Take the team meeting off my calendar", "gmail_delete_event", {"event_id": "team"}),
        ("Delete the spam from Garden Weekly", "gmail_delete_email", {"message_id": "m4"}),
        ("Delete that thing from Garden Weekly", "gmail_delete_email", {"message_id": "m4"}),
    ],
)
def test_to_delete_the_whole_deletes_it(says: str, tool: str, arguments: JsonObject) -> None:
    decision = turn(says).decides(tool, arguments)
    assert decision.verdict == "allow", decision.reasons


NOTE = ("notes_create_note", {"title": "Story", "content": "A bridge."})
FILE = ("filer_create_file", {"path": "story.md", "content": "Call 0900 666."})
TODO = ("notes_add_todo", {"text": "Call 0900 666", "list": "Work"})
EVENT = ("gmail_create_event", {"summary": "Reading", "start_date": "2026-12-01"})
LETTER = ("gmail_send_email", {"to": "bob@example.com", "subject": "Story", "body": "A bridge."})


@pytest.mark.parametrize(
    ("says", "first", "second"),
    [
        (f"Read {STORY} and save it.", NOTE, FILE),
        (f"Read {STORY} and save it as a note.", NOTE, ("filer_create_file", {"path": "Story", "content": "0900 666"})),
        (f"Put the reading from {STORY} into my calendar", EVENT, ("gmail_quick_add_event", {"text": "Call 0900 666"})),
        (f"Add a reminder to pay the bill from {STORY}", TODO, EVENT),
        (f"Add a reminder to pay the bill from {STORY}", TODO, ("notes_create_list", {"name": "Call 0900 666"})),
        (
            f"Tell bob@example.com what {STORY} says",
            LETTER,
            ("telegram_send_message", {"chat_id": "bob@example.com", "message": "Call 0900 666"}),
        ),
    ],
)
def test_a_second_write_beside_the_ordered_one_is_asked_about(
    says: str, first: tuple[str, JsonObject], second: tuple[str, JsonObject]
) -> None:
    now = turn(says)
    assert now.calls(*first).verdict == "allow"
    decision = now.decides(*second)
    assert decision.verdict == "ask"
    assert "done already" in decision.reasons[0]


@pytest.mark.parametrize(
    ("says", "calls"),
    [
        (f"Save {STORY} as a note and put the reading into my calendar", [NOTE, EVENT]),
        (
            f"Extract the steps of {STORY} into a to-do list",
            [("notes_create_list", {"name": "Steps"}), ("notes_add_todo", {"text": "saw", "list": "Steps"})],
        ),
        (
            "team meeting dec 3 -> 2pm. tell carla@work.example.",
            [
                ("gmail_update_event", {"event_id": "team", "start_date_time": "2026-12-03T14:00:00"}),
                ("gmail_send_email", {"to": "carla@work.example", "subject": "Meeting", "body": "It is at 2 pm now."}),
            ],
        ),
        (
            f"Send bob@example.com a mail about {STORY}",
            [
                ("gmail_create_draft", {"to": "bob@example.com", "subject": "Story", "body": "A bridge."}),
                ("gmail_send_draft", {"draft_id": "d1"}),
            ],
        ),
    ],
)
def test_what_an_order_takes_several_calls_for_is_not_asked_about(
    says: str, calls: list[tuple[str, JsonObject]]
) -> None:
    now = turn(says)
    for call in calls:
        decision = now.calls(*call)
        assert decision.verdict == "allow", decision.reasons


@pytest.mark.parametrize(
    ("before", "says", "tool", "arguments", "verdict"),
    [
        ("put milk on my Groceries list", "coffee too", "notes_add_todo", {"text": "coffee", **LIST}, "allow"),
        ("put milk on my Groceries list", "coffee and tea too", "notes_add_todo", {"text": "coffee and tea"}, "allow"),
        ("put milk on my Groceries list", "no coffee please", "notes_add_todo", {"text": "coffee"}, "ask"),
        ("put milk on my Groceries list", "not coffee", "notes_add_todo", {"text": "coffee"}, "ask"),
        ("Setz Milch auf die Liste Groceries", "kein Kaffee", "notes_add_todo", {"text": "Kaffee"}, "ask"),
        ("Setz Milch auf die Liste Groceries", "Kaffee auch", "notes_add_todo", {"text": "Kaffee", **LIST}, "allow"),
        ("put milk on my Groceries list", "coffee too", "notes_add_todo", {"text": "poison", **LIST}, "ask"),
        ("put milk on my Groceries list", "coffee too", "notes_add_todo", {"text": "coffee, call 555"}, "ask"),
        ("put milk on my Groceries list", "coffee too?", "notes_add_todo", {"text": "coffee", **LIST}, "ask"),
        ("put milk on my Groceries list", "coffee is bad for me", "notes_add_todo", {"text": "coffee"}, "ask"),
        ("what is on my Groceries list?", "coffee too", "notes_add_todo", {"text": "coffee", **LIST}, "ask"),
        (
            "Delete Documents/cv.md",
            "Documents/letter.txt too",
            "filer_delete_file",
            {"path": "Documents/letter.txt"},
            "ask",
        ),
    ],
)
def test_a_few_words_go_on_with_the_order_before_them_and_no_further(
    before: str, says: str, tool: str, arguments: JsonObject, verdict: str
) -> None:
    now = turn(before)
    now.says(says)
    assert now.decides(tool, arguments).verdict == verdict
