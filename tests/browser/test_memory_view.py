"""What is remembered, on the page: found, explained, corrected, forgotten; profile, persona and timeline (UX-02)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import Browser, Locator, expect

from annabelle.core.tools import JsonObject
from annabelle.hub.security.users_file import add_user
from browser.browsing import PHONE, Visit, visiting
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer


def call(hub: HubProcess, tool: str, **arguments: object) -> JsonObject:
    answer = hub.http.post("/tools/call", json={"name": f"memory_{tool}", "arguments": arguments}).json()
    assert not answer["is_error"], answer
    return cast("JsonObject", answer["structured"])


def store(hub: HubProcess, fact: str, category: str = "background") -> int:
    return cast("int", call(hub, "store_fact", fact=fact, category=category)["fact_id"])


def facts(hub: HubProcess, **filters: object) -> list[str]:
    return [one["fact"] for one in cast("list[dict[str, str]]", call(hub, "list_facts", limit=200, **filters)["facts"])]


def wait_until_remembered(hub: HubProcess, said: str) -> None:
    """A conversation comes into the memory after its answer."""
    wait_for(lambda: said in str(call(hub, "retrieve_memories", query=said)), "the conversation in the memory")


def card(visit: Visit, text: str) -> Locator:
    return visit.page.locator(".fact").filter(has_text=text)


@pytest.mark.req("UX-02", "MEM-07")
def test_facts_are_listed_by_category_and_found_by_words(visit: Visit) -> None:
    hub = visit.hub
    store(hub, "Likes strong coffee in the morning.", "preference")
    store(hub, "Her sister Clara lives in Turin.", "contact")
    visit.sign_in()
    page = visit.go("memory")
    expect(page.locator(".fact").first).to_contain_text("sister Clara")
    page.get_by_label("Category", exact=True).select_option("preference")
    expect(card(visit, "sister Clara")).to_have_count(0)
    expect(card(visit, "strong coffee")).to_be_visible()
    page.get_by_label("Category", exact=True).select_option("")
    page.get_by_label("Search").fill("Where does Clara live?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Facts", exact=True)).to_be_visible()
    expect(page.locator(".fact").first).to_contain_text("sister Clara")
    page.get_by_label("Search").fill("")
    page.get_by_text("Add a fact").click()
    page.get_by_label("The fact", exact=True).fill("Plays the piano.")
    page.get_by_role("button", name="Remember it").click()
    expect(card(visit, "Plays the piano.")).to_be_visible()
    assert "Plays the piano." in facts(hub)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-09")
def test_a_fact_leads_to_the_message_it_was_learnt_from(visit: Visit) -> None:
    visit.hub.say("Remember that I keep bees in the garden", chatId="bees")
    visit.sign_in()
    page = visit.go("memory")
    fact = card(visit, "I keep bees")
    fact.get_by_text("Why is this known?").click()
    expect(fact).to_contain_text("stored by Annabelle during a conversation")
    expect(fact).to_contain_text("your own words")
    fact.get_by_role("link", name="the message").click()
    expect(page.locator(".message.own")).to_contain_text("Remember that I keep bees in the garden")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-07")
def test_a_fact_is_corrected_deleted_and_brought_back(visit: Visit) -> None:
    hub = visit.hub
    store(hub, "Works for Acme.")
    visit.sign_in()
    page = visit.go("memory")
    card(visit, "Works for Acme.").get_by_role("button", name="Correct").click()
    page.get_by_label("What is right").fill("Works for Initech.")
    page.get_by_role("button", name="Save").click()
    fact = card(visit, "Works for Initech.")
    expect(card(visit, "Works for Acme.")).to_have_count(0)
    fact.get_by_text("Why is this known?").click()
    expect(fact).to_contain_text("Works for Acme.")
    fact.get_by_role("button", name="Delete").click()
    expect(fact.get_by_role("button", name="Bring back")).to_be_visible()
    assert "Works for Initech." not in facts(hub)
    fact.get_by_role("button", name="Bring back").click()
    expect(fact.get_by_role("button", name="Correct")).to_be_visible()
    assert "Works for Initech." in facts(hub)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "TRU-09")
def test_forgetting_shows_everything_that_goes_and_asks(visit: Visit, model: ScriptedServer) -> None:
    hub = visit.hub
    model.rules(Rule(reply=Reply(text="I see.")))
    hub.say("My locker is behind the Blaue Forelle", chatId="locker")
    wait_until_remembered(hub, "My locker is behind")
    store(hub, "The locker is behind the Blaue Forelle.")
    visit.sign_in()
    page = visit.go("memory")
    card(visit, "Blaue Forelle").get_by_role("link", name="Forget for good").click()
    expect(page.get_by_text("The locker is behind the Blaue Forelle.")).to_be_visible()
    page.goto(f"{hub.url}/page/#/memory/forget")
    page.get_by_label("What to forget").fill("blaue forelle")
    page.get_by_role("button", name="Look where it stands").click()
    places = page.get_by_role("table", name="Where it stands")
    expect(places).to_contain_text("facts")
    expect(places).to_contain_text("conversations")
    expect(page.get_by_role("listitem").filter(has_text="The locker is behind")).to_be_visible()
    page.get_by_role("button", name="Forget all of this").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert any("Forelle" in one for one in facts(hub))
    page.get_by_role("button", name="Forget all of this").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("It cannot be brought back.")).to_be_visible()
    assert not any("Forelle" in one for one in facts(hub, include_retired=True))
    page.get_by_label("What to forget").fill("blaue forelle")
    page.get_by_role("button", name="Look where it stands").click()
    expect(page.get_by_text("It stands nowhere in these words.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "TRU-09")
def test_what_was_said_where_a_fact_came_from_is_forgotten_with_it(visit: Visit, model: ScriptedServer) -> None:
    hub, said = visit.hub, "On Sundays there is music in our house again"
    learnt = Call(name="memory_store_fact", arguments={"fact": "Plays the violin.", "category": "preference"})
    model.rules(Rule(match="music", results=0, reply=Reply(tool_calls=[learnt])), Rule(reply=Reply(text="I see.")))
    messages = f"/threads/{hub.say(said, chatId='violin')['threadId']}/messages"
    assert said in hub.http.get(messages).text
    visit.sign_in()
    page = visit.go("memory")
    fact = card(visit, "Plays the violin.")
    wait_until_remembered(hub, said)
    fact.get_by_role("link", name="Forget for good").click()
    page.get_by_label("Also what was said where it came from").check()
    page.get_by_role("button", name="Look where it stands").click()
    page.get_by_role("button", name="Forget all of this").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("Forgotten in")).to_be_visible()
    assert said not in hub.http.get(messages).text


@pytest.mark.req("UX-02", "CTX-08")
def test_the_profile_is_changed_field_by_field_and_goes_back(visit: Visit) -> None:
    hub = visit.hub
    call(hub, "update_profile", updates={"user": {"city": "Turin", "pets": ["Rex", "Tom"], "address": {"floor": 3}}})
    visit.sign_in()
    page = visit.go("memory/profile")
    page.get_by_label("city").fill("Lisbon")
    page.get_by_label("pets").fill("Rex\nTom\nMia")
    page.get_by_label("address › floor").fill("4")
    page.get_by_label("New field").fill("address.street")
    page.get_by_label("Its value").fill("Rua Augusta")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("address › street")).to_have_value("Rua Augusta")
    user = {"city": "Lisbon", "pets": ["Rex", "Tom", "Mia"], "address": {"floor": 4, "street": "Rua Augusta"}}
    assert cast("JsonObject", call(hub, "get_profile")["profile"])["user"] == user
    page.get_by_label("city").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("city")).to_have_count(0)
    page.get_by_text("Earlier versions").click()
    page.get_by_role("button", name="Go back to version 1").click()
    expect(page.get_by_label("city")).to_have_value("Turin")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.fixture
def default_persona(hub: HubProcess) -> Iterator[None]:
    yield
    hub.http.post("/agents/annabelle/persona", json={"text": ""})


@pytest.mark.req("UX-02", "CTX-08")
@pytest.mark.usefixtures("default_persona")
def test_the_persona_is_said_in_the_profile_or_in_words_of_ones_own(visit: Visit, model: ScriptedServer) -> None:
    hub = visit.hub
    model.rules(Rule(system="You are a gardener", reply=Reply(text="Roses.")), Rule(reply=Reply(text="Hm.")))
    visit.sign_in()
    page = visit.go("memory/persona")
    expect(page.get_by_role("heading", name="The default in force")).to_be_visible()
    page.get_by_label("Tone").fill("cheerful")
    page.get_by_label("What it is good at").fill("Cooking\nGardens")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="The persona of the profile in force")).to_be_visible()
    assert cast("JsonObject", call(hub, "get_profile")["profile"])["persona"] == {
        "tone": "cheerful",
        "capabilities": ["Cooking", "Gardens"],
    }
    page.get_by_label("The text").fill("You are a gardener.")
    page.get_by_role("button", name="Save the instructions").click()
    expect(page.get_by_role("heading", name="Instructions of your own in force")).to_be_visible()
    assert hub.say("Hello", chatId="garden")["reply"]["text"] == "Roses."  # type: ignore[index]
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-07")
def test_the_timeline_shows_facts_and_conversations_by_day(visit: Visit, model: ScriptedServer) -> None:
    hub = visit.hub
    model.rules(Rule(reply=Reply(text="Enjoy the sea.")))
    hub.say("I am going to the seaside", chatId="sea")
    wait_until_remembered(hub, "I am going to the seaside")
    store(hub, "Owns a small boat.")
    visit.sign_in()
    page = visit.go("memory/timeline")
    today = page.locator("section").filter(has=page.get_by_role("heading", level=2)).first
    expect(today).to_contain_text("Owns a small boat.")
    page.get_by_label("What", exact=True).select_option("conversations")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(today).to_contain_text("I am going to the seaside")
    expect(today).not_to_contain_text("small boat")
    page.get_by_label("Only what has this text").fill("no such words")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing from")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "MEM-11")
def test_a_guest_sees_their_own_memory_and_can_forget_nothing_for_all(browser: Browser, hub: HubProcess) -> None:
    store(hub, "The owner's own secret hobby is chess.")
    token = add_user(hub.home.users_file, "guest")
    with visiting(browser, hub) as visit:
        visit.sign_in(token)
        page = visit.go("memory")
        expect(page.get_by_text("Nothing is remembered here yet.")).to_be_visible()
        expect(page.get_by_role("link", name="Forget")).to_have_count(0)
        page = visit.go("memory/persona")
        expect(page.get_by_label("The text")).to_have_count(0)
        expect(page.get_by_label("Tone")).to_be_visible()
        assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_memory_fits_on_a_phone(visit: Visit) -> None:
    store(visit.hub, f"Has a very long word: {'x' * 120}.")
    visit.page.set_viewport_size(PHONE)
    visit.sign_in()
    for view in ("memory", "memory/timeline", "memory/profile", "memory/persona", "memory/forget"):
        page = visit.go(view)
        expect(page.locator(".tabs")).to_be_visible()
        expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
    assert (visit.foreign, visit.errors) == ([], [])
