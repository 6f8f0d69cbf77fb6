"""Replaces older turns of a long conversation by a summary, after the answer was sent (SES-02, I-21).

The summary is a step of a durable workflow, so that a killed process pays for it once. Replacing the turns is
idempotent, and refused if they were compacted or archived meanwhile.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta

from annabelle.core.errors import AnnabelleError
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import now
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile, use_trace
from annabelle.durable.steps import failure_outcome, success_outcome
from annabelle.thinker import failpoints
from annabelle.thinker.engine import COMPACT_WORKFLOW, WorkflowEngine
from annabelle.thinker.session.records import Compaction, SessionState
from annabelle.thinker.session.session_store import SessionStore
from annabelle.thinker.session.summariser import Summariser

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """When a conversation is compacted, and how many turns stay verbatim."""

    enabled: bool = True
    min_turns: int = 8
    threshold_chars: int = 20_000
    keep_recent: int = 5
    cooldown_seconds: float = 120

    @classmethod
    def from_settings(cls, settings: Settings) -> CompactionRules:
        return cls(
            settings.thinker_session_compaction_enabled,
            settings.thinker_session_compaction_min_turns,
            settings.thinker_session_compaction_threshold_chars,
            settings.thinker_session_compaction_keep_recent,
            settings.thinker_session_compaction_cooldown_seconds,
        )

    def is_due(self, session: SessionState) -> bool:
        """Whether the session is long enough and the last compaction long enough ago."""
        if not self.enabled or session.count < self.min_turns or session.chars < self.threshold_chars:
            return False
        if session.count <= self.keep_recent:
            return False
        since = now() - session.compaction.at if session.compaction is not None else None
        # A time in the future means that the clock was set back; ignore it.
        return since is None or since < timedelta(0) or since >= timedelta(seconds=self.cooldown_seconds)


class Compactor:
    """One per thinker."""

    def __init__(
        self,
        store: SessionStore,
        engine: WorkflowEngine,
        summariser: Summariser,
        rules: CompactionRules,
        trace: TraceFile,
    ) -> None:
        self._store, self._engine, self._summariser = store, engine, summariser
        self._rules, self._trace = rules, trace
        self._tried: dict[str, float] = {}
        engine.workflow(COMPACT_WORKFLOW, self.run)

    async def start_if_due(self, thread_id: str) -> None:
        """Start the workflow if the conversation is long, without waiting for it."""
        if not self._rules.is_due(await self._store.session(thread_id)) or self._tried_lately(thread_id):
            return
        turns = await self._store.open_turns(thread_id)
        if len(turns) <= self._rules.keep_recent:
            return
        self._tried[thread_id] = time.monotonic()
        last, up_to = turns[-1], turns[-self._rules.keep_recent - 1]
        argument: JsonObject = {"thread_id": thread_id, "message_id": up_to.message_id, "trace_id": last.trace_id}
        await self._engine.start(COMPACT_WORKFLOW, f"compact:{thread_id}:{last.message_id}", argument)

    def _tried_lately(self, thread_id: str) -> bool:
        tried = self._tried.get(thread_id)
        if tried is not None and time.monotonic() - tried < self._rules.cooldown_seconds:
            return True
        self._tried.pop(thread_id, None)
        return False

    async def run(self, argument: JsonObject) -> JsonObject:
        """The workflow; the engine also calls it for one an earlier process left unfinished."""
        thread_id, message_id = str(argument["thread_id"]), str(argument["message_id"])

        async def summarise() -> JsonObject:
            return await self._summarise_older_turns(thread_id, message_id)

        with use_trace(str(argument["trace_id"])):
            try:
                made = await self._engine.step("summarise", summarise)
                failpoint(failpoints.SUMMED_UP)
                replaced = await self._store_compaction(thread_id, message_id, made)
            except AnnabelleError as error:
                _log.warning("%s was not compacted: %s: %s", thread_id, error.code, error.message)
                self._trace.write("session.not_compacted", {"thread_id": thread_id, "error": error.code})
                return failure_outcome(error)
            told = {name: made.get(name) for name in ("turns", "by_model")}
            self._trace.write("session.compacted", {"thread_id": thread_id, "replaced": replaced, **told})
            return success_outcome({"replaced": replaced})

    async def _summarise_older_turns(self, thread_id: str, message_id: str) -> JsonObject:
        """The summary of the turns up to a message; empty if they are no longer open."""
        session = await self._store.session(thread_id)
        turns = await self._store.open_turns(thread_id)
        ids = [turn.message_id for turn in turns]
        if message_id not in ids:
            return {"summary": "", "turns": 0}
        older = turns[: ids.index(message_id) + 1]
        previous = session.compaction
        summary = await self._summariser.summarise_older_turns(older, previous.summary if previous is not None else "")
        count = len(older) + (previous.turns if previous is not None else 0)
        return {"summary": summary.text, "turns": count, "by_model": summary.by_model}

    async def _store_compaction(self, thread_id: str, message_id: str, made: JsonObject) -> bool:
        summary, turns = made.get("summary"), made.get("turns")
        if not isinstance(summary, str) or not summary or not isinstance(turns, int):
            return False
        return await self._store.compact(thread_id, Compaction(message_id=message_id, summary=summary, turns=turns))
