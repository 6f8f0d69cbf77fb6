"""Fetches packages into a folder, inside a cell that has the network for just this run.

Only ready-made packages are taken, and their own install scripts do not run: what is fetched is not executed until
code uses it, and then without the network.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import anyio

from annabelle.core.errors import RetryByModel, ToolTimeout
from annabelle.servers.codexec.disk import Disk
from annabelle.servers.codexec.isolation.layer import SCRATCH, Cell, CellLimits, Layer, Mount
from annabelle.servers.codexec.languages import SessionLanguage
from annabelle.servers.codexec.packages.space import Space
from annabelle.servers.codexec.packages.undoing import Before
from annabelle.servers.codexec.programs import Programs
from annabelle.servers.codexec.running import Outcome, run_cell
from annabelle.servers.codexec.tape import shortened
from annabelle.servers.codexec.workshop import Workshop, environment
from annabelle.servers.kit import in_thread

_TARGET = "/packages/target"
_SCRATCH = ".scratch"
_END_SECONDS = 10.0
_FILE_FACTOR = 10
_NOTHING_FOUND = {"PYTHONPATH": "", "NODE_PATH": ""}
"""Package managers load nothing of what they have installed before."""
_SAID_CHARS = 600
_PREFIX = re.compile(r"(ERROR:|npm error|npm ERR!)")
_STACK = re.compile(r"\s+at |\s*A complete log|\s*[{}]")

_PIP = (
    "install", "--upgrade", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
    "--quiet", "--no-warn-script-location", "--root-user-action=ignore", "--retries=2", "--timeout=20",
)  # fmt: skip
_NPM = (
    "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error",
    "--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000", "--fetch-timeout=60000",
)  # fmt: skip


class Installer:
    """Installs into one folder at a time; two calls for the same folder come one after the other."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._space = Space(workshop.folders, workshop.config.packages)
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    async def install(self, language: SessionLanguage, packages: Sequence[str], target: Path) -> None:
        """`packages` have been checked. Raises with what the package manager said when it fails, and with what to do
        when there is no room."""
        layer = await self._workshop.isolation.layer()
        lock = self._locks.setdefault(target, asyncio.Lock())
        async with lock:
            disk = await in_thread(lambda stop: self._space.left(target))
            before = await in_thread(lambda stop: Before.of(target / language))
            scratch = target / _SCRATCH
            try:
                await in_thread(lambda stop: self._prepare(layer, target, scratch))
                outcome = await self._run(layer, language, packages, disk)
            finally:
                with anyio.move_on_after(_END_SECONDS, shield=True):
                    await in_thread(lambda stop: shutil.rmtree(scratch, ignore_errors=True))
            if outcome.killed == "disk" or await in_thread(lambda stop: self._space.over(target)):
                await in_thread(lambda stop: before.bring_back())
                raise await in_thread(lambda stop: self._space.refusal(", ".join(packages), target))
        self._judge(outcome, packages)

    def _prepare(self, layer: Layer, target: Path, scratch: Path) -> None:
        scratch.mkdir(exist_ok=True)
        layer.prepare(target, private=True)

    async def _run(self, layer: Layer, language: SessionLanguage, packages: Sequence[str], disk: Disk) -> Outcome:
        mount = Mount(disk.folder, _TARGET, writable=True)
        inside = layer.place(mount)
        argv, mounts = self._command(layer, language, packages, f"{inside}/{language}")
        cell = Cell(
            name=f"annabelle-install-{secrets.token_hex(8)}",
            argv=argv,
            mounts=(mount, *mounts),
            folder=f"{inside}/{_SCRATCH}",
            env={**environment(layer, mount), "TMPDIR": f"{inside}/{_SCRATCH}", **_NOTHING_FOUND, **self._sources()},
            limits=self._limits(),
            network=True,
        )
        return await run_cell(layer, cell, self._workshop.config.limits.max_seconds, disk)

    def _command(
        self, layer: Layer, language: SessionLanguage, packages: Sequence[str], folder: str
    ) -> tuple[tuple[str, ...], tuple[Mount, ...]]:
        if language == "python":
            pip = Programs(layer).pip()
            return (*pip.argv, *_PIP, "--target", folder, "--", *packages), pip.mounts
        npm = Programs(layer).npm()
        return (*npm.argv, *_NPM, "--prefix", folder, "--", *packages), npm.mounts

    def _sources(self) -> dict[str, str]:
        """By environment and not by argument: an address may hold a password, and arguments can be seen by others."""
        config = self._workshop.config
        sources = {"PIP_CONFIG_FILE": "/dev/null", "npm_config_cache": f"{SCRATCH}/npm"}
        if config.pip_index:
            sources["PIP_INDEX_URL"] = config.pip_index
        if config.npm_registry:
            sources["npm_config_registry"] = config.npm_registry
        return sources

    def _limits(self) -> CellLimits:
        own = self._workshop.limits()
        return replace(own, file_bytes=own.file_bytes * _FILE_FACTOR)

    def _judge(self, outcome: Outcome, packages: Sequence[str]) -> None:
        named = ", ".join(packages)
        if outcome.timed_out:
            raise ToolTimeout(f"Installing {named} took too long.", hint="Try again, or a smaller package.")
        if outcome.exit_code == 0:
            return
        said = _complaint(outcome.stderr) or outcome.stdout.strip() or "it was ended"
        for address in (self._workshop.config.pip_index, self._workshop.config.npm_registry):
            said = said.replace(address, "the configured source") if address else said
        raise RetryByModel(
            f"{named} could not be installed: {shortened(said, _SAID_CHARS)}",
            hint="Check the name and the version. Packages that must be built here are not installed.",
        )


def _complaint(stderr: str) -> str:
    """The lines in which pip or npm says what is wrong, without its warnings, stacks and log files."""
    lines = [_PREFIX.sub("", line) for line in stderr.splitlines() if _PREFIX.match(line)]
    telling = [line.strip() for line in lines if line.strip() and not _STACK.match(line)]
    return " ".join(telling[:4]) or stderr.strip()
