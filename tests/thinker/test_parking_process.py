"""Real thinkers that park a turn, are killed, and go on with it in another process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from annabelle.core.contract import AnsweredApproval, Resumption, TurnBrief
from annabelle.core.tools import ToolResult
from annabelle.thinker import failpoints as moments
from support.scripted_model import ScriptedServer, plan_text
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker, brief

Start = Callable[..., Thinker]


def ask_first(hub: FakeHub, done: list[dict[str, Any]]) -> None:
    """The hub asks about the first call, and has a yes for every later one."""

    def write_note(arguments: dict[str, Any]) -> ToolResult:
        if not asked:
            asked.append(arguments)
            return ToolResult(text="May I write this note?", approval_id="apr_1")
        done.append(arguments)
        return ToolResult(text="written")

    asked: list[dict[str, Any]] = []
    hub.handlers["write_note"] = write_note


def going_on(asked: TurnBrief, state: Any) -> TurnBrief:
    result = state.result
    assert result is not None
    assert (result.text, result.success) == ("May I write this note?", True)
    assert result.parked is not None
    yes = AnsweredApproval(approval_id="apr_1", verdict="approved")
    return brief(
        result.parked.text, resume=Resumption(message_id=asked.message_id, parked=result.parked, answers=(yes,))
    )


@pytest.mark.req("POL-03", "DUR-02")
@pytest.mark.incident("I-28")
@pytest.mark.parametrize("failpoint", [moments.AFTER_ACCEPT, moments.AFTER_TOOL])
def test_a_parked_turn_is_finished_by_another_process_whenever_that_is_killed(
    start: Start, hub: FakeHub, model: ScriptedServer, failpoints: Path, failpoint: str
) -> None:
    done: list[dict[str, Any]] = []
    ask_first(hub, done)
    asked = brief(plan_text([("look_up", {"text": "a"}), ("write_note", {"text": "b"})], say="Written."))
    first = start()
    carried = going_on(asked, first.ask(asked))
    requests = len(model.requests)
    first.kill()
    first.wait_until_gone()

    (failpoints / failpoint).touch()
    second = start()
    with contextlib.suppress(httpx.TransportError):
        second.client.post("/process-message", content=carried.model_dump_json())
    second.wait_until_gone()

    third = start()
    state = third.ask(carried)
    assert state.result is not None
    assert (state.state, state.result.text, state.result.parked) == ("done", "Written.", None)
    assert state.result.tools_used == ("look_up", "write_note")
    assert done == [{"text": "b"}]
    assert hub.effects[-1] == f"{carried.message_id}:2:0"
    assert requests + 1 <= len(model.requests) <= requests + 2
