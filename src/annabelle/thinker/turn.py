"""The turn: the durable workflow that answers one message.

It reads the session, runs the loop, and writes one record. Reading needs no step of its own: one turn at a time runs in
a thread, so the history can not change under it, and a record of this very turn is passed over. Writing is
idempotent by message id. So a turn costs exactly one durable write per model call and per tool call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from annabelle.core.contract import TurnBrief, TurnLimits, TurnResult
from annabelle.core.errors import AnnabelleError, StorageTrouble
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trace import traced
from annabelle.skills.playbook import Playbook
from annabelle.thinker import failpoints
from annabelle.thinker.compress.workspace_tool import UpdateWorkspace
from annabelle.thinker.context.prompt import Prompt, Situation
from annabelle.thinker.context.repair import repaired
from annabelle.thinker.live import LiveTurn
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.local_tools import LocalTool
from annabelle.thinker.loop.loop import Loop, failure
from annabelle.thinker.loop.model_step import dump_message
from annabelle.thinker.loop.outcome import Outcome
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.resuming import parked_records, selected_again, since_parked, told
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.sanitise import CleanInput, clean
from annabelle.thinker.select.selector import Selection, SelectionAsk
from annabelle.thinker.session.port import SessionView
from annabelle.thinker.session.records import TurnRecord

_log = logging.getLogger(__name__)
_SESSION_TRIES = 3
_SESSION_WAIT_SECONDS = 0.3


class Turn:
    """Answers one brief. Made anew for every run, also for a run that takes over after a crash."""

    def __init__(self, bench: Workbench, brief: TurnBrief, started_at: datetime, live: LiveTurn) -> None:
        self._bench, self._brief, self._started_at, self._live = bench, brief, started_at, live

    async def run(self) -> JsonObject:
        """The whole turn. What it returns is kept: the result, and the facts a late reader may still ask for."""
        with traced(self._brief.trace_id):
            self._bench.trace.write("loop.started", {"message_id": self._brief.message_id})
            self._bench.hub.expect_tools(self._brief.tools_version)
            result = await self._answer()
            if thought := self._bench.thinking.finished(self._brief.message_id, success=result.success):
                self._bench.trace.write("thinking.summary", thought)
            self._bench.trace.write("loop.finished", _summary(result))
            kept: JsonObject = {"result": result.model_dump(mode="json"), "facts": self._live.stream.facts()}
            failpoint(failpoints.AFTER_TURN)
            self._live.finish(result)
            self._bench.sessions.answered(self._brief.thread_id)
            return kept

    async def _answer(self) -> TurnResult:
        brief = self._brief
        limits = brief.limits or self._bench.profile.limits
        cleaned = clean(brief.text, self._bench.settings.thinker_input_max_chars)
        if cleaned.notice is not None and brief.resume is None:
            self._live.stream.fact("notice", "input-cut", {"text": cleaned.notice})
        try:
            scope = await self._live.work(self._set_the_scene(cleaned.text, limits))
        except AnnabelleError as error:
            return self._result(failure(error, brief.trace_id), Progress())
        loop = Loop(self._bench, scope)
        try:
            outcome = await loop.run()
        except AnnabelleError as error:
            _log.warning("the turn of %s ended with %s: %s", brief.message_id, error.code, error.message)
            outcome = failure(error, brief.trace_id)
        return self._result(await self._remember(cleaned, scope.prompt, outcome, loop.progress), loop.progress)

    async def _set_the_scene(self, text: str, limits: TurnLimits) -> TurnScope:
        """Read the session and ask memory at the same time; after a crash both are asked anew, and may know more."""
        bench, brief = self._bench, self._brief
        recalling = asyncio.create_task(bench.recollection.recall(brief, text))
        try:
            session = self._before_this(await bench.sessions.load(brief))
            playbooks = () if brief.required_tools is not None else bench.playbooks.matching(text)
            workspace = None if bench.workspaces is None else await bench.workspaces.open(brief)
            local = [*session.local_tools, *([] if workspace is None else [UpdateWorkspace(workspace)])]
            selection = await self._select(text, session, playbooks, local)
            recalled = await recalling
        finally:
            recalling.cancel()
        prompt = await bench.context.build(
            Situation(text, self._started_at, session, limits.history_messages, brief.chat_id, recalled, playbooks)
        )
        bench.trace.write("context.built", prompt.layers)
        return TurnScope(
            brief, limits, self._live, prompt, selection, {tool.spec.name: tool for tool in local}, workspace
        )

    def _before_this(self, session: SessionView) -> SessionView:
        """The session without this turn itself: what a parked turn left there comes with its messages anyway."""
        if self._brief.resume is None:
            return session
        own = parked_records(self._brief.resume)
        return replace(session, turns=[turn for turn in session.turns if turn.message_id not in own])

    async def _select(
        self, text: str, session: SessionView, playbooks: Sequence[Playbook], local: Sequence[LocalTool]
    ) -> Selection:
        bench = self._bench
        selection = await bench.selector.select(
            SelectionAsk(
                brief=self._brief,
                text=text,
                available=await bench.hub.tools(),
                sticky=session.sticky(bench.settings.thinker_sticky_tools_lookback),
                playbook_tools=tuple(tool for playbook in playbooks for tool in playbook.required_tools),
                local=tuple(tool.spec for tool in local),
            )
        )
        if selection.report is not None:
            bench.trace.write("tools.selected", selection.report.to_json())
        resume = self._brief.resume
        return selection if resume is None else selected_again(selection, resume)

    async def _remember(self, cleaned: CleanInput, prompt: Prompt, outcome: Outcome, progress: Progress) -> Outcome:
        """Write the turn into the session; a disk that is full costs the memory of it, not the answer."""
        failpoint(failpoints.BEFORE_SESSION)
        resume = self._brief.resume
        user, messages = prompt.user, progress.messages
        if resume is not None:
            # The record holds what is new: the rest stands under the messages the turn was parked with.
            user = ModelRequest(parts=[UserPromptPart(content=told(resume))])
            messages = since_parked(resume, messages)
        record = TurnRecord(
            message_id=self._brief.message_id,
            trace_id=self._brief.trace_id,
            user_id=self._brief.user_id,
            at=self._started_at,
            user=cleaned.text if resume is None else told(resume),
            assistant=outcome.text if outcome.error is None else "",
            messages=[dump_message(message) for message in _conversation(user, messages, outcome)],
            tools=tuple(progress.tools_used),
            usage=progress.usage,
            limit=outcome.limit,
            error=outcome.error,
            task=not self._brief.conversational,
        )
        trouble = await self._append(record)
        failpoint(failpoints.AFTER_SESSION)
        if trouble is None:
            return outcome
        sentence = f"This exchange could not be remembered: {trouble.message} {trouble.hint or ''}".strip()
        self._live.stream.fact("notice", "session", {"text": sentence})
        if outcome.error is not None or outcome.sent_by_tool:
            return outcome
        return replace(outcome, text=f"{outcome.text}\n\n({sentence})")

    async def _append(self, record: TurnRecord) -> StorageTrouble | None:
        for attempt in range(1, _SESSION_TRIES + 1):
            try:
                await self._bench.sessions.append(self._brief.thread_id, record)
            except StorageTrouble as error:
                _log.error("the session of %s was not written: %s", self._brief.thread_id, error.message)
                if attempt == _SESSION_TRIES:
                    return error
                await asyncio.sleep(_SESSION_WAIT_SECONDS * attempt)
            else:
                return None
        return None

    def _result(self, outcome: Outcome, progress: Progress) -> TurnResult:
        if outcome.error is not None:
            self._live.stream.fact("error", "error", outcome.error.model_dump(exclude_none=True))
        return TurnResult(
            message_id=self._brief.message_id,
            success=outcome.error is None,
            text=outcome.text,
            tools_used=tuple(progress.tools_used),
            steps=progress.step,
            usage=progress.usage,
            sent_by_tool=outcome.sent_by_tool,
            limit=outcome.limit,
            error=outcome.error,
            unknown_outcomes=tuple(progress.unknown_outcomes),
            parked=outcome.parked,
        )


def _summary(result: TurnResult) -> JsonObject:
    return {
        "message_id": result.message_id,
        "success": result.success,
        "steps": result.steps,
        "tools": list(result.tools_used),
        "limit": result.limit,
        "parked": result.parked is not None,
        "error": result.error.code if result.error else None,
        **result.usage.model_dump(),
    }


def _conversation(user: ModelRequest, since: Sequence[ModelMessage], outcome: Outcome) -> list[ModelMessage]:
    """The turn as later turns read it. Where a limit or a question spoke instead of the model, that is the answer."""
    messages: list[ModelMessage] = repaired([user, *since])
    if (outcome.limit is not None or outcome.parked is not None) and outcome.text:
        messages.append(ModelResponse(parts=[TextPart(content=outcome.text)]))
    return messages
