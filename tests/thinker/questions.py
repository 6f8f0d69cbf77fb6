"""A hub's approvals in memory: calls without a yes are answered with a question, a yes is used by one call."""

from __future__ import annotations

import json
from typing import Any

from annabelle.core.contract import AnsweredApproval, ParkedTurn, Resumption, TurnResult
from annabelle.core.tools import ToolResult
from thinker.fakes import Bench


class Person:
    """Is asked about every call of the tools that `asks` makes, and answers when the test says so."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self._granted: list[str] = []
        self._questions: dict[str, str] = {}

    def asks(self, name: str) -> Any:
        def call(arguments: dict[str, Any]) -> ToolResult:
            exact = json.dumps([name, arguments], sort_keys=True)
            if exact in self._granted:
                self._granted.remove(exact)
                self.done.append((name, arguments))
                return ToolResult(text=f"did {name}")
            approval = f"apr_{len(self._questions)}"
            self._questions[approval] = exact
            return ToolResult(text=f"May I call {name} with {arguments}?", approval_id=approval)

        return call

    def yes(self, approval: str, arguments: dict[str, Any] | None = None, note: str = "") -> AnsweredApproval:
        name, asked = json.loads(self._questions[approval])
        self._granted.append(json.dumps([name, arguments or asked], sort_keys=True))
        return AnsweredApproval(approval_id=approval, verdict="approved", arguments=arguments, note=note)

    def no(self, approval: str, note: str = "") -> AnsweredApproval:
        return AnsweredApproval(approval_id=approval, verdict="denied", note=note)


def parked(result: TurnResult) -> ParkedTurn:
    assert result.success
    assert result.parked is not None
    return result.parked


def resumption(root: str, result: TurnResult, *answers: AnsweredApproval) -> Resumption:
    """As the hub hands it over: through JSON."""
    made = Resumption(message_id=root, parked=parked(result), answers=answers)
    return Resumption.model_validate_json(made.model_dump_json())


async def resumed(bench: Bench, root: str, result: TurnResult, *answers: AnsweredApproval, **fields: Any) -> TurnResult:
    """The turn goes on under a message of its own, as after the person's answer."""
    return await bench.run(parked(result).text, resume=resumption(root, result, *answers), **fields)
