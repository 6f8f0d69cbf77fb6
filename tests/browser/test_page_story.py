"""One person goes through every view; what is done in one is seen in the later ones (UX-02)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from annabelle.core.messages import now
from browser.browsing import Visit, visiting
from hub.hubs import HubProcess, fresh_home
from support.network import free_port
from support.scripted_model import Call, Reply, Rule, ScriptedServer

PRICE = 0.25
TRAINS = "Which trains go to Berlin on Saturday?"
REMIND = "Remind me tomorrow at 9 to water the plants"
KNOWN, RIGHT = "My dog is called Rex", "My dog is called Bello"
BILL = "The total of the bill is 42 guilders."
GOAL, TASK = "You look after one goal", "You carry out one task"


@pytest.fixture
def hub(tmp_path: Path, model: ScriptedServer) -> Iterator[HubProcess]:
    """One that has the same address after a restart."""
    made = HubProcess(fresh_home(tmp_path), model.openai_url, ANNABELLE_PORT=str(free_port())).start()
    yield made
    made.end()


class Person:
    """Uses the page as one does: by its menu, its buttons and its forms."""

    def __init__(self, visit: Visit, model: ScriptedServer) -> None:
        self.visit, self.model, self.page = visit, model, visit.page
        self.home = visit.hub.home

    def open(self, title: str) -> None:
        """A view, from the menu."""
        self.page.get_by_role("navigation", name="Views").get_by_role("link", name=title).click()
        expect(self.page.locator(f".view.{title.lower()} h1").first).to_be_attached()

    def say(self, text: str) -> None:
        self.page.get_by_label("Your message").fill(text)
        self.page.get_by_role("button", name="Send", exact=True).click()

    def expect_answer(self, text: str) -> None:
        expect(self.page.locator(".message.agent:not(.live)").get_by_text(text).last).to_be_visible()
        expect(self.page.locator(".live")).to_have_count(0)

    def fill_dialog(self, press: str, **fields: str) -> None:
        asked = self.page.get_by_role("dialog")
        for label, value in fields.items():
            asked.get_by_label(re.compile(label.replace("_", " "))).fill(value)
        asked.get_by_role("button", name=press).click()

    def part(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def let_model_call(self, match: str, tool: str, arguments: dict[str, object], then: Reply) -> None:
        """Each of its two replies has the same price."""
        called = Reply(tool_calls=[Call(name=tool, arguments=arguments)], cost=PRICE)
        then = then.model_copy(update={"cost": PRICE})
        self.model.rules(Rule(match=match, results=0, reply=called), Rule(match=match, reply=then))


def set_up(person: Person) -> None:
    page = person.visit.sign_in(first=True)
    expect(page.get_by_role("heading", name="Welcome to Annabelle")).to_be_visible()
    page.get_by_label("What Annabelle calls you").fill("Countess Ada")
    page.get_by_label("Your time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.locator(".toast").get_by_text("Kept.")).to_be_visible()
    page.get_by_role("button", name="To the chat", exact=True).click()


def chat(person: Person) -> None:
    page, workspace = person.page, person.home.workspace
    answer = Reply(text="**ICE 1045** leaves at 08:13. " * 6 + "That is all.", chunks=8, chunk_delay=0.4)
    person.let_model_call("trains", "filer_list_grants", {}, answer)
    person.say(TRAINS)
    expect(page.locator(".live strong").first).to_have_text("ICE 1045")
    person.expect_answer("That is all.")
    expect(page.locator(".message.agent").get_by_text(f"${2 * PRICE:.2f}")).to_be_visible()
    page.locator(".tool summary").click()
    expect(page.locator(".tool[open] h4")).to_have_text("filer_list_grants")

    put = """(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'Rechnung März.txt'));
      return data }"""
    page.dispatch_event(".conversation", "drop", {"dataTransfer": page.evaluate_handle(put, BILL)})
    chip = page.locator(".attached .badge")
    expect(chip).to_have_text("Rechnung März.txt")
    (bill,) = (workspace / "received").iterdir()
    read: dict[str, object] = {"path": f"received/{bill.name}"}
    person.let_model_call("bill", "filer_read_file", read, Reply(text="It is 42 guilders."))
    person.say("What is on this bill?")
    person.expect_answer("It is 42 guilders.")
    assert any(BILL in result for one in person.model.requests for result in one.conversation.results)

    (workspace / "old plans.txt").write_text("old")
    person.let_model_call("my plans", "filer_delete_file", {"path": "old plans.txt"}, Reply(text="They are gone."))
    person.say("Look at my plans")
    page.locator(".question").get_by_role("button", name="Approve", exact=True).click()
    person.expect_answer("They are gone.")
    assert not (workspace / "old plans.txt").exists()

    person.model.rules()
    person.say(f"Remember that {KNOWN[0].lower()}{KNOWN[1:]}")
    expect(page.locator(".message.own")).to_have_count(4)
    expect(page.locator(".live")).to_have_count(0)
    reminder: dict[str, object] = {"message": "water the plants", "when": "tomorrow at 9"}
    person.let_model_call("plants", "memory_store_skill", reminder, Reply(text="I will."))
    person.say(REMIND)
    person.expect_answer("I will.")


def inbox(person: Person) -> None:
    page, workspace = person.page, person.home.workspace
    for name in ("garden.txt", "draft.txt"):
        (workspace / name).write_text(name)
    person.let_model_call("garden", "filer_delete_file", {"path": "garden.txt"}, Reply(text="The draft is gone."))
    person.say("What about the garden?")
    expect(page.locator("#inbox-count")).to_have_text("1")
    person.open("Inbox")
    question = page.locator(".question")
    expect(question.get_by_role("heading")).to_contain_text("filer_delete_file")
    expect(question).to_contain_text("garden.txt")
    expect(question.locator(".reasons li").first).not_to_be_empty()
    expect(question.locator("q")).to_have_text("What about the garden?")
    question.get_by_role("button", name="Change …").click()
    question.get_by_label("path").fill("draft.txt")
    question.get_by_label("A word to the agent").fill("Only the draft.")
    question.get_by_role("button", name="Approve this call").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.locator("#inbox-count")).to_be_hidden()
    page.get_by_text("Answered (2)").click()
    expect(page.locator("details .line").first).to_contain_text("“Only the draft.”")
    person.open("Chat")
    person.expect_answer("The draft is gone.")
    assert [(workspace / one).exists() for one in ("garden.txt", "draft.txt")] == [True, False]


def goals(person: Person) -> None:
    page = person.page
    look = Call(name="create_task", arguments={"title": "Find teachers", "instructions": "Find three."})
    person.model.rules(
        Rule(system=TASK, reply=Reply(text="Three teachers: **Ann**, Bo and Cy.")),
        Rule(system=GOAL, match="Find me", results=0, reply=Reply(tool_calls=[look])),
        Rule(system=GOAL, reply=Reply(text="I am on it.")),
    )
    person.open("Goals")
    page.get_by_role("button", name="New goal").click()
    person.fill_dialog("Make the goal", Title="Learn the piano", be_reached="Play a prelude in June.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Learn the piano")
    person.part("Notes").get_by_role("button", name="Write a note").click()
    person.fill_dialog("Keep it", Title="Room", Text="The piano is in the *cellar*.")
    expect(page.locator(".note").filter(has_text="Room")).to_be_visible()
    page.get_by_label("Write to this goal").fill("Find me a teacher")
    person.part("Conversation").get_by_role("button", name="Send").click()
    expect(page.locator(".task").get_by_role("heading")).to_have_text("Find teachers completed")
    expect(page.locator(".note").filter(has_text="by Annabelle")).to_contain_text("Find teachers")


def skills(person: Person) -> None:
    page = person.page
    person.open("Skills")
    tomorrow = page.locator(".week > li").nth(1)
    expect(tomorrow).to_contain_text("water the plants")
    tomorrow.get_by_role("link", name="water the plants").click()
    page.get_by_role("button", name="Run water the plants now").click()
    expect(page.get_by_role("table").get_by_text("finished")).to_be_visible()
    page.get_by_role("link", name="The conversation it reports to").click()
    expect(page.locator(".message").get_by_text("⏰ water the plants")).to_be_visible()
    expect(page.locator(".message.own").first).to_contain_text(TRAINS)


def feed(person: Person) -> None:
    page = person.page
    found = {"kind": "reflection", "title": "A recital", "content": "On *Friday*."}
    bring = Reply(tool_calls=[Call(name="generate_feed", arguments={"items": [found]})])
    person.model.rules(Rule(match="This is the morning feed", results=0, reply=bring), Rule(reply=Reply(text="")))
    person.open("Feed")
    expect(page.get_by_text("Nothing has come yet.")).to_be_visible()
    person.open("Skills")
    page.get_by_role("button", name="Run Morning feed now").click()
    person.open("Feed")
    expect(page.get_by_role("article", name="A recital").locator("em")).to_have_text("Friday")


def memory(person: Person) -> None:
    page = person.page
    person.open("Memory")
    page.get_by_label("Search").fill("What is my dog called?")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name="Facts", exact=True)).to_be_visible()
    fact = page.locator(".fact").filter(has_text=KNOWN)
    fact.get_by_text("Why is this known?").click()
    fact.get_by_role("link", name="the message").click()
    expect(page.locator(".message.own").filter(has_text="Remember that my dog")).to_be_visible()
    person.open("Memory")
    fact.get_by_role("button", name="Correct").click()
    page.get_by_label("What is right").fill(RIGHT)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".fact").filter(has_text=RIGHT)).to_be_visible()
    expect(fact).to_have_count(0)


def costs(person: Person) -> None:
    page, today = person.page, f"{now():%Y-%m-%d}"
    person.open("Costs")
    row = page.get_by_role("table", name="What was spent by day").get_by_role("row", name=today)
    expect(row).to_be_visible()
    page.get_by_role("link", name="By purpose").click()
    row = page.get_by_role("table", name="What was spent by purpose").get_by_role("row", name="chat")
    spent = row.locator("td").nth(1).inner_text().strip(" *")
    assert float(spent.removeprefix("$")) >= 10 * PRICE, "five turns in the chat had two priced calls each"
    expect(page.locator(".plot rect title", has_text=f"chat: {spent}")).to_have_count(1)
    page.get_by_role("link", name="By goal").click()
    expect(page.get_by_role("table", name="What was spent by goal").get_by_text("Learn the piano")).to_be_visible()
    page.get_by_role("button", name="Change budgets").click()
    person.fill_dialog("Save", a_day_may_cost="20")
    expect(page.get_by_role("meter", name="Today")).to_have_attribute("aria-valuemax", "20")


def traces(person: Person) -> None:
    page = person.page
    person.open("Traces")
    row = page.get_by_role("table", name="Turns of late").get_by_role("row", name=TRAINS)
    expect(row).to_contain_text(f"${2 * PRICE:.2f}")
    row.get_by_role("link", name=TRAINS).click()
    expect(page.get_by_role("heading", name="How it came about")).to_be_visible()
    expect(page.locator(".lane .span.thinker").first).to_be_visible()
    expect(page.locator(".waterfall")).to_contain_text("filer_list_grants")
    expect(page.locator(".message.agent")).to_contain_text("That is all.")


def system(person: Person) -> None:
    page = person.page
    person.open("System")
    parts = page.get_by_role("navigation", name="Parts of the system")
    parts.get_by_role("link", name="Servers").click()
    expect(page.locator("[data-server=filer] summary .badge").first).to_have_text("ready")
    parts.get_by_role("link", name="Settings").click()
    page.get_by_label("Only those that are set").check()
    expect(page.locator("[data-setting=USER_NAME] .value")).to_have_text("Countess Ada")
    expect(page.locator("[data-setting=BUDGET_DAY_USD] .value")).to_have_text("20")
    language = page.locator("[data-setting=USER_LANGUAGE]")
    page.get_by_label("Only those that are set").uncheck()
    language.locator("summary").click()
    language.get_by_label("USER_LANGUAGE", exact=True).fill("Esperanto")
    language.get_by_role("button", name="Save USER_LANGUAGE").click()
    parts.get_by_role("link", name="Backup").click()
    page.get_by_role("button", name="Make a backup").click()
    expect(page.get_by_role("region", name="Backups").get_by_role("row")).to_have_count(2)


def restart(person: Person) -> None:
    """What was chosen and corrected is in what the model is told from then on."""
    page = person.page
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Restart now").click()
    expect(page.locator(".toast").get_by_text("Annabelle restarts.")).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)
    expect(page.get_by_role("button", name="Restart now")).to_have_count(0)
    expect(page.locator("[data-setting=USER_LANGUAGE] summary .value")).to_have_text("Esperanto")
    person.model.rules()
    person.open("Chat")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".message").get_by_text("A new conversation begins.")).to_be_visible()
    person.say("Hello, what is my dog called?")
    person.expect_answer("You said: ")
    (asked,) = [one for one in person.model.requests if "Hello, what is my dog" in one.conversation.user_text]
    told = str(asked.body["messages"])
    assert all(words in told for words in ("Countess Ada", "Esperanto", RIGHT))
    assert f"{KNOWN}." not in told


def stop_and_resume(person: Person) -> None:
    page, count = person.page, len(person.model.requests)
    page.get_by_role("button", name="Stop everything").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    person.say("Are you there?")
    expect(page.get_by_text(re.compile("stopped", re.IGNORECASE)).last).to_be_visible()
    assert len(person.model.requests) == count
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Stop everything")).to_be_visible()
    person.model.rules(Rule(match="And now", reply=Reply(text="I am here.")))
    person.say("And now?")
    person.expect_answer("I am here.")


def sign_out(person: Person) -> None:
    page = person.page
    page.get_by_role("button", name="Sign out").click()
    person.fill_dialog("Sign out")
    expect(page.get_by_text("annabelle open", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text("annabelle open", exact=True)).to_be_visible()
    tokens = person.visit.hub.http.get("/tokens").json()["tokens"]
    assert not [one for one in tokens if one["name"].startswith("page-")]


@pytest.mark.req("UX-01", "UX-02", "TRC-04", "CST-05")
def test_one_person_goes_through_every_view_and_finds_what_was_done_before(
    browser: Browser, hub: HubProcess, model: ScriptedServer
) -> None:
    with visiting(browser, hub) as visit:
        person = Person(visit, model)
        for chapter in (set_up, chat, inbox, goals, skills, feed, memory, costs, traces, system):
            chapter(person)
        assert (visit.foreign, visit.errors) == ([], [])
        for chapter in (restart, stop_and_resume, sign_out):
            chapter(person)
        lost = [one for one in visit.errors if "Failed to load resource" in one or "ERR_" in one]
        assert (visit.foreign, visit.errors) == ([], lost)
