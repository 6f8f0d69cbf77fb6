"""Tool cells: a pure fold over the events of a turn."""

from __future__ import annotations

import pytest

from annabelle.core.messages import EventType, TurnEvent
from annabelle.core.tool_cells import ToolCell, fold_tool_cells

pytestmark = pytest.mark.req("THR-01")


def event(type_: EventType, *, step: int = 1, attempt: int = 0, **data: object) -> TurnEvent:
    return TurnEvent(message_id="msg_1", key="k", type=type_, step=step, attempt=attempt, data=data)


def start(call_id: str, name: str = "filer_read_file", **more: int) -> TurnEvent:
    return event("tool_start", call_id=call_id, name=name, arguments={"path": call_id}, **more)


def complete(call_id: str, status: str = "success", **data: object) -> TurnEvent:
    return event("tool_complete", call_id=call_id, name="filer_read_file", status=status, **data)


def brief(cells: list[ToolCell]) -> list[tuple[str, str]]:
    return [(cell.id, cell.status) for cell in cells]


def test_a_call_is_in_progress_until_it_worked_or_failed() -> None:
    error = {"code": "not_found", "message": "There is no such file."}
    events = [
        start("a"),
        start("b"),
        start("c"),
        complete("a", summary="three lines", duration_ms=4.0),
        complete("b", "failure", summary="x", error=error),
    ]
    cells = fold_tool_cells(events, over=False)
    assert brief(cells) == [("a", "success"), ("b", "failure"), ("c", "in_progress")]
    assert cells[0].to_metadata() == {
        "id": "a",
        "name": "filer_read_file",
        "status": "success",
        "input": {"path": "a"},
        "data": {"summary": "three lines", "duration_ms": 4.0},
        "message": "Called filer read file.",
        "progress": None,
        "error": None,
    }
    assert cells[1].error == error
    assert cells[1].message == "Calling filer read file failed: There is no such file."
    assert cells[2].message == "Calling filer read file."


def test_a_later_attempt_of_a_step_replaces_its_calls_and_an_earlier_one_changes_nothing() -> None:
    events = [
        start("kept", step=1),
        start("old", step=2, attempt=100),
        start("new", step=2, attempt=200),
        start("late", step=2, attempt=100),
    ]
    assert [cell.id for cell in fold_tool_cells(events, over=False)] == ["kept", "new"]


def test_progress_belongs_to_the_call_it_names_or_to_the_latest_that_runs() -> None:
    events = [
        start("a"),
        start("b"),
        event("notice", progress="page 1", call_id="a"),
        event("notice", progress="half way"),
        event("notice", text="no progress at all"),
        event("notice", progress="of nobody", call_id="z"),
        complete("b"),
        event("notice", progress="page 2"),
    ]
    assert [cell.progress for cell in fold_tool_cells(events, over=False)] == ["page 2", "half way"]


def test_in_a_turn_that_is_over_nothing_is_in_progress_any_more() -> None:
    (cell,) = fold_tool_cells([start("a")], over=True)
    assert (cell.status, (cell.error or {})["code"]) == ("failure", "outcome_unknown")


def test_a_call_that_waits_for_the_person_is_in_progress_until_the_question_is_over() -> None:
    events = [start("a"), complete("a", "waiting", approval_id="apr_1")]
    (cell,) = fold_tool_cells(events, over=True, questions={"apr_1": "open"})
    assert (cell.status, cell.to_metadata()["approval_id"]) == ("in_progress", "apr_1")
    assert cell.message == "Calling filer read file waits for your answer."
    assert fold_tool_cells(events, over=True, questions={"apr_1": "continued"}) == [], "the turn that goes on has it"
    (ended,) = fold_tool_cells(events, over=True, questions={"apr_1": "ended"})
    assert (ended.status, ended.message) == ("failure", "Calling filer read file failed: The call was not made.")
