"""One thinker process: starts without an agent, is assigned one, and is watched until it exits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Coroutine

from annabelle.core.contract import ThinkerBoot
from annabelle.core.errors import ErrorBody, OperatorMistake, ServerDown, Unavailable
from annabelle.core.secrets.redactor import Redactor
from annabelle.toolbox.process.launcher import ChildProcess, LaunchRequest, ProcessLauncher
from annabelle.toolbox.process.stderr_capture import launch_with_capture

_log = logging.getLogger(__name__)
_PORT_LINE = b"LISTENING_PORT="
_KILL_SECONDS = 10.0
_LAST_WORDS_SECONDS = 1.0
_LINE_LIMIT = 1_000_000


class ThinkerFailed(Unavailable):
    """The thinker exited before it was ready."""

    code = "agent_failed"

    def __init__(self, message: str, *, hint: str | None = None, field: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message, hint=hint, field=field)
        self._exit_code = exit_code

    @property
    def lasting(self) -> bool:
        """Whether a restart cannot help, because a person has to change something."""
        return self._exit_code == OperatorMistake.exit_code

    @property
    def killed(self) -> bool:
        """Whether it was killed from outside, which says nothing about the next start."""
        return self._exit_code < 0


class ThinkerProcess:
    """A child process that exits when its standard input closes, so it cannot outlive a killed hub."""

    def __init__(
        self,
        child: ChildProcess,
        stdin: asyncio.WriteTransport,
        stdout: asyncio.ReadTransport,
        lines: asyncio.StreamReader,
    ) -> None:
        self._child, self._stdin, self._stdout, self._lines = child, stdin, stdout, lines
        self._reported: ErrorBody | None = None
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, launcher: ProcessLauncher, order: LaunchRequest, redact: Redactor) -> ThinkerProcess:
        """Start the program. It loads its libraries and waits for its agent."""
        try:
            child, _ = await launch_with_capture(launcher, order, redact)
        except OSError as error:
            raise Unavailable(f"The log {order.log} can not be written: {error.strerror}.") from error
        except ServerDown as error:
            raise Unavailable(f"An agent process could not be started: {error.message}") from error
        loop, lines = asyncio.get_running_loop(), asyncio.StreamReader(_LINE_LIMIT)
        stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(child.stdin, "wb", buffering=0))
        stdout, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(child.stdout, "rb", buffering=0)
        )
        return cls(child, stdin, stdout, lines)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not self._child.exited.done()

    @property
    def exit_code(self) -> int | None:
        """Negative if a signal ended the process."""
        return _as_signal(self._child.exited.result()) if self._child.exited.done() else None

    async def assign_agent(self, boot: ThinkerBoot, timeout: float) -> int:
        """Assign an agent to the process and wait until it listens. Returns its port."""
        if not self._stdin.is_closing():  # the spare may have died; its error is read below
            self._stdin.write(boot.model_dump_json().encode() + b"\n")
        try:
            async with asyncio.timeout(timeout):
                port = await self._read_port()
        except TimeoutError as error:
            await self.kill()
            raise Unavailable(f"The agent {boot.agent.agent_id} was not ready after {timeout:g} s.") from error
        if port is None:
            raise await self._failure(boot.agent.agent_id)
        self._draining = asyncio.create_task(self._drain())
        return port

    async def run_unless_exited(self, agent_id: str, work: Coroutine[None, None, None]) -> None:
        """Run `work`, which needs the process. If the process exits first, raise its error."""
        working, ending = asyncio.ensure_future(work), asyncio.ensure_future(self.exited())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                if self._draining is not None:
                    await asyncio.wait([self._draining], timeout=_LAST_WORDS_SECONDS)
                raise await self._failure(agent_id)
            await working
        finally:
            for task in (working, ending):
                task.cancel()

    async def _failure(self, agent_id: str) -> ThinkerFailed:
        code = await asyncio.wait_for(self.exited(), _KILL_SECONDS)
        if self._reported is not None:
            return ThinkerFailed(self._reported.message, hint=self._reported.hint, exit_code=code)
        return ThinkerFailed(
            f"The agent {agent_id} ended with code {code} before it was ready.",
            hint=f"Its log is thinker-{agent_id}.log.",
            exit_code=code,
        )

    async def _read_port(self) -> int | None:
        while line := await self._lines.readline():
            if line.startswith(_PORT_LINE):
                return int(line.removeprefix(_PORT_LINE))
            self._read_report(line)
        return None

    async def _drain(self) -> None:
        with contextlib.suppress(ValueError, ConnectionError):  # a line over the limit must not end the agent
            while line := await self._lines.readline():
                self._read_report(line)

    def _read_report(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            self._reported = ErrorBody.model_validate(record["error"])
        except (ValueError, KeyError, TypeError):
            _log.debug("A thinker printed: %r", line[:200])

    async def exited(self) -> int:
        return _as_signal(await asyncio.shield(self._child.exited))

    async def stop(self, grace: float) -> None:
        """Ask the process to exit, and kill it after `grace` seconds."""
        await self._child.end(grace)
        await self._close()

    async def kill(self) -> None:
        await self.stop(0)

    async def _close(self) -> None:
        self._stdin.close()
        self._stdout.close()
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.wait([self._draining], timeout=1)


def _as_signal(code: int | None) -> int:
    """Maps exit codes above 128 to signals. None means killed together with the fork server."""
    if code is None:
        return -signal.SIGKILL
    return 128 - code if code > 128 else code
