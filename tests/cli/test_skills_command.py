"""`annabelle skills`: what runs by itself, seen and changed from the terminal."""

from __future__ import annotations

import json

import pytest

from cli.terminal import run
from hub.hubs import wait_for
from support.scripted_model import plan_text


def listed(running: dict[str, str], *words: str) -> dict[str, list[dict[str, object]]]:
    return json.loads(run(running, "skills", *words, "--json").stdout)


@pytest.fixture
def stretch(running: dict[str, str]) -> str:
    plan = plan_text([("memory_store_skill", {"message": "Stretch", "when": "every day at 11:00"})], say="I will.")
    assert run(running, "ask", plan).stdout.strip() == "I will."
    return "Stretch"


@pytest.mark.req("SKL-01", "SKL-08")
def test_a_reminder_is_listed_run_switched_and_removed(running: dict[str, str], stretch: str) -> None:
    assert stretch in run(running, "skills").stdout
    assert [one["name"] for one in listed(running, "next", "--days", "2")["fires"]].count(stretch) == 2
    assert "every day at 11:00" in run(running, "skills", "show", stretch).stdout
    assert "runs" in run(running, "skills", "run", stretch).stdout
    wait_for(
        lambda: [one["state"] for one in listed(running, "history", stretch)["fires"]] == ["finished"],
        "the end of the run",
    )
    assert "finished" in run(running, "skills", "history").stdout
    run(running, "skills", "disable", stretch)
    assert stretch not in [one["name"] for one in listed(running)["skills"]]
    assert "off" in run(running, "skills", "list", "--all").stdout
    run(running, "skills", "enable", stretch)
    assert stretch in [one["name"] for one in listed(running)["skills"]]
    assert "Deleted: Stretch." in run(running, "skills", "remove", stretch).stdout
    assert run(running, "skills", "show", stretch).returncode != 0


@pytest.mark.req("SES-03", "MEM-07")
def test_what_follows_every_conversation_stands_in_the_list_too(running: dict[str, str]) -> None:
    after = {str(one["name"]): one["when"] for one in listed(running)["afterConversations"]}
    assert after["Archive"] == "once a chat has been silent for 30 minutes"
    assert "Archive" in run(running, "skills").stdout
