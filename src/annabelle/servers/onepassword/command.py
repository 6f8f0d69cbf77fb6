"""Runs `op`: an argument list, never a shell; little environment, bounded time and output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
from typing import TypeVar

import anyio
from pydantic import TypeAdapter, ValidationError

from annabelle.core.errors import ToolTimeout, Unavailable
from annabelle.servers.onepassword.config import OnePasswordConfig
from annabelle.servers.onepassword.trouble import NOT_SIGNED_IN, SIGN_IN, trouble_of

T = TypeVar("T")

MAX_OUTPUT_BYTES = 8_000_000
_MAX_COMPLAINT_BYTES = 20_000
_AT_ONCE = 4
_BURY_SECONDS = 5.0
_NOT_INSTALLED = "The 1Password command op is not installed."
_INSTALL = "Install it as https://developer.1password.com/docs/cli/get-started says, or set OP_PATH to it."

_log = logging.getLogger(__name__)


class OpCommand:
    """The one way to 1Password. Whatever the command complains about becomes one of our sentences."""

    def __init__(self, config: OnePasswordConfig) -> None:
        self._config = config
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def missing(self) -> str | None:
        """What is not there yet, with what to do; no request goes out to find it."""
        if self._program() is None:
            return f"{_NOT_INSTALLED} {_INSTALL}"
        if self._config.has_token:
            return None
        try:
            accounts = await self.json(TypeAdapter(list[object]), "account", "list")
        except (Unavailable, ToolTimeout) as error:
            return f"{error.message} {error.hint or ''}".strip()
        return None if accounts else f"{NOT_SIGNED_IN} {SIGN_IN}"

    async def json(self, shape: TypeAdapter[T], *arguments: str) -> T:
        """What the command answers, checked: it is another program, and may be a newer one than this knows."""
        output = await self.text(*arguments, "--format=json")
        try:
            return shape.validate_python(json.loads(output))
        except (ValidationError, ValueError, RecursionError):
            # The cause would carry the answer, secrets included, into the log.
            raise Unavailable(
                "1Password answered in a way that is not understood.", hint="Is op up to date? Run: op update"
            ) from None

    async def text(self, *arguments: str) -> str:
        """The output of one run, or the reason why there is none."""
        program = self._program()
        if program is None:
            raise Unavailable(_NOT_INSTALLED, hint=_INSTALL)
        async with self._gate:
            try:
                async with asyncio.timeout(self._config.seconds):
                    code, output, complaint = await self._run(program, arguments)
            except TimeoutError:
                raise ToolTimeout(
                    f"1Password did not answer within {self._config.seconds:g} seconds.",
                    hint="It may be waiting to be unlocked; unlock it and try again.",
                ) from None
        if code != 0:
            _log.info("op %s ended with %d", " ".join(arguments[:2]), code)
            raise trouble_of(complaint)
        return output

    async def _run(self, program: str, arguments: tuple[str, ...]) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                env=self._config.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MAX_OUTPUT_BYTES,
            )
        except OSError as error:
            raise Unavailable(
                f"The 1Password command could not be started: {error.strerror}.", hint="Check OP_PATH."
            ) from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output, complaint = await asyncio.gather(
                _bounded(process.stdout, MAX_OUTPUT_BYTES), _bounded(process.stderr, _MAX_COMPLAINT_BYTES)
            )
            if output is None:
                raise Unavailable("1Password gave more than can be read at once.", hint="Ask for less.")
            code = await process.wait()
        finally:
            await _bury(process)
        return code, output.decode(errors="replace"), (complaint or b"").decode(errors="replace")

    def _program(self) -> str | None:
        named = self._config.program
        if named is not None:
            return str(named) if os.access(named, os.X_OK) and named.is_file() else None
        return shutil.which("op", path=self._config.environment.get("PATH", os.defpath))


async def _bounded(stream: asyncio.StreamReader, most: int) -> bytes | None:
    """All of it, or None when it is more than that."""
    blob = bytearray()
    while piece := await stream.read(65536):
        blob += piece
        if len(blob) > most:
            return None
    return bytes(blob)


async def _bury(process: asyncio.subprocess.Process) -> None:
    """A command that did not end by itself is ended, with whatever it started."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # The SDK's scopes cancel every wait inside, again and again; a process without a waiter would stay a zombie.
    with anyio.move_on_after(_BURY_SECONDS, shield=True):
        await process.wait()
