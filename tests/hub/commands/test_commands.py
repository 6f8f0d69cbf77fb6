"""Commands are answered by the hub itself: every one, in order, once, and only to whom it is for."""

from __future__ import annotations

import asyncio
import json

import pytest

from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.hub.agents.halts import Halts
from annabelle.hub.commands.catalogue import COMMANDS
from annabelle.hub.security.users_file import set_admin
from annabelle.store import tool_calls
from hub.approvals.house import House, a_house, client
from hub.commands.conftest import Speaker, add_memory, let_in

EXAMPLES = [example for command in COMMANDS for example in command.info.examples]
FOR_ADMINS = ["/kill", "/resume", "/delete today", "/delete messages today", "/logs", "/security", "/browser"]


@pytest.mark.req("CMD-01", "UX-03")
async def test_every_example_of_the_documentation_works_without_a_model(owner: Speaker) -> None:
    for example in EXAMPLES:
        said = await owner.post(example)
        reply = said["reply"]
        assert isinstance(reply, dict)
        assert (said["state"], reply["source"]) == ("done", "agent"), example
        assert reply["metadata"]["usage"]["input_tokens"] == 0, example
        assert reply["metadata"]["command"] == example[1:].split()[0]
        assert "Say: /" not in str(reply["text"]), f"{example} is used rightly"
        assert "unexpectedly" not in str(reply["text"]), example
    assert owner.asked == []


@pytest.mark.req("CMD-01")
async def test_the_answers_say_what_is_asked_for(owner: Speaker) -> None:
    assert "Annabelle" in await owner.say("/status summary")
    assert "annabelle (" in await owner.say("/STATUS@annabelle_bot")
    assert "/kill [all|thinker|scheduler|CHANNEL] – " in await owner.say("/help")
    assert "For example: /logs" in await owner.say("/help /logs")
    assert await owner.say("/memory december ADA") == "Ada's birthday is in December. (personal)"
    assert await owner.say("/memory coffee") == "No fact has these words."
    assert "Likes green tea." in await owner.say("/memory")
    assert await owner.say("/stop") == "Nothing is running here."
    assert "0 model calls" in await owner.say("/cost")
    assert await owner.say("/approve") == "No question waits for your answer."
    assert "switched off here" in await owner.say("/browser")
    assert await owner.say("/cron") == "Nothing runs by itself."
    await owner.say("/kill scheduler")
    assert "stop: by=owner event=stopped target=scheduler" in await owner.say("/security")


@pytest.mark.req("CMD-01")
async def test_the_latest_warnings_of_all_logs_are_shown_and_nothing_else(owner: Speaker) -> None:
    logs = owner.house.hub.base.home.logs
    lines = [f"2026-11-18 02:00:{n:02d},000 {level:<7} - annabelle.x: line {n}\n" for n, level in enumerate(
        ["INFO", "WARNING", "ERROR", "DEBUG", "ERROR"]
    )]  # fmt: skip
    (logs / "hub.log").write_text("".join(lines[:3]) + "ERROR said by a page\n")
    (logs / "filer.log").write_text("".join(lines[3:]))
    assert [line.split(": ")[1] for line in (await owner.say("/logs")).splitlines()] == [
        "line 1 [hub]",
        "line 2 [hub]",
        "line 4 [filer]",
    ]
    assert (await owner.say("/logs 1")).endswith("line 4 [filer]")


@pytest.mark.req("CMD-01")
async def test_the_end_of_a_long_log_is_looked_through_and_not_its_beginning(owner: Speaker) -> None:
    early, late = (f"2026-11-18 0{hour}:00:00,000 ERROR   - annabelle.x: in hour {hour}\n" for hour in (1, 2))
    quiet = "2026-11-18 01:30:00,000 INFO    - annabelle.x: nothing\n" * 200
    (owner.house.hub.base.home.logs / "filer.log").write_text(early + quiet + late)
    shown = await owner.say("/logs 50")
    assert "in hour 2 [filer]" in shown
    assert "in hour 1" not in shown


@pytest.mark.req("CMD-01")
async def test_what_is_written_wrongly_is_explained_and_does_nothing(owner: Speaker) -> None:
    await owner.say("hello")
    for wrong in ("/logs 0", "/logs 51", "/logs ten", "/logs 5 5", "/security 0", "/security ²",
        "/delete", "/delete 0h", "/delete 1000h", "/delete 501", "/delete 0", "/delete tomorrow", "/delete today now",
        "/delete messages", "/delete confirm today", "/kill everything", "/kill all now", "/status full", "/cron x",
        "/help nothing", "/stop it", "/new one", "/approve a b",
    ):  # fmt: skip
        assert "Say: /" in await owner.say(wrong), wrong
    assert owner.asked == ["hello"]
    assert Halts(owner.house.hub.base.home.halts_file).stopped == ()


@pytest.mark.req("CMD-01")
async def test_what_is_no_command_goes_to_the_model_as_it_is(owner: Speaker) -> None:
    for text in ("/etc/hosts", "/xyzzy", "/ status", "see /status", "//status", "/shrug it is fine"):
        assert await owner.say(text) == f"You said: {text}"


@pytest.mark.req("CMD-01")
async def test_a_mistyped_command_is_offered_rightly(owner: Speaker) -> None:
    reply = await owner.reply("/staus")
    assert reply["text"] == "There is no command /staus. Did you mean /status?"
    assert reply["metadata"]["buttons"] == [{"label": "/status", "command": "/status"}]  # type: ignore[index]
    assert owner.asked == []


@pytest.mark.req("CMD-03")
async def test_what_is_for_admins_is_refused_to_others_in_one_sentence(house: House) -> None:
    ada = await let_in(house, "ada")
    await ada.say("hello")
    offered = [one["name"] for one in (await ada.http.get("/commands")).json()["commands"]]
    assert "status" in offered
    told = await ada.say("/help")
    for command in FOR_ADMINS:
        name = command.split()[0]
        assert await ada.say(command) == f"Only an admin of this Annabelle may use {name}."
        assert Halts(house.hub.base.home.halts_file).everything is None
        assert name[1:] not in offered
        assert name not in told


@pytest.mark.req("CMD-03")
async def test_an_admin_of_users_json_may_stop_and_resume_and_loses_it_with_the_mark(house: House) -> None:
    ada = await let_in(house, "ada", admin=True)
    assert "scheduler is stopped" in await ada.say("/kill scheduler")
    assert await ada.say("/resume scheduler") == "scheduler goes on."
    set_admin(house.hub.base.home.users_file, "ada", admin=False)
    house.hub.security.users.reload_if_changed()
    assert "Only an admin" in await ada.say("/kill scheduler")
    assert Halts(house.hub.base.home.halts_file).stopped == ()


@pytest.mark.req("CMD-01")
async def test_a_person_sees_nothing_of_others(house: House, owner: Speaker) -> None:
    ada = await let_in(house, "ada")
    await house.say({"to": "anna"})
    assert await ada.say("/approve") == "No question waits for your answer."
    question = str((await house.asked())[0]["id"])
    assert "There is no question" in await ada.say(f"/approve {question}")
    assert "Servers:" not in await ada.say("/status")
    assert "for everybody" in await owner.say("/cost")
    assert "for everybody" not in await ada.say("/cost")


@pytest.mark.req("CMD-01")
@pytest.mark.incident("I-20")
async def test_a_command_that_comes_twice_is_carried_out_and_answered_once(house: House, owner: Speaker) -> None:
    await house.say({"to": "anna"})
    await house.say({"to": "bob"})
    both = await asyncio.gather(*(owner.post("/approve", externalId="update-7") for _ in range(2)))
    assert sorted(bool(one["duplicate"]) for one in both) == [False, True]
    assert both[0]["reply"] == both[1]["reply"]
    assert len(await house.asked()) == 1, "one question was answered, and the other still waits"
    again = await owner.post("/approve", externalId="update-7")
    assert (again["duplicate"], again["reply"]) == (True, both[0]["reply"])
    assert len(await house.asked()) == 1


@pytest.mark.req("CMD-01")
@pytest.mark.parametrize("kind", ["agent", "device"])
async def test_a_token_gives_no_command_beyond_its_scopes(house: House, owner: Speaker, kind: str) -> None:
    asked = {"name": "other", "kind": kind, "scopes": ["talk"]}
    token = (await house.owner.post("/tokens", json=asked)).json()["secret"]
    house.hub.security.users.reload_if_changed()
    other = Speaker(house, client(house.hub, token))
    await house.say({"to": "anna"})
    briefs = len(owner.asked)
    answers = [await other.say(command) for command in ("/approve", "/kill", "/delete 5 confirm")]
    assert len(await house.asked()) == 1
    assert Halts(house.hub.base.home.halts_file).everything is None
    if kind == "agent":
        assert len(owner.asked) == briefs + 3, "what an agent says is no command"
    else:
        assert answers[0] == "/approve needs the scope approve, which this token does not have."
        assert len(owner.asked) == briefs


@pytest.mark.req("CMD-01", "TRU-03")
async def test_commands_are_no_part_of_what_the_person_said(house: House, owner: Speaker) -> None:
    await owner.say("Write to Bob.")
    await owner.say("/memory delete everything")
    last = await owner.post("And now?")
    words = await house.hub.storage.database.read(
        lambda conn: tool_calls.list_person_words(conn, str(last["messageId"]))
    )
    assert words == ["And now?", "Write to Bob."]
    sources = [source for source, _ in await house.said(last["threadId"])]
    assert sources == ["user", "agent", "command", "agent", "user", "agent"]


@pytest.mark.req("CMD-01")
async def test_approve_and_deny_answer_the_newest_question_of_the_chat_or_the_named_one(
    house: House, owner: Speaker
) -> None:
    await house.say({"to": "anna"})
    await house.say({"to": "bob"}, chat="other")
    await house.say({"to": "carl"}, chat="other")
    anna = str((await house.asked())[0]["id"])
    there = Speaker(house, house.owner, "other")
    reply = await there.reply("/approve")
    assert str(reply["text"]).startswith("Approved: post letter.")
    buttons = reply["metadata"]["buttons"]  # type: ignore[index]
    assert [one["label"] for one in buttons] == ["Yes", "No"]
    await house.machine.hub.conversations.turns.wait_all_over(20)
    assert house.posted == [{"to": "carl"}]
    await there.say(buttons[1]["command"])
    assert await owner.say(f"/deny {anna}") == "Denied: post letter."
    await house.machine.hub.conversations.turns.wait_all_over(20)
    assert (house.posted, await house.asked()) == ([{"to": "carl"}], [])
    assert "was denied" in await owner.say(f"/approve {anna}")


@pytest.mark.req("CMD-01")
async def test_commands_work_where_conversations_are_left_to_a_client_and_where_an_agent_is_stopped(
    home: Home,
) -> None:
    async with a_house(home, thinker_enabled=False) as house:
        owner = Speaker(house, house.owner)
        assert "Annabelle" in await owner.say("/status")
        with pytest.raises(Unavailable):
            await house.hub.conversations.gate.receive(_message("hello"))
        await owner.say("/kill all")
        assert "Everything is stopped." in await owner.say("/status")


@pytest.mark.req("CMD-01")
async def test_a_full_queue_takes_commands(home: Home) -> None:
    async with a_house(home, max_queued_per_thread=1) as house:
        add_memory(house)
        house.hub.conversations.thread_queue.pause()
        await house.owner.post("/message", json={"text": "waits"})
        assert (await house.owner.post("/message", json={"text": "too much"})).status_code == 429
        assert "Annabelle" in await Speaker(house, house.owner).say("/status")


@pytest.mark.req("CMD-01")
async def test_a_command_that_fails_unexpectedly_is_answered_all_the_same(
    owner: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object, _user_id: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("annabelle.hub.skills.skill_service.SkillService.list", fail)
    assert await owner.say("/cron") == "/cron failed unexpectedly; the log says why."


@pytest.mark.req("CMD-01", "THR-04")
async def test_an_answer_with_buttons_is_also_told_live(house: House, owner: Speaker) -> None:
    said = await owner.post("/kill scheduler")
    told = [event["data"] for event in await house.events(said["messageId"]) if event["type"] == "message"]
    assert told[0]["buttons"] == [{"label": "Let it go on", "command": "/resume scheduler"}]  # type: ignore[index]
    assert json.loads(json.dumps(told[0]))["command"] == "kill"


def _message(text: str) -> InboundMessage:
    return InboundMessage(channel="api", chat_id="main", sender_id=OWNER, text=text)
