"""Tools for interpreter sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import for_model
from annabelle.servers.codexec.code_runner import CodeRunner
from annabelle.servers.codexec.execute import Code, Timeout, WorkingDir
from annabelle.servers.codexec.execution import RunOutcome, RunReport, build_report, shorten_middle
from annabelle.servers.codexec.languages import SessionLanguage
from annabelle.servers.codexec.session_interpreter import InterpreterReply
from annabelle.servers.codexec.session_pool import CodeSession, SessionPool
from annabelle.servers.kit import Result, tool

SessionId = Annotated[str, Field(max_length=200, description="Id or name of a session, from start_session")]
_CONTROL = range(32)


class SessionInfo(Result):
    """One open session."""

    session_id: str
    language: str
    name: str | None = None
    working_dir: str | None = Field(default=None, description="Folder it works in; null for a private one")
    started: str
    idle_seconds: int
    runs: int
    busy: bool = Field(description="Code is running in it right now")


class SessionStarted(Result):
    session_id: str
    language: str
    name: str | None = None

    def to_text(self) -> str:
        return f"Session {for_model(f'{self.session_id} ')}({self.language}) is open."


class SessionList(Result):
    sessions: list[SessionInfo]
    most: int = Field(description="How many may be open at the same time, over all agents")


class SessionClosed(Result):
    session_id: str

    def to_text(self) -> str:
        return f"Session {for_model(f'{self.session_id} ')}is closed."


class SessionReport(RunReport):
    """How a piece of code in a session went."""

    session_id: str = ""
    value: str | None = Field(default=None, description="Value of the last expression")
    error: str | None = Field(default=None, description="What went wrong, in one line; stderr has the trace")
    interrupted: bool = Field(default=False, description="It took too long and was stopped; the session lives on")
    session_gone: bool = Field(default=False, description="The interpreter is gone with all it knew; start a new one")

    def to_text(self) -> str:
        parts = [part for part in (super().to_text(), self.value and f"=> {self.value}") if part]
        if self.value is not None and parts[0] == "[no output]":
            parts = parts[1:]
        if self.interrupted:
            parts.append("[stopped: it took longer than it may. The session is still open.]")
        if self.session_gone:
            parts.append("[the session is gone, with everything it knew; start a new one]")
        return "\n".join(parts)


class SessionTools:
    def __init__(self, runner: CodeRunner, pool: SessionPool) -> None:
        self._runner = runner
        self._pool = pool

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def start_session(
        self,
        language: Annotated[SessionLanguage, Field(description="python or node")],
        name: Annotated[
            str | None, Field(min_length=1, max_length=100, description="A name to call it by, beside its id")
        ] = None,
        working_dir: WorkingDir = None,
    ) -> SessionStarted:
        """Start an interpreter that remembers variables and imports between calls of send_to_session. It is closed
        after some idle time."""
        if name is not None and any(ord(char) in _CONTROL for char in name):
            raise InvalidArguments("The name has control characters.", field="name")
        session = await self._pool.start(language, name, working_dir)
        return SessionStarted(session_id=session.id, language=language, name=name)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_to_session(
        self,
        code: Code,
        session_id: Annotated[
            str | None, Field(max_length=200, description="Id or name; by default the session used last")
        ] = None,
        language: Annotated[
            SessionLanguage | None,
            Field(description="Instead of an id: the last session of this language, or a new one"),
        ] = None,
        timeout_ms: Timeout = None,
    ) -> SessionReport:
        """Run code in a session and get its output and the value of its last expression. await works at the top
        level. Code that takes too long is interrupted, and the session stays open if it obeys."""
        seconds = self._runner.resolve_timeout(timeout_ms)
        session = await self._find_or_start(session_id, language)
        async with session.lock:
            session = self._pool.find(session.id)  # it may have been closed while this call waited
            return await self._send(session, code, seconds)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def close_session(self, session_id: SessionId) -> SessionClosed:
        """Close a session. Its variables, packages and private files are gone."""
        session = self._pool.find(session_id)
        await self._pool.close_session(session)
        return SessionClosed(session_id=session.id)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_sessions(self) -> SessionList:
        """List your open sessions."""
        return SessionList(
            sessions=[_to_info(session) for session in self._pool.list_own()], most=self._runner.config.max_sessions
        )

    async def _find_or_start(self, session_id: str | None, language: SessionLanguage | None) -> CodeSession:
        if session_id is not None:
            session = self._pool.find(session_id)
            if language not in (None, session.language):
                raise InvalidArguments(f"Session {session.id} speaks {session.language}.", field="language")
            return session
        for session in self._pool.list_own():
            if language in (None, session.language):
                return session
        if language is None:
            raise InvalidArguments(
                "No session is open.", hint="Name a language, or use start_session.", field="session_id"
            )
        return await self._pool.start(language, None, None)

    async def _send(self, session: CodeSession, code: str, seconds: float) -> SessionReport:
        session.touch()
        before = await session.work_folder.take_snapshot()
        try:
            reply = await session.interpreter.run(code, seconds)
            artifacts = await session.work_folder.collect_artifacts(before, self._runner.workspace)
        finally:
            session.runs += 1
            session.touch()
            if not session.interpreter.alive:
                await self._pool.close_session(session)
        limit = self._runner.config.limits.output_chars
        report = await build_report(_to_outcome(reply), artifacts, self._runner.overflow, limit)
        if reply.interrupted:
            report = report.model_copy(update={"timed_out": True})
        return SessionReport(
            **report.model_dump(),
            session_id=session.id,
            value=None if reply.value is None else shorten_middle(reply.value, limit),
            error=reply.error,
            interrupted=reply.interrupted,
            session_gone=reply.gone,
        )


def _to_outcome(reply: InterpreterReply) -> RunOutcome:
    code = None if reply.gone else int(reply.error is not None)
    return RunOutcome(code, reply.stdout, reply.stderr, reply.seconds, reply.killed)


def _to_info(session: CodeSession) -> SessionInfo:
    return SessionInfo(
        session_id=session.id,
        language=session.language,
        name=session.name,
        working_dir=session.work_folder.shown,
        started=session.started.isoformat(timespec="seconds"),
        idle_seconds=int(session.idle_seconds),
        runs=session.runs,
        busy=session.lock.locked(),
    )
