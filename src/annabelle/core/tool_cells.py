"""Folds the events of a turn into tool cells: what each of its tool calls is doing, or came to (THR-01).

A pure fold, as `core/turn_view.py`: a later attempt of a step replaces the calls of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from annabelle.core.messages import TurnEvent
from annabelle.core.tools import JsonObject, name_in_words

CellStatus = Literal["in_progress", "success", "failure"]
QuestionOutcome = Literal["open", "continued", "ended"]
"""What became of the question a call waits for; `continued`: the turn that goes on makes the call."""

_UNFINISHED: Final[JsonObject] = {"code": "outcome_unknown", "message": "The turn ended before there was a result."}
_NOT_MADE: Final[JsonObject] = {"code": "denied", "message": "The call was not made."}


@dataclass(frozen=True, slots=True)
class ToolCell:
    """One tool call, as a person sees it. `data` and `error` are what its events hold, and no more."""

    id: str
    name: str
    input: JsonObject
    status: CellStatus = "in_progress"
    data: JsonObject = field(default_factory=dict[str, object])
    progress: str | None = None
    error: JsonObject | None = None
    approval_id: str | None = None
    """The question it waits for."""
    step: int = 0
    attempt: int = 0

    @property
    def message(self) -> str:
        """A short sentence for people."""
        words = name_in_words(self.name)
        match self.status:
            case "success":
                return f"Called {words}."
            case "failure":
                reason = str((self.error or {}).get("message") or "").rstrip(".")
                return f"Calling {words} failed: {reason}." if reason else f"Calling {words} failed."
            case "in_progress":
                return f"Calling {words}." if self.approval_id is None else f"Calling {words} waits for your answer."

    def to_metadata(self) -> JsonObject:
        found: JsonObject = {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "input": self.input,
            "data": self.data,
            "message": self.message,
            "progress": self.progress,
            "error": self.error,
        }
        return found if self.approval_id is None else found | {"approval_id": self.approval_id}


def fold_tool_cells(
    events: Iterable[TurnEvent], *, over: bool, questions: Mapping[str, QuestionOutcome] | None = None
) -> list[ToolCell]:
    """The cells of one turn in the order of its calls. In a turn that is `over` no call is in progress, except one
    that waits for the person; `questions` tells what became of those, by id."""
    cells: dict[str, ToolCell] = {}
    attempts: dict[int, int] = {}
    for event in events:
        if event.type not in ("tool_start", "tool_complete", "notice"):
            continue
        if event.type == "notice":
            _add_progress(cells, event.data)
        elif event.attempt >= attempts.get(event.step, event.attempt):
            if event.attempt > attempts.get(event.step, event.attempt):
                cells = {name: cell for name, cell in cells.items() if cell.step != event.step}
            attempts[event.step] = event.attempt
            _add_call(cells, event)
    ended = (_end_cell(cell, questions or {}) if over else cell for cell in cells.values())
    return [cell for cell in ended if cell is not None]


def _add_call(cells: dict[str, ToolCell], event: TurnEvent) -> None:
    data = event.data
    call_id = str(data.get("call_id") or "")
    cell = cells.get(call_id)
    if cell is None:
        given = data.get("arguments")
        known = cast("JsonObject", given) if isinstance(given, dict) else {}
        cell = ToolCell(call_id, str(data.get("name") or ""), known, step=event.step, attempt=event.attempt)
    if event.type == "tool_complete":
        if data.get("status") == "waiting":
            cell = replace(cell, approval_id=str(data.get("approval_id") or ""))
        else:
            result: JsonObject = {name: data[name] for name in ("summary", "duration_ms") if name in data}
            worked = data.get("status") == "success"
            error = data.get("error")
            cell = replace(
                cell,
                status="success" if worked else "failure",
                data=result,
                error=cast("JsonObject", error) if isinstance(error, dict) else None,
            )
    cells[call_id] = cell


def _add_progress(cells: dict[str, ToolCell], data: JsonObject) -> None:
    """Progress of the call it names, or else of the latest one that runs."""
    text = data.get("progress")
    if not isinstance(text, str) or not text:
        return
    named = data.get("call_id")
    running = [name for name, cell in cells.items() if cell.status == "in_progress"]
    call_id = named if isinstance(named, str) else next(reversed(running), None)
    if call_id is not None and call_id in cells:
        cells[call_id] = replace(cells[call_id], progress=text)


def _end_cell(cell: ToolCell, questions: Mapping[str, QuestionOutcome]) -> ToolCell | None:
    """The cell when its turn is over; None if the turn that goes on shows the call."""
    if cell.status != "in_progress":
        return cell
    if cell.approval_id is None:
        return replace(cell, status="failure", error=_UNFINISHED)
    match questions.get(cell.approval_id, "ended"):
        case "open":
            return cell
        case "continued":
            return None
        case "ended":
            return replace(cell, status="failure", error=_NOT_MADE, approval_id=None)
