"""Answers that are kept by the id of their question: asked once, found again, also by the next process.

A question is a workflow of this agent's durable engine under its own id. One that ended in an error, such as a provider
that was down or a paused agent, has no answer: posted again, it is asked again, under the next number.
"""

from __future__ import annotations

from typing import Final

from annabelle.core.errors import AnnabelleError, StorageTrouble, Unavailable
from annabelle.core.tools import JsonObject
from annabelle.durable.outcome import ERROR, unwrap
from annabelle.thinker.engine import Engine

_MOST_TRIES: Final = 50


class KeptAnswers:
    """Starts workflows that return an outcome of `durable.outcome`, and reads it back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, workflow: str, question_id: str, argument: JsonObject, wait: float) -> object:
        """The answer, waiting for it up to `wait` seconds; raises the error that stands in its place."""
        for number in range(1, _MOST_TRIES + 1):
            workflow_id = question_id if number == 1 else f"{question_id}:{number}"
            if await self._failed_before(workflow_id):
                continue
            await self._engine.start(workflow, workflow_id, argument)
            await self._engine.recorded(workflow_id, wait)
            outcome = await self._engine.finished(workflow_id)
            if outcome is None:
                raise Unavailable("The model has not answered yet.", hint="Ask again with the same id.")
            return unwrap(outcome)
        raise Unavailable(f"This failed {_MOST_TRIES} times.", hint="Ask with a new id.")

    async def _failed_before(self, workflow_id: str) -> bool:
        if not await self._engine.exists(workflow_id):
            return False
        try:
            outcome = await self._engine.finished(workflow_id)
        except (StorageTrouble, Unavailable):
            raise  # the record could not be read, which says nothing about the question
        except AnnabelleError:
            return True  # it broke in a way nobody foresaw
        return outcome is not None and ERROR in outcome
