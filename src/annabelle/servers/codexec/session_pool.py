"""Open interpreter sessions, per owner, closed when idle."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from annabelle.core.errors import InvalidArguments, NotFound, TooManyRequests
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.servers.codexec.code_runner import CodeRunner, WorkFolder, current_owner
from annabelle.servers.codexec.isolation.backend import Mount
from annabelle.servers.codexec.languages import InterpreterFinder, SessionLanguage, start_for_session
from annabelle.servers.codexec.session_interpreter import SessionInterpreter


@dataclass(slots=True, eq=False)
class CodeSession:
    """One session. `lock` is held while code runs in it."""

    id: str
    owner: str
    language: SessionLanguage
    name: str | None
    work_folder: WorkFolder
    interpreter: SessionInterpreter
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    started: datetime = field(default_factory=now)
    used_at: float = field(default_factory=time.monotonic)
    runs: int = 0

    @property
    def packages(self) -> Path:
        return self.work_folder.run.packages

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.lock.locked() else time.monotonic() - self.used_at

    def touch(self) -> None:
        self.used_at = time.monotonic()


_LOOK_EVERY_SECONDS = 2.0


class SessionPool:
    """Live sessions. Each is visible only to the agent that started it."""

    def __init__(self, runner: CodeRunner) -> None:
        self._runner = runner
        self._sessions: dict[str, CodeSession] = {}
        self._starting: list[tuple[str, str | None]] = []
        self._idle_task: asyncio.Task[None] | None = None

    def list_own(self) -> list[CodeSession]:
        """The caller's sessions, most recently used first."""
        own = [session for session in self._sessions.values() if session.owner == current_owner()]
        return sorted(own, key=lambda session: session.used_at, reverse=True)

    def find(self, session_id: str) -> CodeSession:
        for session in self.list_own():
            if session_id in (session.id, session.name):
                return session
        raise NotFound(
            f"There is no session {session_id[:100]!r}.",
            hint="list_sessions shows those that are open; idle ones are closed. start_session opens one.",
            field="session_id",
        )

    async def start(self, language: SessionLanguage, name: str | None, working_dir: str | None) -> CodeSession:
        newcomer = (current_owner(), name)
        taken = newcomer in self._starting or any(session.name == name for session in self.list_own())
        if name is not None and taken:
            raise InvalidArguments(f"There is already a session called {name!r}.", field="name")
        if len(self._sessions) + len(self._starting) >= self._runner.config.max_sessions:
            raise TooManyRequests(
                f"There are already {self._runner.config.max_sessions} sessions.",
                hint="Close one with close_session.",
                retry_after=60,
            )
        self._starting.append(newcomer)
        try:
            session = await self._start_session(language, name, working_dir)
        finally:
            self._starting.remove(newcomer)
        self._sessions[session.id] = session
        if self._idle_task is None or self._idle_task.done():
            self._idle_task = asyncio.get_running_loop().create_task(self._close_idle())
        return session

    async def close_session(self, session: CodeSession) -> None:
        """Close a session and remove its files, even while code runs in it."""
        if self._sessions.pop(session.id, None) is None:
            return
        try:
            await session.interpreter.close()
        finally:
            await self._runner.release_work_folder(session.work_folder)

    async def close(self) -> None:
        caretaker, self._idle_task = self._idle_task, None
        if caretaker is not None:
            caretaker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await caretaker
        await asyncio.gather(*(self.close_session(session) for session in list(self._sessions.values())))

    async def _start_session(self, language: SessionLanguage, name: str | None, working_dir: str | None) -> CodeSession:
        backend = await self._runner.isolation.layer()
        program = InterpreterFinder(backend).interpreter(language)
        work_folder = await self._runner.acquire_work_folder(working_dir)
        try:
            start = start_for_session(language, self._runner.config.limits.memory_mb)
            packages = (Mount(work_folder.run.packages, "/packages/session"),)
            sandbox = await self._runner.build_sandbox(
                backend, work_folder, program, start, self._runner.build_limits(), extra=packages
            )
            disk = work_folder.disk_quota(self._runner.config.limits.disk_bytes)
            interpreter = await SessionInterpreter.start(backend, sandbox, disk)
        except BaseException:
            await self._runner.release_work_folder(work_folder)
            raise
        return CodeSession(new_id("ses"), current_owner(), language, name, work_folder, interpreter)

    async def _close_idle(self) -> None:
        while self._sessions:
            await asyncio.sleep(min(_LOOK_EVERY_SECONDS, self._runner.config.idle_seconds))
            for session in list(self._sessions.values()):
                if session.lock.locked():
                    continue  # the running call checks the limits
                await session.interpreter.check_limits()
                if not session.interpreter.alive or session.idle_seconds > self._runner.config.idle_seconds:
                    await self.close_session(session)
