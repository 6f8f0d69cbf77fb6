"""What a person sees of a skill and changes about it over HTTP (SKL-01, SKL-09, POL-09)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.hub.skills.skill_service import SkillOwner
from hub.skills.house import House

DAY = timedelta(days=1)


async def update(house: House, named: str, **changes: object) -> JsonObject:
    answer = await house.owner.post(f"/skills/{named}/update", json=changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.req("SKL-01", "POL-09")
async def test_a_change_by_the_person_counts_in_the_next_run_without_a_question(house: House) -> None:
    await house.add(name="news", instructions="Read my mail.", required_tools=["read_inbox"], schedule="0 6 * * *")
    changed = await update(
        house,
        "news",
        name="rounds",
        when="every day at 7",
        instructions="Look around.",
        requiredTools=["look_around", "fly"],
        notify=False,
        missed="skip",
    )
    assert (changed["name"], changed["when"], changed["notify"], changed["missed"]) == (
        "rounds",
        "every day at 07:00",
        False,
        "skip",
    )
    assert (changed["requiredTools"], changed["missingTools"]) == (["look_around", "fly"], ["fly"])
    await house.run(DAY)
    (brief,) = house.thinker.briefs
    assert "Look around." in brief.text
    assert brief.required_tools == ("look_around", "fly")
    assert await house.said() == []


@pytest.mark.req("SKL-02", "SKL-09")
async def test_a_reminder_says_its_new_words_and_what_is_left_out_stays(house: House) -> None:
    await house.add(message="stretch", when="in 10 minutes")
    before = (await house.owner.get("/skills/stretch")).json()
    after = await update(house, "stretch", message="Drink some water.")
    assert {key: after[key] for key in ("name", "when", "nextDue", "enabled")} == {
        key: before[key] for key in ("name", "when", "nextDue", "enabled")
    }
    await house.run(timedelta(hours=1))
    assert await house.said() == ["⏰ Drink some water."]


@pytest.mark.req("POL-09")
async def test_a_change_is_no_yes_to_a_skill_that_was_only_offered(house: House) -> None:
    owner = SkillOwner(OWNER, "annabelle", (await house.add_looking()).thread_id)
    given: JsonObject = {"name": "offer", "instructions": "Look.", "schedule": "0 6 * * *", "enabled": False}
    await house.service.add(given, owner, confirmed=False)
    changed = await update(house, "offer", instructions="Look around.", when="every hour")
    assert (changed["enabled"], changed["confirmedAt"], changed["nextDue"]) == (False, None, None)


@pytest.mark.req("SKL-01")
async def test_what_cannot_be_is_refused_and_changes_nothing(house: House) -> None:
    look = await house.add_looking(schedule="0 6 * * *")
    await house.add(message="stretch", when="every day at 9")
    other = SkillOwner("guest", "annabelle", look.thread_id)
    await house.service.add({"name": "theirs", "message": "x", "when": "every day at 9"}, other)
    tries: list[tuple[str, JsonObject, int]] = [
        ("stretch", {"when": "whenever"}, 422),
        ("stretch", {"when": "every day at 9", "schedule": "0 9 * * *"}, 422),
        ("stretch", {"name": "look"}, 409),
        ("stretch", {"requiredTools": ["memory_store_skill"]}, 422),
        ("stretch", {"enabled": True}, 422),
        ("theirs", {"name": "mine"}, 404),
        ("nothing of the kind", {}, 404),
    ]
    for named, body, status in tries:
        answer = await house.owner.post(f"/skills/{named}/update", json=body)
        assert answer.status_code == status, (body, answer.text)
    shown = (await house.owner.get("/skills/stretch")).json()
    assert (shown["when"], shown["requiredTools"]) == ("every day at 09:00", [])


@pytest.mark.req("SKL-01", "SKL-08")
async def test_every_skill_is_listed_with_what_came_of_its_last_run(house: House) -> None:
    await house.add_looking(schedule="0 6 * * *")
    await house.add(message="stretch", when="in 10 minutes")
    await house.add(message="later", when="in 5 days")
    await house.run(2 * DAY)
    listed = {one["name"]: one for one in (await house.owner.get("/skills")).json()["skills"]}
    newest = (await house.owner.get("/fires", params={"skill": "look"})).json()["fires"][0]
    assert listed["look"]["lastFire"] == newest
    assert (listed["stretch"]["lastFire"]["state"], listed["later"]["lastFire"]) == ("finished", None)
    assert (await house.owner.get("/skills/look")).json() == listed["look"]
    assert not listed["look"]["hasWebhook"]
    await house.owner.post("/skills/look/webhook")
    assert (await house.owner.get("/skills/look")).json()["hasWebhook"]
