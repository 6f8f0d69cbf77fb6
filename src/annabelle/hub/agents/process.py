"""One thinker process: started bare, told who it is, watched until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine, Mapping
from pathlib import Path

from annabelle.core.contract import ThinkerBoot
from annabelle.core.errors import ErrorBody, OperatorMistake, Unavailable
from annabelle.toolbox.processes.tree import kill_tree

_log = logging.getLogger(__name__)
_PORT_LINE = b"LISTENING_PORT="
_KILL_SECONDS = 10.0
_LAST_WORDS_SECONDS = 1.0
_LINE_LIMIT = 1_000_000


class ThinkerFailed(Unavailable):
    """The thinker ended before it was ready, with this exit code."""

    code = "agent_failed"

    def __init__(self, message: str, *, hint: str | None = None, field: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message, hint=hint, field=field)
        self._exit_code = exit_code

    @property
    def lasting(self) -> bool:
        """Starting it again can not help: a person has to change something."""
        return self._exit_code == OperatorMistake.exit_code

    @property
    def killed(self) -> bool:
        """It was ended from outside, which says nothing about the next start."""
        return self._exit_code < 0


class ThinkerProcess:
    """A child process of the hub. It ends when its standard input does, so it can not outlive a killed hub."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._reported: ErrorBody | None = None
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, environment: Mapping[str, str], log_file: Path) -> ThinkerProcess:
        """Start the program. It imports its libraries and waits to be told which agent it is."""
        try:
            descriptor = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise Unavailable(f"The log {log_file} can not be written: {error.strerror}.") from error
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "annabelle.thinker",
                stdin=PIPE, stdout=PIPE, stderr=descriptor, env=dict(environment),
                start_new_session=True, limit=_LINE_LIMIT,
            )  # fmt: skip
        except OSError as error:
            raise Unavailable(f"An agent process could not be started: {error.strerror}.") from error
        finally:
            os.close(descriptor)
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    async def adopt(self, boot: ThinkerBoot, timeout: float) -> int:
        """Tell the process who it is, and wait until it listens; the port it chose."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        # A spare that died unseen: asyncio calls its pipe broken, uvloop raises RuntimeError. What it said comes below.
        with contextlib.suppress(ConnectionError, RuntimeError):
            stdin.write(boot.model_dump_json().encode() + b"\n")
            await asyncio.wait_for(stdin.drain(), timeout)
        try:
            async with asyncio.timeout(timeout):
                port = await self._port(stdout)
        except TimeoutError as error:
            await self.kill()
            raise Unavailable(f"The agent {boot.agent.agent_id} was not ready after {timeout:g} s.") from error
        if port is None:
            raise await self._failure(boot.agent.agent_id)
        self._draining = asyncio.create_task(self._drain(stdout))
        return port

    async def unless_it_ends(self, agent_id: str, work: Coroutine[None, None, None]) -> None:
        """Do the work, which needs the process; when the process ends instead, raise what it said."""
        working, ending = asyncio.ensure_future(work), asyncio.ensure_future(self._process.wait())
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
        code = await asyncio.wait_for(self._process.wait(), _KILL_SECONDS)
        if self._reported is not None:
            return ThinkerFailed(self._reported.message, hint=self._reported.hint, exit_code=code)
        return ThinkerFailed(
            f"The agent {agent_id} ended with code {code} before it was ready.",
            hint=f"Its log is thinker-{agent_id}.log.",
            exit_code=code,
        )

    async def _port(self, stdout: asyncio.StreamReader) -> int | None:
        while line := await stdout.readline():
            if line.startswith(_PORT_LINE):
                return int(line.removeprefix(_PORT_LINE))
            self._note(line)
        return None

    async def _drain(self, stdout: asyncio.StreamReader) -> None:
        with contextlib.suppress(ValueError, ConnectionError):  # a line over the limit ends the reading, not the agent
            while line := await stdout.readline():
                self._note(line)

    def _note(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            self._reported = ErrorBody.model_validate(record["error"])
        except (ValueError, KeyError, TypeError):
            _log.debug("A thinker printed: %r", line[:200])

    async def exited(self) -> int:
        return await self._process.wait()

    async def stop(self, grace: float) -> None:
        """Ask it to end, and kill it when it does not within the grace."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), grace)
            except TimeoutError:
                await self.kill()
        await self._close()

    async def kill(self) -> None:
        """End the process and whatever it started."""
        if self.alive:
            kill_tree(self._process.pid)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _KILL_SECONDS)
        await self._close()

    async def _close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.wait([self._draining], timeout=1)
