"""Asks the cheap model what a conversation taught, or how facts might be tidied (MEM-07). Nothing is stored here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage

from annabelle.core.contract import ExtractBrief, ExtractResult, TidyBrief, TidyResult
from annabelle.core.errors import AnnabelleError, ProviderFailed
from annabelle.core.failpoints import failpoint
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject
from annabelle.core.trace import traced
from annabelle.durable.outcome import failure, success
from annabelle.llm.registry import PACKAGED
from annabelle.llm.types import Completed, ModelRequest
from annabelle.thinker import failpoints
from annabelle.thinker.engine import EXTRACT_WORKFLOW, TIDY_WORKFLOW
from annabelle.thinker.learn import prompts
from annabelle.thinker.learn.extract import read_facts
from annabelle.thinker.learn.kept import KeptAnswers
from annabelle.thinker.learn.tidy import read_actions
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import text_of

TOO_SMALL: Final = "The packaged model is too small to learn facts; a larger one has to be configured."
_MOST_OUTPUT_TOKENS: Final = 4_000
# Beside the model's own time: reserving and settling at a ledger that may be slow.
_SLACK_SECONDS: Final = 90.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Question:
    """One question to the model: for whom, in which words, and how its answer is read."""

    id: str
    user_id: str
    trace_id: str
    messages: list[ModelMessage]
    read: Callable[[str], tuple[BaseModel, JsonObject]]


class Learning:
    """Answers `/extract-facts` and `/tidy-facts`; what becomes of an answer is the hub's matter."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._kept = KeptAnswers(bench.engine)
        bench.engine.workflow(EXTRACT_WORKFLOW, self._extract)
        bench.engine.workflow(TIDY_WORKFLOW, self._tidy)

    async def extract(self, brief: ExtractBrief) -> ExtractResult:
        """The facts in a stretch of conversation. The same id again costs no second model call."""
        if await self._too_small():
            return ExtractResult(refused=TOO_SMALL, unfit=True)
        return ExtractResult.model_validate(await self._once(EXTRACT_WORKFLOW, brief.extraction_id, brief))

    async def tidy(self, brief: TidyBrief) -> TidyResult:
        """How these facts might be merged, reworded or dropped."""
        if await self._too_small():
            return TidyResult(refused=TOO_SMALL)
        return TidyResult.model_validate(await self._once(TIDY_WORKFLOW, brief.tidy_id, brief))

    async def _too_small(self) -> bool:
        """The packaged model only ever makes facts up, and would keep a processor busy for half a minute doing so."""
        choice = await self._bench.model.choose("summary")
        return choice.provider == "embedded" and choice.model == PACKAGED

    async def _once(self, workflow: str, question_id: str, brief: BaseModel) -> object:
        wait = self._bench.settings.llm_summary_timeout_seconds + _SLACK_SECONDS
        return await self._kept.get(workflow, question_id, {"brief": brief.model_dump(mode="json")}, wait)

    async def _extract(self, argument: JsonObject) -> JsonObject:
        brief = ExtractBrief.model_validate(argument["brief"])

        def read(answer: str) -> tuple[BaseModel, JsonObject]:
            found = read_facts(answer, brief)
            told: JsonObject = {
                "facts": len(found.result.facts),
                "dropped": found.dropped,
                "refused": found.result.refused,
            }
            return found.result, told

        question = _Question(brief.extraction_id, brief.user_id, brief.trace_id, prompts.extraction(brief), read)
        return await self._answer("facts.extracted", question)

    async def _tidy(self, argument: JsonObject) -> JsonObject:
        brief = TidyBrief.model_validate(argument["brief"])

        def read(answer: str) -> tuple[BaseModel, JsonObject]:
            result = read_actions(answer, brief)
            return result, {"actions": len(result.actions), "refused": result.refused}

        question = _Question(brief.tidy_id, brief.user_id, brief.trace_id, prompts.tidying(brief.facts), read)
        return await self._answer("facts.tidied", question)

    async def _answer(self, event: str, question: _Question) -> JsonObject:
        """The workflow: one step, so that what the model said is read once and only the outcome is written down."""

        async def ask() -> JsonObject:
            result, told = question.read(await self._ask(question))
            self._bench.trace.write(event, {"id": question.id, **told})
            return result.model_dump(mode="json")

        with traced(question.trace_id):
            try:
                return success(await self._bench.engine.step("ask", ask))
            except AnnabelleError as error:
                _log.warning("%s of %s ended with %s: %s", event, question.id, error.code, error.message)
                return failure(error)

    async def _ask(self, question: _Question) -> str:
        failpoint(failpoints.BEFORE_MODEL)
        request = ModelRequest(
            # New in every try: the call that a killed process made was a call of its own.
            call_id=f"{question.id}:{new_id('mc')}",
            messages=question.messages,
            purpose="summary",
            temperature=0.0,
            max_tokens=_MOST_OUTPUT_TOKENS,
            user_id=question.user_id,
            trace_id=question.trace_id,
        )
        completed: Completed | None = None
        async with aclosing(self._bench.model.request(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completed = event
        if completed is None:
            raise ProviderFailed("The model gave no answer.")
        self._bench.costs.add(completed.usage)
        failpoint(failpoints.AFTER_MODEL)
        return text_of(completed.response)
