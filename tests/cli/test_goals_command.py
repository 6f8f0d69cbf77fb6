"""`annabelle goals`, `feed` and `tasks`: goals made, talked to and followed from the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from cli.terminal import Terminal, run
from hub.hubs import wait_for
from support.scripted_model import plan_text


def shown(running: dict[str, str], *words: str) -> dict[str, object]:
    done = run(running, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def _no_goals_left(running: dict[str, str]) -> Iterator[None]:
    """The tests share a hub."""
    yield
    for one in shown(running, "goals", "list", "--all")["goals"]:  # type: ignore[union-attr]
        run(running, "goals", "delete", one["goalId"], "--yes")  # type: ignore[index]


@pytest.mark.req("THR-03", "AGE-02")
def test_a_goal_is_made_shown_changed_ordered_put_away_and_deleted(running: dict[str, str]) -> None:
    assert "annabelle goals new" in run(running, "goals").stdout
    made = run(
        running, "goals", "new", "--title", "Learn the piano", "--description", "A prelude by summer.",
        "--learning", "I have a keyboard.", "--check-in", "weekdays 8:30",
    )  # fmt: skip
    assert "Learn the piano is set up" in made.stdout, made.stderr
    run(running, "goals", "new", "--title", "Garden")
    whole = run(running, "goals", "show", "piano").stdout
    for words in ("A prelude by summer.", "I have a keyboard.", "08:30", "0 notes"):
        assert words in whole
    assert "was changed" in run(running, "goals", "edit", "1", "--description", "Two preludes.").stdout
    assert "friday" not in run(running, "goals", "check-in", "1", "friday 17:00").stderr
    triggers = [one["trigger"].get("schedule") for one in shown(running, "goals", "check-in", "1")["checkIns"]]  # type: ignore[union-attr, index]
    assert "0 17 * * 5" in triggers
    assert "is not understood" in run(running, "goals", "check-in", "1", "sometimes").stderr
    (kept,) = shown(running, "goals", "learnings", "1")["learnings"]  # type: ignore[misc]
    changed = run(running, "goals", "learnings", "1", "--change", kept["learningId"], "I have a piano.")
    assert "I have a piano." in changed.stdout
    assert "Nothing was learnt" in run(running, "goals", "learnings", "1", "--remove", kept["learningId"]).stdout
    ordered = run(running, "goals", "order", "garden").stdout
    assert ordered.index("Garden") < ordered.index("Learn the piano")
    assert "is archived" in run(running, "goals", "archive", "piano").stdout
    assert "piano" not in run(running, "goals").stdout
    assert "piano" in run(running, "goals", "list", "--all").stdout
    assert "taken up again" in run(running, "goals", "reopen", "piano").stdout
    assert run(running, "goals", "delete", "piano", "--json").returncode != 0
    for goal in ("piano", "garden"):
        assert "is deleted" in run(running, "goals", "delete", goal, "--yes").stdout
    assert run(running, "goals", "show", "piano").returncode != 0


@pytest.mark.req("AGE-03", "THR-03")
def test_what_is_said_to_a_goal_starts_a_task_that_can_be_watched_to_its_end(running: dict[str, str]) -> None:
    assert run(running, "goals", "new", "--title", "Learn the piano").returncode == 0
    research = plan_text([("emit_progress", {"message": "Looking around"})], say="Three teachers.")
    asked = plan_text([("create_task", {"title": "Teachers", "instructions": research})], say="I look for them.")
    said = run(running, "goals", "chat", "piano", stdin=asked + "\n")
    assert "I look for them." in said.stdout, said.stderr
    (task,) = shown(running, "tasks", "list", "--goal", "piano")["tasks"]  # type: ignore[misc]
    watched = run(running, "tasks", "watch", task["taskId"])
    assert "Teachers: completed" in watched.stdout, watched.stderr
    assert "Three teachers." in watched.stdout
    assert shown(running, "tasks", "show", task["taskId"])["note"]["title"] == "Teachers"  # type: ignore[index]
    assert run(running, "tasks", "retry", task["taskId"]).returncode != 0
    assert task["taskId"] in run(running, "tasks").stdout
    assert "1 notes" in run(running, "goals", "show", "piano").stdout


@pytest.mark.req("AGE-09", "THR-03")
def test_the_feed_says_when_it_comes_and_can_be_moved(running: dict[str, str]) -> None:
    assert "nothing in your feed" in run(running, "feed").stdout
    assert "no goal yet" in run(running, "feed", "schedule", "--morning", "07:00").stderr
    run(running, "goals", "new", "--title", "Garden")
    moved = shown(running, "feed", "schedule", "--morning", "7:00", "--evening", "off")
    assert (moved["morning"], moved["afternoon"], moved["evening"]) == ("07:00", "13:00", None)
    assert "off" in run(running, "feed", "schedule").stdout
    assert shown(running, "feed", "history") == {"items": [], "before": None}


@pytest.mark.req("AGE-12")
def test_a_goal_is_set_up_in_a_guided_chat_after_a_yes(visit: Callable[..., Terminal], running: dict[str, str]) -> None:
    chat = visit("goals", "new")
    chat.expect("Say what you want to reach")
    chat.expect("› ")
    goal = {
        "title": "Run ten kilometres",
        "description": "By May.",
        "check_in": {"frequency": "daily", "time": "07:00"},
    }
    chat.type(plan_text([("create_goal", goal)], say="It is set up.") + "\n")
    assert "Run ten kilometres" in chat.expect(r"\[l\]ater\? ")
    chat.press("y\n")
    chat.expect("It is set up")
    wait_for(
        lambda: [one["title"] for one in shown(running, "goals")["goals"]] == ["Run ten kilometres"],  # type: ignore[union-attr, index]
        "the goal",
    )


@pytest.mark.req("AGE-12")
def test_without_a_terminal_and_without_a_line_a_guided_chat_says_so(running: dict[str, str]) -> None:
    refused = run(running, "goals", "new", stdin="")
    assert refused.returncode == 2
    assert "nothing to say" in refused.stderr
    assert "needs a title" in run(running, "goals", "new", "--description", "x").stderr


@pytest.mark.req("THR-03")
@pytest.mark.parametrize("title", ["CI/CD", "..", "100 % {done}?", "<b>loud</b> #1"])
def test_a_goal_is_found_whatever_signs_its_title_has(running: dict[str, str], title: str) -> None:
    assert run(running, "goals", "new", "--title", title).returncode == 0
    assert shown(running, "goals", "show", title)["title"] == title
    assert "is archived" in run(running, "goals", "archive", title).stdout
    assert run(running, "goals", "show", "no/such").stderr.startswith("There is no goal “no/such”.")
