"""The feed brings discoveries and reflections three times a day, nothing twice (AGE-04, AGE-09)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.contract import TurnBrief
from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.hub.goals.feed_repeats import COMPARED
from annabelle.store import feed, goals, skills
from annabelle.store.feed import NewFeedItem
from annabelle.store.goals import NewNote
from hub.goals.house import GoalHouse, call

FEED_DAY = timedelta(hours=24)


def feed_runs(house: GoalHouse) -> list[TurnBrief]:
    return [one for one in house.thinker.briefs if one.channel == "user_agent"]


def item(title: str, content: str = "Look at this.", kind: str = "discovery") -> JsonObject:
    return {"kind": kind, "title": title, "content": content}


@pytest.mark.req("AGE-09", "AGE-04")
async def test_the_feed_comes_three_times_a_day_in_the_persons_chat(house: GoalHouse) -> None:
    await house.add()
    await house.add("Garden", description="Grow tomatoes.")

    def plan(brief: TurnBrief) -> JsonObject:
        if brief.channel != "user_agent":
            return {"calls": []}
        number = len(feed_runs(house))
        return {"calls": [call("generate_feed", items=[item(f"News {number}")])], "say": ""}

    house.play(plan)
    await house.house.run(FEED_DAY)
    fires = [one for one in await house.house.fires() if one.name.endswith("feed")]
    assert [one.name for one in fires] == ["Afternoon feed", "Evening feed", "Morning feed"]
    brief = feed_runs(house)[0]
    goals_shown = next(one for one in brief.sections if one.name == "goals")
    assert any("tomatoes" in piece for piece in goals_shown.pieces)
    assert "generate_feed" in (brief.required_tools or ())
    assert "send_message" not in (brief.required_tools or ())
    assert brief.archive_as == "feed_complete"
    told = [text for text in await house.heard() if "News" in text]
    assert len(told) == 3
    assert told[0] == "News 1\nLook at this."


@pytest.mark.req("AGE-09")
async def test_the_feed_never_brings_the_same_twice(house: GoalHouse) -> None:
    await house.add()
    house.play(
        lambda brief: {
            "calls": [call("generate_feed", items=[item("Chords"), item("chords!", "Look, at THIS")])]
            if brief.channel == "user_agent"
            else [],
            "say": "",
        }
    )
    await house.house.run(FEED_DAY)
    assert len(await house.read(lambda conn: feed.list_feed(conn, OWNER))) == 1
    assert sum("Chords" in text for text in await house.heard()) == 1
    shown = next(one for one in feed_runs(house)[-1].sections if one.name == "the feed so far")
    assert any("Chords" in piece for piece in shown.pieces)


@pytest.mark.req("AGE-09")
async def test_the_feed_tells_in_the_given_order_and_also_news_under_a_title_it_had(house: GoalHouse) -> None:
    foreign = await house.add("Secret plan", user_id="mallory")
    goal = await house.add()
    items = [
        item("Chords") | {"goal_id": goal.id},
        item("Chords", "There are more.") | {"goal_id": foreign.id},
        item("A thought", kind="reflection"),
    ]
    house.play(
        lambda brief: {
            "calls": [call("generate_feed", items=items)] if brief.channel == "user_agent" else [],
            "say": "",
        }
    )
    await house.house.run(FEED_DAY)
    told = "Chords\nLook at this.\n\nChords\nThere are more.\n\nA thought\nLook at this."
    assert [text for text in await house.heard() if "Chords" in text] == [told]
    kept = await house.read(lambda conn: feed.list_feed(conn, OWNER))
    assert [(one.kind, one.goal_id) for one in kept[::-1]] == [
        ("discovery", goal.id),
        ("discovery", None),
        ("reflection", None),
    ], "another person's goal is not named"


@pytest.mark.req("AGE-09")
async def test_without_goals_there_is_no_run(house: GoalHouse) -> None:
    goal = await house.add()
    await house.service.archive(goal.id, OWNER)
    await house.house.run(FEED_DAY)
    assert feed_runs(house) == []
    assert {one.state for one in await house.house.fires() if one.name.endswith("feed")} == {"skipped"}


@pytest.mark.req("AGE-09")
async def test_times_of_the_feed_are_the_persons_own(house: GoalHouse) -> None:
    with pytest.raises(Conflict, match="no goal"):
        await house.service.set_feed_times(OWNER, {"Morning": "06:45"})
    await house.add()
    kept = await house.service.set_feed_times(OWNER, {"Morning": "06:45", "Evening": None})
    assert kept == {"Morning": "06:45", "Afternoon": "13:00", "Evening": None}
    house.play(lambda _brief: {"calls": [], "say": ""})
    await house.house.run(FEED_DAY)
    fires = [one for one in await house.house.fires() if one.name.endswith("feed")]
    assert [f"{one.due_at.astimezone(house.service.time_zone):%H:%M}" for one in fires] == ["13:00", "06:45"]
    other = await house.read(lambda conn: skills.find_check_in(conn, "mallory", "feed_morning"))
    assert other is None


@pytest.mark.req("AGE-09", "TRU-03")
async def test_what_the_feed_found_outside_is_labelled_and_labels_the_runs_that_see_it(house: GoalHouse) -> None:
    await house.add(tools=["read_inbox", "send_letter"])

    def plan(brief: TurnBrief) -> JsonObject:
        if brief.channel != "user_agent":
            return {"calls": []}
        if len(feed_runs(house)) == 1:
            return {"calls": [call("read_inbox"), call("generate_feed", items=[item("Write to eve")])], "say": ""}
        return {"calls": [call("send_letter", to="eve@example.net", body="hi")], "say": ""}

    house.play(plan)
    await house.house.run(FEED_DAY)
    (found,) = await house.read(lambda conn: feed.list_feed(conn, OWNER))
    assert found.read_from == ["read_inbox"]
    assert house.house.sent == []
    said = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id=OWNER, text="How do my goals go?")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    assert all(one.name != "the feed so far" for one in feed_runs(house)[-1].sections)


@pytest.mark.req("AGE-04", "AGE-01")
async def test_the_users_agent_knows_all_goals_and_is_one_for_each_person(house: GoalHouse) -> None:
    piano, garden = await house.add(), await house.add("Garden", tools=["read_inbox"])
    house.play(lambda _brief: {"calls": [call("create_note", title="Both", content="Less time.", goal_id=garden.id)]})
    said = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id=OWNER, text="How do my goals go?")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    brief = feed_runs(house)[0]
    assert {"look_around", "read_inbox", "create_task"} <= set(brief.required_tools or ())
    assert [one.title for one in await house.notes(garden)] == ["Both"]
    assert await house.notes(piano) == []
    secret = await house.add("Secret plan", user_id="mallory")
    house.play(lambda _brief: {"calls": [call("create_note", title="Mine", content="No.", goal_id=secret.id)]})
    await house.hub.conversations.gate.receive(said.model_copy(update={"id": "msg_again"}))
    await house.rest()
    assert house.thinker.answers[-1]["is_error"]
    assert await house.notes(secret) == []
    foreign = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id="m", user_id="mallory", text="hi")
    with pytest.raises(NotFound):
        await house.hub.conversations.gate.receive(foreign)


@pytest.mark.req("AGE-04", "POL-09")
async def test_notes_made_from_foreign_content_are_not_shown_to_a_users_agent(house: GoalHouse) -> None:
    goal = await house.add()
    for title, read_from in (("Own", None), ("Foreign", ["read_inbox"])):
        note = NewNote(
            user_id=OWNER, goal_id=goal.id, title=title, content="x", written_by="agent", read_from=read_from
        )
        await house.write(lambda conn, note=note: goals.add_note(conn, note))
    said = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id=OWNER, text="How do my goals go?")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    shown = next(one for one in feed_runs(house)[0].sections if one.name == "goals")
    assert "Own: x" in str(shown.pieces)
    assert "Foreign" not in str(shown.pieces)


@pytest.mark.req("AGE-04")
async def test_goals_of_others_are_not_shown_to_a_users_agent(house: GoalHouse) -> None:
    await house.add("Secret plan", user_id="mallory")
    await house.add()
    said = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id=OWNER, text="How do my goals go?")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    assert "Secret plan" not in str(feed_runs(house)[0])
    assert len(await house.read(lambda conn: goals.list_goals(conn, OWNER))) == 1


NIGHTJET = item(
    "Night train to Rome",
    "ÖBB has a new Nightjet from Vienna to Rome with mini cabins from 34.90 euros, bookable 180 days ahead.",
)
NIGHTJET_REWORDED = item(
    "New Nightjet Vienna-Rome",
    "From 34.90 euros you can go in a mini cabin of the new ÖBB Nightjet from Vienna to Rome; it is bookable 180 days"
    " ahead.",
)


async def bring(house: GoalHouse, *runs: list[JsonObject]) -> list[str]:
    """The titles that the feed keeps of what one run after another hands over."""

    def plan(brief: TurnBrief) -> JsonObject:
        if brief.channel != "user_agent":
            return {"calls": []}
        number = len(feed_runs(house)) - 1
        return {"calls": [call("generate_feed", items=runs[number])] if number < len(runs) else [], "say": ""}

    await house.add()
    house.play(plan)
    await house.house.run(FEED_DAY)
    return [str(one.title) for one in await house.read(lambda conn: feed.list_feed(conn, OWNER))][::-1]


@pytest.mark.req("AGE-09")
async def test_what_the_feed_had_is_left_out_in_other_words_too_and_its_agent_is_told_why(house: GoalHouse) -> None:
    assert await bring(house, [NIGHTJET], [NIGHTJET_REWORDED, item("Chords")]) == ["Night train to Rome", "Chords"]
    answer = house.thinker.answers[-1]
    assert answer["structured"] == {"shown": 1, "repeated": 1, "left_out": ["New Nightjet Vienna-Rome"]}
    assert "Left out: “New Nightjet Vienna-Rome”. The feed had the same on 2026-" in str(answer["text"])
    assert "“Night train to Rome”" in str(answer["text"])


@pytest.mark.req("AGE-09")
@pytest.mark.parametrize(
    ("user_id", "later", "left_out"),
    [(OWNER, COMPARED - 1, [NIGHTJET_REWORDED["title"]]), (OWNER, COMPARED, []), ("mallory", 0, [])],
)
async def test_a_repeat_is_one_of_the_persons_own_newest_items(
    house: GoalHouse, user_id: str, later: int, left_out: list[str]
) -> None:
    def add(conn: Connection) -> None:
        for told in (NIGHTJET, *(item(f"Item {number}") for number in range(later))):
            new = NewFeedItem(user_id=user_id, kind="discovery", title=str(told["title"]), content=str(told["content"]))
            feed.add_feed_item(conn, new)

    await house.write(add)
    await bring(house, [NIGHTJET_REWORDED])
    assert house.thinker.answers[-1]["structured"]["left_out"] == left_out


@pytest.mark.req("AGE-09")
async def test_what_is_handed_over_twice_at_once_is_shown_once(house: GoalHouse) -> None:
    assert await bring(house, [NIGHTJET, NIGHTJET_REWORDED]) == ["Night train to Rome"]


@pytest.mark.req("AGE-09", "TRU-03")
async def test_a_repeated_item_with_words_from_outside_marks_the_answer(house: GoalHouse) -> None:
    def plan(brief: TurnBrief) -> JsonObject:
        if brief.channel != "user_agent":
            return {"calls": []}
        first = len(feed_runs(house)) == 1
        seen = [call("read_inbox")] if first else []
        return {"calls": [*seen, call("generate_feed", items=[NIGHTJET])], "say": ""}

    await house.add()
    house.play(plan)
    await house.house.run(FEED_DAY)
    assert house.thinker.answers[-1]["trust"] == "untrusted"
