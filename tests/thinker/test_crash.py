"""Kill -9 at every named moment: the turn goes on behind its last finished step, and nothing happens twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.core.tools import ToolResult
from annabelle.thinker.failpoints import FAILPOINTS
from support.postgres import connect, session_records
from support.scripted_model import ScriptedServer, plan_text
from thinker.fake_hub import FakeHub, tool
from thinker.thinkers import Thinker, brief, wait_for

Start = Callable[..., Thinker]


@pytest.fixture(params=["sqlite", "postgresql"])
def records(
    request: pytest.FixtureRequest, settings: dict[str, str], home: Home
) -> Iterator[Callable[[str], list[dict[str, object]]]]:
    """Runs the test on each engine; reads a session back from where that engine keeps it."""
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_tables_url"))
        settings["DATABASE_URL"] = url
        with connect(url) as connection:
            yield partial(session_records, connection)
        return
    folder = home.agent("tess") / "sessions"
    yield lambda thread_id: [json.loads(line) for line in (folder / f"{thread_id}.jsonl").read_text().splitlines()]


AFTER = [point for point in FAILPOINTS if ".after_" in point]
"""Just before a step, a database holds what it held after the one before: one engine is enough there."""


@pytest.mark.req("DUR-02", "SES-01", "SES-05", "TRC-01")
@pytest.mark.parametrize(
    ("records", "failpoint"),
    [*(("sqlite", point) for point in FAILPOINTS), *(("postgresql", point) for point in AFTER)],
    indirect=["records"],
)
def test_a_turn_survives_a_kill(
    start: Start,
    hub: FakeHub,
    model: ScriptedServer,
    failpoints: Path,
    records: Callable[[str], list[dict[str, object]]],
    failpoint: str,
) -> None:
    asked = brief(plan_text([("look_up", {"text": "a"}), ("write_note", {"text": "b"})], say="Both done."))
    (failpoints / failpoint).touch()
    first = start()
    with contextlib.suppress(httpx.TransportError):
        first.client.post("/process-message", content=asked.model_dump_json())
    first.wait_until_gone()
    assert [file.name for file in failpoints.iterdir()] == [f"{failpoint}.hit-{first.pid}"]

    second = start()
    state = second.ask(asked)
    assert state.result is not None
    assert (state.state, state.result.text, state.result.steps) == ("done", "Both done.", 3)
    assert state.result.tools_used == ("look_up", "write_note")
    assert state.result.unknown_outcomes == ()
    assert sorted(hub.effects) == [f"{asked.message_id}:1:0", f"{asked.message_id}:2:0"]
    assert 3 <= len(model.requests) <= 4
    assert len({call["call_id"] for call in hub.reserved}) == len(model.requests)
    assert hub.traces == {asked.trace_id}

    keys = [event["event"]["key"] for event in second.events(asked.message_id)]
    facts = [key for key in keys if not key[-1].isdigit()]
    assert facts == [
        "1:usage", "1:tool:0:start", "1:tool:0:complete",
        "2:usage", "2:tool:0:start", "2:tool:0:complete",
        "3:text", "3:usage",
    ]  # fmt: skip
    kept = records("thr_one")
    assert [record["type"] for record in kept] == ["header", "turn"]
    assert (kept[1]["message_id"], kept[1]["assistant"]) == (asked.message_id, "Both done.")


@pytest.mark.req("DUR-02", "LOOP-01")
def test_calls_that_ran_at_the_same_time_each_keep_their_own_result(
    start: Start, hub: FakeHub, failpoints: Path, records: Callable[[str], list[dict[str, object]]]
) -> None:
    hub.tools = [tool("first", read_only=True), tool("second", read_only=True)]
    hub.handlers = {name: lambda a, name=name: ToolResult(text=f"of {name}") for name in ("first", "second")}
    hub.held.add("first")  # so the second ends before it
    both = [{"name": "first", "arguments": {}}, {"name": "second", "arguments": {}}]
    asked = brief(json.dumps({"calls": [both], "say": "done"}))
    thinker = start()
    thinker.client.post("/process-message", content=asked.model_dump_json())
    wait_for(lambda: f"{asked.message_id}:1:1" in hub.effects)
    (failpoints / "thinker.after_tool").touch()  # hit by the first, if not already by the second
    hub.held.clear()
    thinker.wait_until_gone()
    assert start().ask(asked).state == "done"
    assert sorted(hub.effects) == [f"{asked.message_id}:1:0", f"{asked.message_id}:1:1"]
    parts = cast("list[dict[str, str]]", cast("list[dict[str, object]]", records("thr_one")[1]["messages"])[2]["parts"])
    assert [(part["tool_name"], part["content"]) for part in parts] == [("first", "of first"), ("second", "of second")]


@pytest.mark.req("DUR-02")
def test_deltas_of_a_killed_attempt_are_superseded_by_a_higher_one(
    start: Start, hub: FakeHub, failpoints: Path
) -> None:
    asked = brief("hello")
    (failpoints / "thinker.after_model").touch()
    first = start()
    first.client.post("/process-message", content=asked.model_dump_json())
    seen: list[dict[str, object]] = []
    path = f"/turns/{asked.message_id}/events"
    with contextlib.suppress(httpx.TransportError), first.client.stream("GET", path) as reply:
        seen += [json.loads(line) for line in reply.iter_lines()]
    first.wait_until_gone()
    second = start()
    second.ask(asked)
    events = second.events(asked.message_id, after=99, stream="st_of_the_dead_process")
    attempts = [event["event"]["attempt"] for event in events]
    assert min(attempts) >= 200
    assert all(event["event"]["attempt"] < 200 for event in seen)  # type: ignore[index]


@pytest.mark.req("DUR-02")
def test_several_turns_of_several_threads_all_go_on_after_a_kill(start: Start, hub: FakeHub) -> None:
    first = start()
    hub.held.add("write_note")  # until all five run
    asked = [
        brief(plan_text([("write_note", {"text": str(n)})], say=f"done {n}"), thread_id=f"thr_{n}") for n in range(5)
    ]
    for one in asked:
        first.client.post("/process-message", content=one.model_dump_json())
    wait_for(lambda: hub.running == 5)
    first.kill()
    first.wait_until_gone()
    hub.held.clear()
    second = start()
    for number, one in enumerate(asked):
        result = second.state(one.message_id).result
        assert result is not None
        assert result.text == f"done {number}"
    assert len(hub.effects) == len(set(hub.effects)) == 5


def dead_or_done(thinker: Thinker, message_id: str) -> bool:
    return not thinker.alive or thinker.state(message_id, 0).result is not None


@pytest.mark.req("DUR-02")
def test_a_turn_killed_again_and_again_still_ends_once(
    start: Start, hub: FakeHub, failpoints: Path, home: Home
) -> None:
    asked = brief(plan_text([("look_up", {"text": "a"}), ("write_note", {"text": "b"})], say="At last."))
    for failpoint in AFTER:
        (failpoints / failpoint).touch()
        thinker = start()
        with contextlib.suppress(httpx.TransportError):
            thinker.client.post("/process-message", content=asked.model_dump_json())
        wait_for(partial(dead_or_done, thinker, asked.message_id))
        thinker.kill()
        thinker.wait_until_gone()
    state = start().ask(asked)
    assert state.result is not None
    assert state.result.text == "At last."
    assert len(hub.effects) == 2
    lines = (home.agent("tess") / "sessions" / "thr_one.jsonl").read_text().splitlines()
    assert len(lines) == 2
