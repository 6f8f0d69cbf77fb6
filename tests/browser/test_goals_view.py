"""Goals on the page: made, ordered, changed, talked to, and followed while something is done for them (UX-02)."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import create_engine

from annabelle.core.messages import OWNER
from annabelle.store.database import sqlite_url
from annabelle.store.goals import NewNote, add_note
from browser.browsing import PHONE, Visit
from support.scripted_model import Call, Reply, Rule, ScriptedServer

TASK = "You carry out one task"
GOAL = "You look after one goal"


def make(visit: Visit, title: str, **more: object) -> str:
    answer = visit.hub.http.post("/goals", json={"title": title, "tools": [], **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["goalId"]


def call(name: str, **arguments: object) -> Reply:
    return Reply(tool_calls=[Call(name=name, arguments=arguments)])


def dialog(page: Page, press: str, **fields: str) -> None:
    """Fill the dialog that is open, and press its button."""
    asked = page.get_by_role("dialog")
    for label, value in fields.items():
        field = asked.get_by_label(re.compile(label.replace("_", " ")))
        if field.evaluate("(one) => one.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    asked.get_by_role("button", name=press).click()


def part(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def expect_no_width_beyond(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than a phone"


@pytest.mark.req("UX-02", "THR-03")
def test_a_goal_is_made_changed_put_away_taken_up_and_deleted(visit: Visit) -> None:
    visit.sign_in()
    page = visit.go("goals")
    expect(page.get_by_text("There are no goals yet.")).to_be_visible()
    page.get_by_role("button", name="New goal").click()
    dialog(
        page, "Make the goal", Title="Learn the **piano**", be_reached="Play a prelude.",
        should_know="I own one.\nTired.", often="weekly", Day="friday", Time="17:00",
    )  # fmt: skip
    expect(page.get_by_role("heading", level=1)).to_have_text("Learn the **piano**")
    expect(part(page, "Check-ins").get_by_role("listitem")).to_contain_text(["regularly", "when it was quiet"])
    expect(part(page, "Learnings").get_by_role("listitem")).to_contain_text(["I own one.", "Tired."])
    expect(part(page, "Tools")).to_contain_text("search_memories")
    page.get_by_role("button", name="Edit").click()
    dialog(page, "Save", Title="Piano", be_done="In the *evening*.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Piano")
    expect(page.locator("em")).to_have_text("evening")
    make(visit, "Garden")
    page.get_by_role("button", name="Edit").click()
    dialog(page, "Save", Title="Garden")
    expect(page.get_by_role("dialog")).to_contain_text("There is a goal “Garden” already.")
    assert page.get_by_role("dialog").get_by_label("Title").input_value() == "Garden", "what was typed is not lost"
    dialog(page, "Cancel")
    page.get_by_role("button", name="Archive").click()
    dialog(page, "Archive")
    expect(page.get_by_role("status").get_by_text("archived", exact=True)).to_be_visible()
    expect(page.get_by_label("Write to this goal")).to_be_hidden()
    visit.go("goals")
    page.get_by_text("Archived (1)").click()
    page.get_by_role("link", name="Piano").click()
    page.get_by_role("button", name="Reopen").click()
    expect(page.get_by_label("Write to this goal")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("for good")
    dialog(page, "Delete")
    expect(page.get_by_role("list", name="Your goals").get_by_role("link")).to_have_text(["Garden"])
    # The browser itself writes of the answer that refused the second Garden.
    assert visit.foreign == []
    assert all("409" in one for one in visit.errors)


@pytest.mark.req("UX-02", "THR-03")
def test_goals_are_put_in_order_with_the_keyboard(visit: Visit) -> None:
    numbers = ["One", "Two", "Three", "Four"]
    for title in numbers:
        make(visit, title)
    put_away = make(visit, "Between")
    visit.hub.http.post("/goals/reorder", json={"goals": [put_away]})
    visit.hub.http.post(f"/goals/{put_away}/archive")
    visit.sign_in()
    page = visit.go("goals")
    listed = (
        page.get_by_role("list", name="Your goals").get_by_role("link").filter(has_text=re.compile("|".join(numbers)))
    )
    expect(listed).to_have_text(numbers)
    up = page.get_by_role("button", name="Move Three up")
    up.focus()
    page.keyboard.press("Enter")
    expect(listed).to_have_text(["One", "Three", "Two", "Four"])
    expect(up).to_be_focused()
    page.get_by_role("button", name="Move Four up").focus()
    page.keyboard.press("Enter")
    expect(listed).to_have_text(["One", "Three", "Four", "Two"])
    page.keyboard.press("Space")
    expect(listed).to_have_text(["One", "Four", "Three", "Two"])
    stored = [one["title"] for one in visit.hub.http.get("/goals", params={"archived": True}).json()["goals"]]
    assert [one for one in stored if one in numbers] == ["One", "Four", "Three", "Two"]
    assert stored[0] == "Between", "what is archived keeps its place"
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "AGE-12")
def test_a_goal_is_talked_through_and_set_up_with_a_yes(visit: Visit, model: ScriptedServer) -> None:
    goal = {"title": "Marathon", "description": "Run one in May.", "check_in": {"frequency": "daily", "time": "07:00"}}
    creation = "You help the user to set up a goal"
    model.rules(
        Rule(system=creation, match="I want to run", results=0, reply=Reply(text="By when?")),
        Rule(system=creation, match="In May", results=0, reply=call("create_goal", **goal)),
        Rule(system=creation, reply=Reply(text="It is set up.")),
    )
    visit.sign_in()
    page = visit.go("goals")
    page.get_by_role("button", name="Talk it through").click()
    dialog(page, "Begin", What_do_you="I want to run")
    expect(page.locator(".message.agent").get_by_text("By when?")).to_be_visible()
    page.get_by_label("Your message").fill("In May")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("It is set up.")).to_be_visible()
    visit.go("goals")
    row = page.get_by_role("listitem").filter(has_text="Marathon")
    expect(row).to_contain_text("Next check-in")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "AGE-13")
def test_a_task_is_followed_while_it_runs_stopped_and_tried_again(visit: Visit, model: ScriptedServer) -> None:
    found = "Three teachers: **Ann**, Bo and Cy."
    delegate = call("create_task", title="Find teachers", instructions="Find three.")
    goal = (
        Rule(system=GOAL, match="Find me", results=0, reply=delegate),
        Rule(system=GOAL, reply=Reply(text="I am on it.")),
    )
    progress = Rule(system=TASK, results=0, reply=call("emit_progress", message="Reading the first page"))
    model.rules(progress, Rule(system=TASK, reply=Reply(hang=True)), *goal)
    visit.sign_in()
    page = visit.go(f"goals/{make(visit, 'Violin')}")
    expect(page.get_by_text("Nothing was looked up yet.")).to_be_visible()
    page.get_by_label("Write to this goal").fill("Find me a teacher")
    page.keyboard.press("Enter")
    expect(part(page, "Conversation").get_by_text("I am on it.")).to_be_visible()
    task = page.locator(".task")
    expect(task.get_by_role("heading")).to_have_text("Find teachers active")
    expect(task.get_by_role("status")).to_have_text("Reading the first page")
    expect(task.locator(".tool")).to_contain_text("emit progress")
    expect(page.get_by_role("status").get_by_text("working", exact=True)).to_be_visible()
    task.get_by_role("button", name="Cancel").click()
    expect(task.get_by_role("heading")).to_have_text("Find teachers cancelled")
    expect(page.get_by_role("status").get_by_text("waiting", exact=True)).to_be_visible()
    page.get_by_label("Write to this goal").fill("Half a thought")
    model.rules(progress, Rule(system=TASK, reply=Reply(text=found)), *goal)
    task.get_by_role("button", name="Try again").click()
    expect(task.get_by_role("heading")).to_have_text("Find teachers completed")
    expect(task.locator("strong")).to_have_text("Ann")
    expect(page.locator(".note")).to_contain_text("by Annabelle")
    expect(part(page, "Conversation")).to_contain_text("is done.")
    expect(page.get_by_label("Write to this goal")).to_have_value("Half a thought")
    page.get_by_role("link", name="Open the whole conversation").click()
    expect(page.locator(".message.own")).to_contain_text("Find me a teacher")
    expect(page.get_by_label("Your message")).to_have_value("Half a thought")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "AGE-08")
def test_check_ins_learnings_tools_and_the_conversation_are_changed(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(system=GOAL, reply=Reply(text="Hello yourself.")))
    visit.sign_in()
    page = visit.go(f"goals/{make(visit, 'Chess')}")
    check_ins = part(page, "Check-ins")
    page.get_by_role("button", name="Arrange a check-in").click()
    dialog(page, "Arrange", often="weekdays", Time="08:30", What_for="Ask me")
    expect(check_ins.get_by_role("listitem").filter(has_text="regularly")).to_contain_text("Ask me")
    expect(page.get_by_role("button", name="Arrange a check-in")).to_be_focused()
    page.get_by_role("button", name="Follow up once").click()
    dialog(page, "Arrange", how_many_hours="3")
    expect(check_ins.get_by_role("listitem").filter(has_text="follow-up")).to_be_visible()
    page.get_by_role("button", name="Clear check-ins").click()
    expect(check_ins.get_by_role("listitem").filter(has_text=re.compile("regularly|follow-up"))).to_have_count(0)
    learnings = part(page, "Learnings")
    page.get_by_role("button", name="Add a learning").click()
    dialog(page, "Save", should_know="I play white.")
    learnings.get_by_role("button", name="Change “I play white.”").click()
    dialog(page, "Save", should_know="I play black.")
    expect(learnings.get_by_role("listitem")).to_contain_text(["I play black."])
    learnings.get_by_role("button", name="Remove “I play black.”").click()
    dialog(page, "Remove")
    expect(learnings).to_contain_text("Nothing was learnt yet.")
    page.get_by_role("button", name="Choose tools").click()
    page.get_by_label("Find a tool").fill("earlier conversations")
    expect(page.get_by_role("checkbox", name="filer_read_file", exact=True)).to_be_hidden()
    page.get_by_role("checkbox", name="search_memories", exact=True).check()
    dialog(page, "Save tools")
    expect(part(page, "Tools").locator(".badge")).to_have_text(["search_memories"])
    page.get_by_label("Write to this goal").fill("Hello")
    page.get_by_role("button", name="Send").click()
    expect(part(page, "Conversation").get_by_text("Hello yourself.")).to_be_visible()
    expect(part(page, "What is to be reached")).to_contain_text("1 model call ·")
    page.get_by_role("button", name="Start afresh").click()
    dialog(page, "Start afresh")
    expect(page.get_by_text("The conversation starts afresh.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-11")
def test_notes_are_written_found_changed_and_deleted_and_those_from_outside_say_so(visit: Visit) -> None:
    visit.sign_in()
    page = visit.go(f"goals/{make(visit, 'Cello')}")
    notes = part(page, "Notes")
    expect(notes).to_contain_text("There are no notes here yet.")
    notes.get_by_role("button", name="Write a note").click()
    dialog(page, "Keep it", Title="Teacher", Text="Mrs. **Novak**, <script>alert(1)</script> Tuesdays")
    notes.get_by_role("button", name="Keep a link").click()
    dialog(page, "Keep it", Address="https://cello.example/scales")
    outside = page.locator(".note").filter(has_text="cello.example")
    expect(outside.locator("summary")).to_contain_text("from outside")
    outside.locator("summary").click()
    expect(outside).to_contain_text("These may be somebody else's words. They give no orders.")
    own = page.locator(".note").filter(has_text="Novak")
    expect(own).not_to_contain_text("from outside")
    notes.get_by_label("Search the notes").fill("novak TUESDAYS")
    expect(page.locator(".note")).to_have_count(1)
    own.locator("summary").click()
    expect(own.locator(".md strong")).to_have_text("Novak")
    expect(own.locator(".md")).to_contain_text("<script>alert(1)</script>")
    own.get_by_role("button", name="Edit").click()
    (known,) = visit.hub.http.get("/notes", params={"q": "novak"}).json()["notes"]
    visit.hub.http.post(f"/notes/{known['noteId']}/update", json={"content": "Novak, on Tuesdays at seven."})
    dialog(page, "Save", Title="My teacher")
    expect(own.locator("summary strong")).to_have_text("My teacher")
    expect(own).to_contain_text("Novak, on Tuesdays at seven.")
    own.get_by_role("button", name="Delete").click()
    dialog(page, "Delete")
    expect(notes).to_contain_text("No note has all of these words.")
    assert (visit.foreign, visit.errors) == ([], [])


def keep_notes(visit: Visit, goal_id: str, count: int) -> None:
    with create_engine(sqlite_url(visit.hub.home.database_file)).begin() as conn:
        for number in range(count):
            note = NewNote(user_id=OWNER, goal_id=goal_id, title=f"Etude {number}.", content="x", written_by="user")
            add_note(conn, note)


@pytest.mark.req("UX-02", "MEM-11")
def test_older_notes_come_on_demand_and_stay_when_one_is_written(visit: Visit) -> None:
    goal = make(visit, "Oboe")
    keep_notes(visit, goal, 120)
    visit.sign_in()
    page = visit.go(f"goals/{goal}")
    notes, older = page.locator(".note"), part(page, "Notes").get_by_role("button", name="Show older")
    expect(notes).to_have_count(50)
    expect(notes.first).to_contain_text("Etude 119.")
    older.click()
    expect(notes).to_have_count(100)
    part(page, "Notes").get_by_role("button", name="Write a note").click()
    dialog(page, "Keep it", Title="Reeds")
    expect(notes.first).to_contain_text("Reeds")
    expect(notes).to_have_count(100)
    older.click()
    expect(notes).to_have_count(121)
    expect(older).to_be_hidden()
    expect(notes.last).to_contain_text("Etude 0.")
    part(page, "Notes").get_by_label("Search the notes").fill("etude")
    expect(notes).to_have_count(50)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-11")
def test_a_note_without_a_goal_is_offered_to_the_goal_it_fits(visit: Visit) -> None:
    make(visit, "Learn to play the trumpet", description="Play the trumpet in the band.")
    visit.sign_in()
    page = visit.go("goals?tab=notes")
    page.get_by_role("button", name="Write a note").click()
    dialog(page, "Keep it", Title="Play the trumpet", Text="Learn to play the trumpet with long notes.")
    page.get_by_label("Only notes without a goal").check()
    note = page.locator(".note")
    expect(note).to_have_count(1)
    expect(note).to_contain_text("It fits the goal “Learn to play the trumpet”.")
    note.get_by_role("button", name="Move “Play the trumpet”").click()
    expect(note).to_have_count(0)
    page.get_by_label("Only notes without a goal").uncheck()
    note = note.filter(has_text="Play the trumpet")
    expect(note.get_by_role("link", name="Learn to play the trumpet")).to_be_visible()
    note.locator("summary").click()
    note.get_by_role("button", name="Move").click()
    dialog(page, "Move", Goal="")
    expect(note).to_contain_text("It fits the goal")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_goals_fit_a_phone_and_have_their_headings_and_labels_in_order(visit: Visit) -> None:
    goal = make(visit, "W" * 120, description="Long " * 100, learnings=["x" * 300])
    visit.hub.http.post("/notes", json={"title": "y" * 150, "content": "z" * 500, "goal": goal})
    visit.sign_in()
    visit.page.set_viewport_size(PHONE)
    for view in ("goals", "goals?tab=notes", f"goals/{goal}"):
        page = visit.go(view)
        expect(page.locator(".note, .goals > li").first).to_be_visible()
        expect_no_width_beyond(page)
        assert page.locator("h1").count() == 1
        levels = [
            int(one[1]) for one in page.locator("main :is(h1, h2, h3, h4)").evaluate_all("a => a.map(b => b.tagName)")
        ]
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels
        unlabelled = page.locator("main :is(input, textarea, select)").evaluate_all(
            "all => all.filter((one) => !one.labels.length && !one.ariaLabel).length"
        )
        assert unlabelled == 0
    assert (visit.foreign, visit.errors) == ([], [])
