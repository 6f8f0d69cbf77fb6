"""Asks the cheap model for facts of a conversation, how to tidy facts (MEM-07), or what a text says. Stores nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage

from annabelle.core.contract import (
    ExtractBrief,
    ExtractResult,
    SummaryBrief,
    SummaryResult,
    TidyBrief,
    TidyFactsResult,
)
from annabelle.core.errors import AnnabelleError, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject
from annabelle.core.trace import use_trace
from annabelle.durable.steps import ERROR, failure_outcome, success_outcome, unwrap_outcome
from annabelle.llm.types import ModelRequest
from annabelle.thinker import failpoints
from annabelle.thinker.compression.message_text import response_text
from annabelle.thinker.engine import EXTRACT_WORKFLOW, SUMMARISE_WORKFLOW, TIDY_WORKFLOW, WorkflowEngine
from annabelle.thinker.learning import prompts
from annabelle.thinker.learning.model_answers import parse_actions, parse_facts, parse_summary
from annabelle.thinker.loop.deps import ThinkerDeps
from annabelle.thinker.summary_model import ask_once, is_too_small

_MAX_TRIES: Final = 50


class DurableAnswers:
    """Starts workflows that return an outcome of `durable.steps`, and reads it back."""

    def __init__(self, engine: WorkflowEngine) -> None:
        self._engine = engine

    async def get(self, workflow: str, question_id: str, argument: JsonObject, wait: float) -> object:
        """The answer, waiting for it up to `wait` seconds; raises the recorded error."""
        for number in range(1, _MAX_TRIES + 1):
            workflow_id = question_id if number == 1 else f"{question_id}:{number}"
            if await self._failed_before(workflow_id):
                continue
            await self._engine.start(workflow, workflow_id, argument)
            await self._engine.recorded(workflow_id, wait)
            outcome = await self._engine.finished(workflow_id)
            if outcome is None:
                raise Unavailable("The model has not answered yet.", hint="Ask again with the same id.")
            return unwrap_outcome(outcome)
        raise Unavailable(f"This failed {_MAX_TRIES} times.", hint="Ask with a new id.")

    async def _failed_before(self, workflow_id: str) -> bool:
        if not await self._engine.exists(workflow_id):
            return False
        try:
            outcome = await self._engine.finished(workflow_id)
        except (StorageTrouble, Unavailable):
            raise  # only the record could not be read
        except AnnabelleError:
            return True  # the workflow itself failed
        return outcome is not None and ERROR in outcome


TOO_SMALL: Final = "The packaged model is too small to learn facts; a larger one has to be configured."
UNSUMMARISED: Final = "The packaged model is too small to sum up a text; a larger one has to be configured."
_MOST_OUTPUT_TOKENS: Final = 4_000
# Besides the model's own time: reserving and settling at a slow ledger.
_SLACK_SECONDS: Final = 90.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _LearningQuestion:
    """One question to the model: its prompt, and how its answer is parsed."""

    id: str
    user_id: str
    trace_id: str
    messages: list[ModelMessage]
    read: Callable[[str], tuple[BaseModel, JsonObject]]
    goal_id: str | None = None


class FactLearner:
    """Answers `/extract-facts`, `/tidy-facts` and `/summarise`; the hub uses the answers."""

    def __init__(self, deps: ThinkerDeps) -> None:
        self._deps = deps
        self._answers = DurableAnswers(deps.engine)
        deps.engine.workflow(EXTRACT_WORKFLOW, self._extract)
        deps.engine.workflow(TIDY_WORKFLOW, self._tidy)
        deps.engine.workflow(SUMMARISE_WORKFLOW, self._summarise)

    async def extract(self, brief: ExtractBrief) -> ExtractResult:
        """The facts in some turns. A repeated id costs no second model call."""
        if await is_too_small(self._deps.model):
            return ExtractResult(refused=TOO_SMALL, unfit=True)
        return ExtractResult.model_validate(await self._ask_once(EXTRACT_WORKFLOW, brief.extraction_id, brief))

    async def tidy(self, brief: TidyBrief) -> TidyFactsResult:
        """Proposals to merge, reword or drop facts."""
        if await is_too_small(self._deps.model):
            return TidyFactsResult(refused=TOO_SMALL)
        return TidyFactsResult.model_validate(await self._ask_once(TIDY_WORKFLOW, brief.tidy_id, brief))

    async def summarise(self, brief: SummaryBrief) -> SummaryResult:
        """What a text says. A repeated id costs no second model call."""
        if await is_too_small(self._deps.model):
            return SummaryResult(refused=UNSUMMARISED)
        return SummaryResult.model_validate(await self._ask_once(SUMMARISE_WORKFLOW, brief.summary_id, brief))

    async def _ask_once(self, workflow: str, question_id: str, brief: BaseModel) -> object:
        wait = self._deps.settings.llm_summary_timeout_seconds + _SLACK_SECONDS
        return await self._answers.get(workflow, question_id, {"brief": brief.model_dump(mode="json")}, wait)

    async def _extract(self, argument: JsonObject) -> JsonObject:
        brief = ExtractBrief.model_validate(argument["brief"])

        def read_answer(answer: str) -> tuple[BaseModel, JsonObject]:
            found = parse_facts(answer, brief)
            told: JsonObject = {
                "facts": len(found.result.facts),
                "dropped": found.dropped,
                "refused": found.result.refused,
            }
            return found.result, told

        question = _LearningQuestion(
            brief.extraction_id, brief.user_id, brief.trace_id, prompts.build_extraction_prompt(brief), read_answer
        )
        return await self._run_question("facts.extracted", question)

    async def _tidy(self, argument: JsonObject) -> JsonObject:
        brief = TidyBrief.model_validate(argument["brief"])

        def read_answer(answer: str) -> tuple[BaseModel, JsonObject]:
            result = parse_actions(answer, brief)
            return result, {"actions": len(result.actions), "refused": result.refused}

        question = _LearningQuestion(
            brief.tidy_id, brief.user_id, brief.trace_id, prompts.build_tidy_prompt(brief.facts), read_answer
        )
        return await self._run_question("facts.tidied", question)

    async def _summarise(self, argument: JsonObject) -> JsonObject:
        brief = SummaryBrief.model_validate(argument["brief"])

        def read_answer(answer: str) -> tuple[BaseModel, JsonObject]:
            result = parse_summary(answer)
            return result, {"chars": len(result.summary), "refused": result.refused}

        question = _LearningQuestion(
            brief.summary_id,
            brief.user_id,
            brief.trace_id,
            prompts.build_summary_prompt(brief),
            read_answer,
            brief.goal_id,
        )
        return await self._run_question("text.summarised", question)

    async def _run_question(self, event: str, question: _LearningQuestion) -> JsonObject:
        """The workflow: one step, so that only the parsed outcome is recorded."""

        async def ask_step() -> JsonObject:
            result, told = question.read(await self._ask(question))
            self._deps.trace.write(event, {"id": question.id, **told})
            return result.model_dump(mode="json")

        with use_trace(question.trace_id):
            try:
                return success_outcome(await self._deps.engine.step("ask", ask_step))
            except AnnabelleError as error:
                _log.warning("%s of %s ended with %s: %s", event, question.id, error.code, error.message)
                return failure_outcome(error)

    async def _ask(self, question: _LearningQuestion) -> str:
        failpoint(failpoints.BEFORE_MODEL)
        request = ModelRequest(
            # New in every try: a call of a killed process is billed on its own.
            call_id=f"{question.id}:{new_id('mc')}",
            messages=question.messages,
            purpose="summary",
            temperature=0.0,
            max_tokens=_MOST_OUTPUT_TOKENS,
            user_id=question.user_id,
            goal_id=question.goal_id,
            trace_id=question.trace_id,
        )
        completed = await ask_once(self._deps.model, request, self._deps.costs)
        failpoint(failpoints.AFTER_MODEL)
        return response_text(completed.response)
