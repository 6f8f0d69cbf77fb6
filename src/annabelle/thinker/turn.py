"""The turn: the durable workflow that answers one message. Reads the session, runs the loop, writes one record."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from annabelle.core.contract import TurnBrief, TurnLimits, TurnResult
from annabelle.core.errors import AnnabelleError, StorageTrouble
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trace import use_trace
from annabelle.skills.playbook import Playbook
from annabelle.thinker import failpoints
from annabelle.thinker.compression.workspace import UpdateWorkspace
from annabelle.thinker.live_turn import LiveTurn
from annabelle.thinker.loop.deps import ThinkerDeps, TurnScope
from annabelle.thinker.loop.loop import AgentLoop, make_failure_outcome
from annabelle.thinker.loop.model_call import dump_message
from annabelle.thinker.loop.parked_turn import (
    describe_answers,
    messages_since_parked,
    parked_records,
    restore_selection,
)
from annabelle.thinker.loop.turn_progress import LoopOutcome, TurnProgress
from annabelle.thinker.prompt.message_repair import repair_messages
from annabelle.thinker.prompt.prompt import TurnContext, TurnPrompt
from annabelle.thinker.prompt.skill_offer import OfferedSkills
from annabelle.thinker.prompt.tool_hints import build_hint_layer
from annabelle.thinker.selection.selection import LocalTool, SelectionRequest, ToolSelection
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.session.session_store import SessionView

# Every control character but line feed and tab, and lone surrogates.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029")


@dataclass(frozen=True, slots=True)
class CleanInput:
    """The cleaned text, and a sentence for the person if it was cut."""

    text: str
    notice: str | None = None


def clean_input(text: str, max_chars: int) -> CleanInput:
    """Drop control characters and cut a long text; model and person are told about the cut."""
    text = _CONTROL.sub("", _LINE_ENDS.sub("\n", text))
    if len(text) <= max_chars:
        return CleanInput(text)
    cut = len(text) - max_chars
    notice = f"The message was longer than {max_chars} characters; its last {cut} were cut."
    return CleanInput(f"{text[:max_chars]}\n\n[{notice}]", notice)


_log = logging.getLogger(__name__)
_SESSION_TRIES = 3
_SESSION_WAIT_SECONDS = 0.3


class TurnWorkflow:
    """Answers one brief. One instance per run, also for a run that takes over after a crash."""

    def __init__(self, deps: ThinkerDeps, brief: TurnBrief, started_at: datetime, live: LiveTurn) -> None:
        self._deps, self._brief, self._started_at, self._live = deps, brief, started_at, live

    async def run(self) -> JsonObject:
        """Run the turn. Returns what is stored: the result, and the facts for late readers."""
        with use_trace(self._brief.trace_id):
            self._deps.trace.write("loop.started", {"message_id": self._brief.message_id})
            self._deps.hub.expect_tools(self._brief.tools_version)
            result = await self._produce_result()
            if thought := self._deps.compressor.finished(self._brief.message_id, success=result.success):
                self._deps.trace.write("thinking.summary", thought)
            self._deps.trace.write("loop.finished", _summarise_result(result))
            kept: JsonObject = {"result": result.model_dump(mode="json"), "facts": self._live.stream.facts()}
            failpoint(failpoints.AFTER_TURN)
            self._live.finish(result)
            self._deps.sessions.answered(self._brief.thread_id, self._brief.archive_as if result.success else None)
            return kept

    async def _produce_result(self) -> TurnResult:
        brief = self._brief
        limits = brief.limits or self._deps.profile.limits
        cleaned = clean_input(brief.text, self._deps.settings.thinker_input_max_chars)
        if cleaned.notice is not None and brief.resume is None:
            self._live.stream.add_fact("notice", "input-cut", {"text": cleaned.notice})
        try:
            scope = await self._live.run_cancellable(self._prepare_scope(cleaned.text, limits))
        except AnnabelleError as error:
            return self._make_result(make_failure_outcome(error, brief.trace_id), TurnProgress())
        loop = AgentLoop(self._deps, scope)
        try:
            outcome = await loop.run()
        except AnnabelleError as error:
            _log.warning("the turn of %s ended with %s: %s", brief.message_id, error.code, error.message)
            outcome = make_failure_outcome(error, brief.trace_id)
        outcome = await self._record_turn(cleaned, scope.prompt, outcome, loop.progress)
        await self._record_pattern(cleaned.text, outcome, loop.progress)
        return self._make_result(outcome, loop.progress)

    async def _prepare_scope(self, text: str, limits: TurnLimits) -> TurnScope:
        """Read the session and query memory at the same time; after a crash both are read again."""
        deps, brief = self._deps, self._brief
        recall_task = asyncio.create_task(deps.memory_recall.recall(brief, text))
        try:
            session = self._exclude_own_records(await deps.sessions.load(brief))
            tools = (await deps.hub.tools()).tools
            known = {spec.name for spec in tools}
            matching = () if brief.required_tools is not None else deps.playbooks.matching(text, known)
            playbooks = tuple(playbook for playbook in matching if not playbook.from_skill)
            called_for = [playbook for playbook in matching if playbook.from_skill]
            skills = OfferedSkills()
            if deps.skills is not None:
                skills = await deps.skills.prepare(brief, text, called_for, known)
            workspace = None if deps.workspaces is None else await deps.workspaces.open(brief)
            local = [*session.local_tools, *([] if workspace is None else [UpdateWorkspace(workspace)])]
            selection = await self._select_tools(text, session, matching, local)
            pattern = None
            if deps.tool_patterns is not None:
                asked_for = set(selection.names()) - selection.in_brief
                pattern = await deps.tool_patterns.find(brief.user_id, text, asked_for)
            if pattern is not None:
                selection = selection.with_found(pattern.tools)
            direct = None if deps.direct_calls is None else deps.direct_calls.find(text, brief, tools)
            recalled = await recall_task
        finally:
            recall_task.cancel()
        prompt = await deps.prompt_builder.build(
            TurnContext(
                text,
                self._started_at,
                session,
                limits.history_messages,
                chat_id=brief.chat_id,
                recalled=recalled,
                playbooks=playbooks,
                skills=skills,
                hint=build_hint_layer(pattern, selection.names()),
                unasked=brief.unasked,
                instructions=brief.instructions,
                sections=brief.sections,
            )
        )
        deps.trace.write("context.built", prompt.layers)
        for number, text in enumerate(deps.notices.take()):
            self._live.stream.add_fact("notice", f"logged:{number}", {"text": text})
        if direct is not None:
            deps.trace.write("template.matched", {"template": direct.match.template, "tool": direct.match.tool})
        by_name = {tool.spec.name: tool for tool in local}
        return TurnScope(brief, limits, self._live, prompt, selection, by_name, workspace, direct)

    def _exclude_own_records(self, session: SessionView) -> SessionView:
        """The session without this turn: a resumed turn brings its own messages."""
        if self._brief.resume is None:
            return session
        own = parked_records(self._brief.resume)
        return replace(session, turns=[turn for turn in session.turns if turn.message_id not in own])

    async def _select_tools(
        self, text: str, session: SessionView, playbooks: Sequence[Playbook], local: Sequence[LocalTool]
    ) -> ToolSelection:
        deps = self._deps
        asked_for = [] if deps.direct_calls is None else deps.direct_calls.named_tools(text)
        selection = await deps.selector.select(
            SelectionRequest(
                brief=self._brief,
                text=text,
                available=await deps.hub.tools(),
                sticky=session.recent_tools(deps.settings.thinker_sticky_tools_lookback),
                previous=next(iter(session.recent_tools(1)), ""),
                playbook_tools=(*asked_for, *(tool for playbook in playbooks for tool in playbook.required_tools)),
                local=tuple(tool.spec for tool in local),
            )
        )
        if selection.report is not None:
            deps.trace.write("tools.selected", selection.report.to_json())
        resume = self._brief.resume
        return selection if resume is None else restore_selection(selection, resume)

    async def _record_turn(
        self, cleaned: CleanInput, prompt: TurnPrompt, outcome: LoopOutcome, progress: TurnProgress
    ) -> LoopOutcome:
        """Write the turn to the session. If that fails, as on a full disk, the answer is still given."""
        failpoint(failpoints.BEFORE_SESSION)
        resume = self._brief.resume
        user, messages = prompt.user, progress.messages
        if resume is not None:
            # Record only what is new: the rest is in the records of the parked turn.
            user = ModelRequest(parts=[UserPromptPart(content=describe_answers(resume))])
            messages = messages_since_parked(resume, messages)
        record = SessionTurn(
            message_id=self._brief.message_id,
            trace_id=self._brief.trace_id,
            user_id=self._brief.user_id,
            at=self._started_at,
            user=cleaned.text if resume is None else describe_answers(resume),
            assistant=outcome.text if outcome.error is None else "",
            messages=[dump_message(message) for message in _recorded_messages(user, messages, outcome)],
            tools=tuple(progress.tools_used),
            usage=progress.usage,
            limit=outcome.limit,
            error=outcome.error,
            task=not self._brief.conversational,
        )
        trouble = await self._append_record(record)
        failpoint(failpoints.AFTER_SESSION)
        if trouble is None:
            return outcome
        sentence = f"This exchange could not be remembered: {trouble.message} {trouble.hint or ''}".strip()
        self._live.stream.add_fact("notice", "session", {"text": sentence})
        if outcome.error is not None or outcome.sent_by_tool:
            return outcome
        return replace(outcome, text=f"{outcome.text}\n\n({sentence})")

    async def _append_record(self, record: SessionTurn) -> StorageTrouble | None:
        for attempt in range(1, _SESSION_TRIES + 1):
            try:
                await self._deps.sessions.append(self._brief.thread_id, record)
            except StorageTrouble as error:
                _log.error("the session of %s was not written: %s", self._brief.thread_id, error.message)
                if attempt == _SESSION_TRIES:
                    return error
                await asyncio.sleep(_SESSION_WAIT_SECONDS * attempt)
            else:
                return None
        return None

    async def _record_pattern(self, text: str, outcome: LoopOutcome, progress: TurnProgress) -> None:
        """Keep which calls worked, if the turn came to its own end and nothing of it is in doubt (CMP-11)."""
        doubtful = progress.second_chance or progress.unknown_outcomes
        if self._deps.tool_patterns is None or outcome.error or outcome.limit or outcome.parked or doubtful:
            return
        brief = self._brief
        await self._deps.tool_patterns.record(brief.user_id, brief.message_id, text, progress.actions)

    def _make_result(self, outcome: LoopOutcome, progress: TurnProgress) -> TurnResult:
        if outcome.error is not None:
            self._live.stream.add_fact("error", "error", outcome.error.model_dump(exclude_none=True))
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


def _summarise_result(result: TurnResult) -> JsonObject:
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


def _recorded_messages(user: ModelRequest, since: Sequence[ModelMessage], outcome: LoopOutcome) -> list[ModelMessage]:
    """The turn as later turns read it, with the text of a limit or a question as the answer."""
    messages: list[ModelMessage] = repair_messages([user, *since])
    if (outcome.limit is not None or outcome.parked is not None) and outcome.text:
        messages.append(ModelResponse(parts=[TextPart(content=outcome.text)]))
    return messages
