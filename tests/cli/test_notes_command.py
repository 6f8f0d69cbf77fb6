"""`annabelle notes`: notes kept, found, moved and deleted from the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from annabelle.core.home import Home
from annabelle.store.database import sqlite_url
from annabelle.store.goals import NewGoal, add_goal
from cli.terminal import run


def read(running: dict[str, str], *words: str) -> dict[str, object]:
    done = run(running, "notes", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def have_goal(running: dict[str, str], title: str) -> str:
    home = Home(Path(running["ANNABELLE_HOME"]))
    with create_engine(sqlite_url(home.database_file)).begin() as conn:
        return add_goal(conn, NewGoal(user_id="owner", agent_id="annabelle", title=title)).id


@pytest.mark.req("MEM-11", "THR-03")
def test_a_note_is_kept_offered_to_a_goal_moved_found_and_deleted(running: dict[str, str]) -> None:
    assert "There are no notes yet." in run(running, "notes").stdout
    goal = have_goal(running, "Learn to play the piano")
    kept = run(running, "notes", "add", "Teacher", "My piano teacher is Mrs. Novak").stdout
    [note] = read(running, "list")["notes"]
    assert note["title"] == "Teacher"
    offer = f"Fits your goal “Learn to play the piano”: annabelle notes move {note['noteId']} {goal}"
    assert f"Kept as {note['noteId']}: Teacher. {offer}" in kept
    assert offer in run(running, "notes", "show", note["noteId"]).stdout
    assert goal in run(running, "notes", "move", note["noteId"], "learn to play the PIANO").stdout
    assert "Fits your goal" not in run(running, "notes", "show", note["noteId"]).stdout
    assert note["noteId"] in run(running, "notes", "search", "novak", "piano", "--goal", goal).stdout
    assert "No note has these words." in run(running, "notes", "search", "violin").stdout
    assert "It belongs to no goal now." in run(running, "notes", "move", note["noteId"]).stdout
    assert "Deleted: Teacher." in run(running, "notes", "delete", note["noteId"]).stdout
    gone = run(running, "notes", "show", note["noteId"])
    assert gone.returncode != 0
    assert note["noteId"] in gone.stderr


@pytest.mark.req("MEM-11", "THR-03")
def test_older_notes_are_listed_page_by_page(running: dict[str, str]) -> None:
    ids = [str(read(running, "add", f"Older {number}")["noteId"]) for number in range(3)]
    page = run(running, "notes", "list", "--limit", "2").stdout
    assert f"There may be more: --before {ids[1]}" in page
    assert ids[0] not in page
    last = run(running, "notes", "list", "--before", ids[1]).stdout
    assert ids[0] in last
    assert "There may be more" not in last
    assert read(running, "search", "older", "--limit", "1")["before"] == ids[2]
    assert "No older note has these words." in run(running, "notes", "search", "older", "--before", ids[0]).stdout
    assert "There are no older notes." in run(running, "notes", "list", "--before", ids[0]).stdout


def test_a_link_that_cannot_be_read_is_kept_and_said(running: dict[str, str]) -> None:
    said = run(running, "notes", "add", "--url", "https://example.org/scales").stdout
    assert "https://example.org/scales" in said
    assert "The page was not read: " in said
    [note] = read(running, "search", "scales")["notes"]
    shown = run(running, "notes", "show", note["noteId"]).stdout
    assert "With words from outside: https://example.org/scales" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "There is nothing to keep."),
        (("Title", "--url", "https://example.org/"), "A link brings its own title."),
        (("--url", "nonsense"), "This is not an address of the web."),
        (("x", "--goal", "Fly"), "There is no goal “Fly”."),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(
    running: dict[str, str], words: tuple[str, ...], sentence: str
) -> None:
    before = read(running)
    done = run(running, "notes", "add", *words)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert read(running) == before
