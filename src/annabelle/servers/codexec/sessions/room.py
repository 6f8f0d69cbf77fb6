"""All sessions of this server: started, found again by their owner, closed when nobody uses them."""

from __future__ import annotations

import asyncio
import contextlib

from annabelle.core.errors import InvalidArguments, NotFound, TooManyRequests
from annabelle.core.ids import new_id
from annabelle.servers.codexec.isolation.layer import Mount
from annabelle.servers.codexec.languages import SessionLanguage, start_of_session
from annabelle.servers.codexec.programs import Programs
from annabelle.servers.codexec.sessions.interpreter import Interpreter
from annabelle.servers.codexec.sessions.session import Session
from annabelle.servers.codexec.workshop import Workshop, whose

_LOOK_EVERY_SECONDS = 2.0


class Room:
    """The live sessions. Each belongs to one agent; nobody else finds it."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._sessions: dict[str, Session] = {}
        self._starting: list[tuple[str, str | None]] = []
        self._caretaker: asyncio.Task[None] | None = None

    def mine(self) -> list[Session]:
        """The caller's sessions, the one used last first."""
        own = [session for session in self._sessions.values() if session.owner == whose()]
        return sorted(own, key=lambda session: session.used_at, reverse=True)

    def find(self, session_id: str) -> Session:
        for session in self.mine():
            if session_id in (session.id, session.name):
                return session
        raise NotFound(
            f"There is no session {session_id[:100]!r}.",
            hint="list_sessions shows those that are open; idle ones are closed. start_session opens one.",
            field="session_id",
        )

    async def start(self, language: SessionLanguage, name: str | None, working_dir: str | None) -> Session:
        newcomer = (whose(), name)
        taken = newcomer in self._starting or any(session.name == name for session in self.mine())
        if name is not None and taken:
            raise InvalidArguments(f"There is already a session called {name!r}.", field="name")
        if len(self._sessions) + len(self._starting) >= self._workshop.config.max_sessions:
            raise TooManyRequests(
                f"There are already {self._workshop.config.max_sessions} sessions.",
                hint="Close one with close_session.",
                retry_after=60,
            )
        self._starting.append(newcomer)
        try:
            session = await self._started(language, name, working_dir)
        finally:
            self._starting.remove(newcomer)
        self._sessions[session.id] = session
        if self._caretaker is None or self._caretaker.done():
            self._caretaker = asyncio.get_running_loop().create_task(self._care())
        return session

    async def end(self, session: Session) -> None:
        """Close it, whatever it does at the moment; nothing of it is left."""
        if self._sessions.pop(session.id, None) is None:
            return
        try:
            await session.interpreter.close()
        finally:
            await self._workshop.leave_bench(session.bench)

    async def close(self) -> None:
        caretaker, self._caretaker = self._caretaker, None
        if caretaker is not None:
            caretaker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await caretaker
        await asyncio.gather(*(self.end(session) for session in list(self._sessions.values())))

    async def _started(self, language: SessionLanguage, name: str | None, working_dir: str | None) -> Session:
        layer = await self._workshop.isolation.layer()
        program = Programs(layer).interpreter(language)
        bench = await self._workshop.take_bench(working_dir)
        try:
            start = start_of_session(language, self._workshop.config.limits.memory_mb)
            packages = (Mount(bench.run.packages, "/packages/session"),)
            cell = await self._workshop.cell(layer, bench, program, start, self._workshop.limits(), extra=packages)
            disk = bench.disk(self._workshop.config.limits.disk_bytes)
            interpreter = await Interpreter.start(layer, cell, disk)
        except BaseException:
            await self._workshop.leave_bench(bench)
            raise
        return Session(new_id("ses"), whose(), language, name, bench, interpreter)

    async def _care(self) -> None:
        """Closes what is idle or has died, for as long as there are sessions."""
        while self._sessions:
            await asyncio.sleep(min(_LOOK_EVERY_SECONDS, self._workshop.config.idle_seconds))
            for session in list(self._sessions.values()):
                if session.lock.locked():
                    continue  # whoever runs code in it looks after it
                await session.interpreter.look()
                if not session.interpreter.alive or session.idle_seconds > self._workshop.config.idle_seconds:
                    await self.end(session)
