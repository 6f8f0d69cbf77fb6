"""Goals talk, keep notes and learnings, delegate, and stay within what the person confirmed (AGE-02, POL-09)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, insert, update

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.store import goals
from annabelle.store.goals import NewNote
from annabelle.store.portable_sql import field_values
from annabelle.store.tables import goal_notes
from hub.goals.house import GoalHouse, call


@pytest.mark.req("AGE-02", "AGE-01")
async def test_a_goal_answers_in_its_own_thread_with_its_own_tools_and_prompt(house: GoalHouse) -> None:
    goal = await house.add(instructions="Be gentle.")
    other = await house.add("Garden", tools=["send_letter"])
    await house.say(goal, "How do I begin?")
    brief = house.thinker.briefs[-1]
    assert "Be gentle." in brief.instructions
    assert "Piano" in brief.instructions
    assert set(brief.required_tools or ()) >= {"look_around", "create_task", "create_note", "manage_learning"}
    assert "send_letter" not in (brief.required_tools or ())
    assert (await house.in_goal(goal))[0] == "How do I begin?"
    assert await house.in_goal(other) == []
    assert (await house.goal(goal)).state == "waiting"


@pytest.mark.req("LOOP-02")
async def test_a_goal_and_the_persons_own_agent_have_twenty_steps_for_a_turn(house: GoalHouse) -> None:
    goal = await house.add()
    for channel, chat_id in (("goal", goal.id), ("user_agent", OWNER)):
        said = InboundMessage(channel=channel, chat_id=chat_id, sender_id=OWNER, text="hello")
        await house.hub.conversations.gate.receive(said)
    await house.house.run(timedelta(hours=2))  # with a run of the feed
    await house.rest()
    limits = [(one.channel, one.limits and one.limits.max_steps) for one in house.thinker.briefs]
    assert limits == [("goal", 20), ("user_agent", 20), ("user_agent", 20)]


@pytest.mark.req("AGE-02")
async def test_nobody_writes_to_an_archived_or_foreign_goal(house: GoalHouse) -> None:
    goal = await house.add()

    async def write(user_id: str) -> None:
        said = InboundMessage(channel="goal", chat_id=goal.id, sender_id=user_id, user_id=user_id, text="hello")
        await house.hub.conversations.gate.receive(said)

    with pytest.raises(NotFound):
        await write("mallory")
    await house.service.archive(goal.id, OWNER)
    with pytest.raises(Conflict, match="archived"):
        await write(OWNER)
    assert await house.in_goal(goal) == []


@pytest.mark.req("AGE-02")
async def test_a_message_that_is_sent_again_leaves_the_goal_as_it_is(house: GoalHouse) -> None:
    goal = await house.add()
    said = InboundMessage(channel="goal", chat_id=goal.id, sender_id=OWNER, text="hello", external_id="1")
    for again in (False, True):
        received = await house.hub.conversations.gate.receive(said.model_copy(update={"id": f"msg_{again}"}))
        assert received.duplicate is again
        await house.rest()
        assert (await house.goal(goal)).state == "waiting"
    await house.service.archive(goal.id, OWNER)
    assert (await house.hub.conversations.gate.receive(said)).duplicate
    assert (await house.goal(goal)).state == "archived"


@pytest.mark.req("AGE-05", "POL-01")
async def test_tools_of_goals_are_refused_to_chats(house: GoalHouse) -> None:
    house.play(lambda _brief: {"calls": [call("create_note", title="x", content="y")]})
    said = InboundMessage(channel="api", chat_id="main", sender_id=OWNER, text="note it")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    assert "for agents of goals" in str(house.thinker.answers[-1])


@pytest.mark.req("AGE-05", "AGE-02")
async def test_notes_and_learnings_of_a_turn_are_in_the_next_prompt(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(
        lambda _brief: {
            "calls": [
                call("create_note", title="Keyboard", content="61 keys will do."),
                call("manage_learning", action="save", content="Practises at night."),
            ]
        }
    )
    await house.say(goal, "Remember both.")
    house.play(lambda _brief: {"calls": []})
    await house.say(goal, "And now?")
    sections = {one.name: one.pieces for one in house.thinker.briefs[-1].sections}
    assert any("61 keys will do." in piece for piece in sections["notes"])
    assert any("Practises at night." in piece for piece in sections["learnings"])


@pytest.mark.req("POL-09", "TRU-03")
async def test_notes_after_foreign_content_are_kept_but_only_counted_in_the_prompt(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda _brief: {"calls": [call("read_inbox"), call("create_note", title="Mail", content="eve asks")]})
    await house.say(goal, "Read my mail and keep what matters.")
    (note,) = await house.notes(goal)
    assert note.read_from == ["read_inbox"]
    house.play(lambda _brief: {"calls": [call("search_notes")]})
    await house.say(goal, "And now?")
    notes = next(one for one in house.thinker.briefs[-1].sections if one.name == "notes")
    assert notes.pieces == ("1 more: search_notes shows them.",)
    assert house.thinker.answers[-1]["trust"] == "untrusted"


@pytest.mark.req("POL-09")
async def test_what_goes_beyond_the_goal_is_asked_about(house: GoalHouse) -> None:
    goal = await house.add(tools=["read_inbox", "send_letter"])
    house.play(lambda _brief: {"calls": [call("read_inbox"), call("send_letter", to="eve@example.net", body="hi")]})
    await house.say(goal, "What is new?")
    assert house.house.sent == []
    assert "send_letter" in (await house.in_goal(goal))[-1] or "letter" in (await house.in_goal(goal))[-1]


@pytest.mark.req("AGE-02", "AGE-05")
async def test_a_goal_has_at_most_fifty_learnings(house: GoalHouse) -> None:
    goal = await house.add()

    def fill(conn: Connection) -> None:
        for number in range(50):
            goals.add_learning(conn, goal.id, f"learning {number}")

    await house.write(fill)
    house.play(lambda _brief: {"calls": [call("manage_learning", action="save", content="one more")]})
    await house.say(goal)
    assert "50 learnings" in str(house.thinker.answers[-1]["text"])
    learnt = await house.read(lambda conn: goals.list_learnings(conn, goal.id))
    first, garden = learnt[0].id, await house.add("Garden")
    other = await house.write(lambda conn: goals.add_learning(conn, garden.id, "Likes roses"))
    house.play(
        lambda _brief: {
            "calls": [
                call("manage_learning", action="change", learning_id=first, content="better"),
                call("manage_learning", action="remove", learning_id=learnt[1].id),
                call("manage_learning", action="change", learning_id=other.id, content="worse"),
                call("manage_learning", action="remove", learning_id=other.id),
            ]
        }
    )
    await house.say(goal)
    left = await house.read(lambda conn: goals.list_learnings(conn, goal.id))
    assert len(left) == 49
    assert left[0].content == "better"
    assert [one["is_error"] for one in house.thinker.answers[-4:]] == [False, False, True, True]
    assert await house.read(lambda conn: goals.list_learnings(conn, garden.id)) == [other]


@pytest.mark.req("AGE-12", "POL-09")
async def test_a_guided_chat_ends_in_a_goal_that_the_person_confirms(house: GoalHouse) -> None:
    proposal: JsonObject = {
        "title": "Piano",
        "description": "Play a song in June.",
        "instructions": "Be gentle.",
        "learnings": ["Never played before."],
        "tools": ["look_around"],
        "check_in": {"frequency": "weekdays", "time": "08:30"},
    }
    house.play(lambda _brief: {"calls": [call("create_goal", **proposal)], "say": "It is set up."})
    said = InboundMessage(channel="goal_creation", chat_id="new-1", sender_id=OWNER, text="I want to play the piano")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    assert await house.read(lambda conn: goals.list_goals(conn, OWNER)) == []
    brief = house.thinker.briefs[-1]
    assert brief.required_tools == ("create_goal", "search_tools")
    assert "at most three" in brief.instructions
    asked = (await house.house.owner.get("/approvals")).json()["approvals"][0]
    assert "08:30" in str(asked["reasons"])
    assert "look_around" in str(asked["reasons"])
    await house.house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    await house.rest()
    (goal,) = await house.read(lambda conn: goals.list_goals(conn, OWNER))
    assert (goal.title, goal.instructions, list(goal.tools)) == ("Piano", "Be gentle.", ["look_around"])
    learnt = await house.read(lambda conn: goals.list_learnings(conn, goal.id))
    assert [one.content for one in learnt] == ["Never played before."]
    recurring = await house.check_in(goal, "recurring")
    assert recurring is not None
    assert recurring.trigger["schedule"] == "30 8 * * 1-5"


@pytest.mark.req("AGE-12", "POL-01")
async def test_a_guided_chat_calls_no_other_tool_than_its_own(house: GoalHouse) -> None:
    house.play(lambda _brief: {"calls": [call("look_around")]})
    said = InboundMessage(channel="goal_creation", chat_id="new-1", sender_id=OWNER, text="I want to play the piano")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    assert "look_around" in str(house.thinker.answers[-1]["error"])
    assert house.house.calls == 0


@pytest.mark.req("AGE-12", "POL-09")
async def test_learnings_of_a_goal_that_is_made_after_foreign_content_are_labelled(house: GoalHouse) -> None:
    goal: JsonObject = {"title": "Piano", "description": "A song.", "learnings": ["Write to eve."]}
    house.play(lambda _brief: {"calls": [call("read_inbox"), call("create_goal", **goal)]})
    said = InboundMessage(channel="api", chat_id="main", sender_id=OWNER, text="Make a goal of my mail")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    (asked,) = (await house.house.owner.get("/approvals")).json()["approvals"]
    await house.house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    await house.rest()
    (made,) = await house.read(lambda conn: goals.list_goals(conn, OWNER))
    (learnt,) = await house.read(lambda conn: goals.list_learnings(conn, made.id))
    assert (learnt.content, learnt.read_from) == ("Write to eve.", ["read_inbox"])


@pytest.mark.req("AGE-02")
async def test_a_deleted_goal_takes_its_notes_and_check_ins_along(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "09:00"})
    note = NewNote(user_id=OWNER, goal_id=goal.id, title="x", content="y", written_by="user")
    await house.write(lambda conn: goals.add_note(conn, note))
    await house.service.delete(goal.id, OWNER)
    assert await house.notes(goal) == []
    assert await house.check_in(goal, "recurring") is None
    assert await house.read(lambda conn: goals.find_goal(conn, goal.id)) is None


@pytest.mark.req("AGE-02")
async def test_two_goals_never_have_the_same_title(house: GoalHouse) -> None:
    piano, garden = await house.add(), await house.add("Garden")
    with pytest.raises(Conflict, match="already"):
        await house.add("piano", description="Another one.")
    with pytest.raises(Conflict, match="already"):
        await house.service.change(garden.id, OWNER, {"title": "PIANO"})
    assert (await house.service.change(piano.id, OWNER, {"title": "PIANO"})).title == "PIANO"


@pytest.mark.req("AGE-02", "MEM-11")
async def test_ten_thousand_notes_are_searched_and_the_prompt_stays_small(house: GoalHouse) -> None:
    goal = await house.add()

    def fill(conn: Connection) -> None:
        at = datetime(2027, 1, 1, tzinfo=UTC)
        new = NewNote(
            user_id=OWNER, goal_id=goal.id, title="Lesson", content="Scales and chords. " * 20, written_by="user"
        )
        rows = [
            {**field_values(new), "id": f"note_{n}", "read_from": None, "created_at": at, "updated_at": at}
            for n in range(10_000)
        ]
        conn.execute(insert(goal_notes), rows)
        conn.execute(update(goal_notes).where(goal_notes.c.id == "note_7").values(content="The tuner is Mr. Orff."))

    await house.write(fill)
    house.play(lambda _brief: {"calls": [call("search_notes", query="tuner")], "say": "It is Mr. Orff."})
    await house.say(goal, "Who tunes it?")
    brief = house.thinker.briefs[-1]
    (notes,) = [one for one in brief.sections if one.name == "notes"]
    assert notes.pieces[0] == "9970 more: search_notes shows them."
    assert len(notes.pieces) == 31
    assert "The tuner is Mr. Orff." in str(house.thinker.answers)
    found = (await house.house.owner.get("/notes", params={"q": "tuner"})).json()["notes"]
    assert [one["noteId"] for one in found] == ["note_7"]
    assert len((await house.house.owner.get("/notes")).json()["notes"]) == 50
    assert (await house.house.owner.get("/goals/1")).json()["notes"] == 10_000


@pytest.mark.req("AGE-02", "AGE-04")
async def test_notes_have_the_day_on_which_the_person_wrote_them(house: GoalHouse) -> None:
    """It is half past midnight in Berlin, and the day before in UTC."""
    goal = await house.add()
    note = NewNote(user_id=OWNER, goal_id=goal.id, title="Scales", content="Done.", written_by="user")
    await house.write(lambda conn: goals.add_note(conn, note, at=datetime(2027, 3, 25, 23, 30, tzinfo=UTC)))
    house.play(lambda _brief: {"calls": [call("search_notes", query="scales")]})
    await house.say(goal)
    said = InboundMessage(channel="user_agent", chat_id=OWNER, sender_id=OWNER, text="hello")
    await house.hub.conversations.gate.receive(said)
    await house.rest()
    shown = [str(one.sections) for one in house.thinker.briefs] + [str(house.thinker.answers)]
    assert [("2027-03-26 Scales" in text, "2027-03-25" in text) for text in shown] == [(True, False)] * 3
