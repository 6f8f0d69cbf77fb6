"""Selects the isolation backend that works on this machine. Code never runs without one."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.isolation.backend import (
    SCRATCH,
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    spawn_sandbox,
)
from annabelle.servers.codexec.isolation.bubblewrap import INSTALL, Bubblewrap
from annabelle.servers.codexec.isolation.container import Container
from annabelle.servers.codexec.isolation.seatbelt import Seatbelt

_log = logging.getLogger(__name__)

_PROBE_SECONDS = 20.0
_AGAIN_SECONDS = 30.0
"""Delay before trying again after a failure, so that an install helps without a restart."""

_PROBE_LIMITS = SandboxLimits(processes=16, memory_bytes=268_435_456, file_bytes=1_000_000, cpu_seconds=10)


class IsolationSelector:
    """Finds the backend once and remembers it."""

    def __init__(self, config: CodeConfig, layers: Sequence[SandboxBackend] | None = None) -> None:
        known: Sequence[SandboxBackend] = layers or (Bubblewrap(), Seatbelt(), Container(config.engine, config.image))
        chosen = [layer for layer in known if config.isolation in ("auto", layer.name)]
        self._layers = chosen
        self._found: SandboxBackend | None = None
        self._refusal: Unavailable | None = None
        self._tried_at = 0.0
        self._lock = asyncio.Lock()

    async def layer(self) -> SandboxBackend:
        """Return the backend. Raises Unavailable, with what to install, if none works."""
        async with self._lock:
            if self._found is not None:
                return self._found
            if self._refusal is not None and time.monotonic() - self._tried_at < _AGAIN_SECONDS:
                raise _copy_refusal(self._refusal)
            self._found, reasons = await self._first_that_works()
            if self._found is not None:
                _log.info("code is kept apart by %s", self._found.name)
                return self._found
            self._tried_at = time.monotonic()
            self._refusal = Unavailable(
                f"Code can not be run: nothing here can keep it apart ({'; '.join(reasons)}).",
                hint=f"Install bubblewrap: {INSTALL}. Or set CODEXEC_CONTAINER_ENGINE and CODEXEC_CONTAINER_IMAGE. "
                "calculate works without.",
            )
            raise _copy_refusal(self._refusal)

    async def missing(self) -> str | None:
        """One sentence for the status, or None when code can be run."""
        try:
            await self.layer()
        except Unavailable as error:
            return f"{error.message} {error.hint}"
        return None

    async def _first_that_works(self) -> tuple[SandboxBackend | None, list[str]]:
        reasons: list[str] = []
        for backend in self._layers:
            reason = backend.missing()
            if reason is None:
                reason = await _probe_backend(backend)
            if reason is None:
                return backend, reasons
            reasons.append(reason)
        return None, reasons


async def _probe_backend(backend: SandboxBackend) -> str | None:
    """Start a trial sandbox: namespaces may be forbidden even if the program is installed."""
    sandbox = SandboxSpec("annabelle-probe", ("true",), (), SCRATCH, {"PATH": "/usr/bin:/bin"}, _PROBE_LIMITS)
    try:
        process = await spawn_sandbox(backend, sandbox, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    except OSError as error:
        return f"{backend.name} can not be started: {error.strerror}"
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{backend.name} did not start a trial in time"
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode == 0:
        return None
    if b"nknown option" in said:
        return f"{backend.name} is too old here"
    _log.warning("%s does not work here: %s", backend.name, said.decode(errors="replace").strip()[:500])
    return f"{backend.name} is there but may not make a cell on this machine"


def _copy_refusal(refusal: Unavailable) -> Unavailable:
    """A new error each time: a re-raised one would carry its old traceback."""
    return Unavailable(refusal.message, hint=refusal.hint)
