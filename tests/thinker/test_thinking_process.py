"""A whole thinker thinks by default, and tells its totals."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.core.trace import read_trace
from support.scripted_model import plan_text
from thinker.conftest import Start
from thinker.thinkers import brief


@pytest.mark.req("CMP-02", "CMP-06")
def test_the_totals_of_thinking_are_in_its_health(start: Start, home: Home) -> None:
    thinker = start()
    before = thinker.client.get("/health").json()["thinking"]
    assert (before["enabled"], before["strategy"], before["turns"]) == (True, "adaptive", 0)
    asked = brief(plan_text([("look_up", {"text": "moon"})], say="It said {result}."))
    thinker.ask(asked)
    after = thinker.client.get("/health").json()["thinking"]
    assert (after["turns"], after["succeeded"], after["cycles"], after["calls"]) == (1, 1, 2, 0)
    assert after["tokens_before"] == after["tokens_after"] > 0
    done = [one["data"] for one in read_trace(home.traces_file, asked.trace_id) if one["event"] == "thinking.done"]
    assert [isinstance(one, dict) and one["strategy"] for one in done] == ["none", "none"]


@pytest.mark.req("CMP-01")
def test_a_task_of_a_whole_thinker_works_on_its_workspace(start: Start, home: Home) -> None:
    thinker = start()
    change = {"add_tasks": ["water the plants"], "add_notes": ["the can is in the shed"]}
    asked = brief(plan_text([("update_workspace", change)], say="{result}"), conversational=False)
    state = thinker.ask(asked)
    assert state.result is not None
    assert state.result.text == "0 files open, 1 notes, 1 of 1 tasks to do."
    (kept,) = home.agent("tess").glob("workspaces/*.json")
    assert "water the plants" in kept.read_text()
