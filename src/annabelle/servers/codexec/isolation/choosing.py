"""Which layer keeps code apart here: the first that really works, found out at first use. Never none."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.isolation.bubblewrap import INSTALL, Bubblewrap
from annabelle.servers.codexec.isolation.container import Container
from annabelle.servers.codexec.isolation.layer import SCRATCH, Cell, CellLimits, Layer
from annabelle.servers.codexec.isolation.seatbelt import Seatbelt
from annabelle.servers.codexec.isolation.spawning import spawn

_log = logging.getLogger(__name__)

_PROBE_SECONDS = 20.0
_AGAIN_SECONDS = 30.0
"""After a failure the layers are tried again this much later, so that an install helps without a restart."""

_PROBE_LIMITS = CellLimits(processes=16, memory_bytes=268_435_456, file_bytes=1_000_000, cpu_seconds=10)


class Isolation:
    """The layer in use."""

    def __init__(self, config: CodeConfig, layers: Sequence[Layer] | None = None) -> None:
        known: Sequence[Layer] = layers or (Bubblewrap(), Seatbelt(), Container(config.engine, config.image))
        chosen = [layer for layer in known if config.isolation in ("auto", layer.name)]
        self._layers = chosen
        self._found: Layer | None = None
        self._refusal: Unavailable | None = None
        self._tried_at = 0.0
        self._lock = asyncio.Lock()

    async def layer(self) -> Layer:
        """The layer to use; Unavailable, with what to install, when nothing can keep code apart."""
        async with self._lock:
            if self._found is not None:
                return self._found
            if self._refusal is not None and time.monotonic() - self._tried_at < _AGAIN_SECONDS:
                raise _again(self._refusal)
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
            raise _again(self._refusal)

    async def missing(self) -> str | None:
        """One sentence for the status, or None when code can be run."""
        try:
            await self.layer()
        except Unavailable as error:
            return f"{error.message} {error.hint}"
        return None

    async def _first_that_works(self) -> tuple[Layer | None, list[str]]:
        reasons: list[str] = []
        for layer in self._layers:
            reason = layer.missing()
            if reason is None:
                reason = await _probe(layer)
            if reason is None:
                return layer, reasons
            reasons.append(reason)
        return None, reasons


async def _probe(layer: Layer) -> str | None:
    """Whether a cell really starts: namespaces may be forbidden where the program is there."""
    cell = Cell("annabelle-probe", ("true",), (), SCRATCH, {"PATH": "/usr/bin:/bin"}, _PROBE_LIMITS)
    try:
        process = await spawn(layer, cell, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    except OSError as error:
        return f"{layer.name} can not be started: {error.strerror}"
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{layer.name} did not start a trial in time"
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode == 0:
        return None
    if b"nknown option" in said:
        return f"{layer.name} is too old here"
    _log.warning("%s does not work here: %s", layer.name, said.decode(errors="replace").strip()[:500])
    return f"{layer.name} is there but may not make a cell on this machine"


def _again(refusal: Unavailable) -> Unavailable:
    """A fresh error each time: one that was raised before would carry its old traceback along."""
    return Unavailable(refusal.message, hint=refusal.hint)
