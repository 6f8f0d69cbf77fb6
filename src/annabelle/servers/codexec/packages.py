"""The install_package tool: installs in a sandbox with network access, within a disk quota."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from weakref import WeakValueDictionary

import anyio
from pydantic import Field

from annabelle.core.errors import InvalidArguments, RetryByModel, TooLarge, ToolTimeout
from annabelle.core.result_text import for_model
from annabelle.servers.codexec.code_runner import CodeRunner, build_environment, current_owner
from annabelle.servers.codexec.config import PackageLimits
from annabelle.servers.codexec.data_folders import CodeFolders, list_folder
from annabelle.servers.codexec.execution import RunOutcome, run_sandbox, shorten_middle
from annabelle.servers.codexec.isolation.backend import SCRATCH, Mount, SandboxBackend, SandboxLimits, SandboxSpec
from annabelle.servers.codexec.languages import InterpreterFinder, SessionLanguage
from annabelle.servers.codexec.sandboxed_process import DiskQuota, measure_disk_usage
from annabelle.servers.codexec.session_pool import SessionPool
from annabelle.servers.kit import Result, in_thread, tool

_MOST_FILES = 200_000
_MB = 1_048_576


@dataclass(frozen=True, slots=True)
class PackageQuota:
    """Measures packages against their disk limits. Its methods block; call them in a thread."""

    folders: CodeFolders
    limits: PackageLimits

    def remaining_quota(self, target: Path) -> DiskQuota:
        """What an environment may grow to now. Raises if it is full."""
        own, total = self._used(target)
        if own >= self.limits.bytes:
            raise self._one_full(f"The packages here take {_format_mb(own)} already", target)
        if total >= self.limits.total_bytes:
            raise self._all_full(f"All packages together take {_format_mb(total)} already")
        return DiskQuota(target, min(self.limits.bytes, self.limits.total_bytes - total + own), _MOST_FILES)

    def is_exceeded(self, target: Path) -> bool:
        own, total = self._used(target)
        return own > self.limits.bytes or total > self.limits.total_bytes

    def refusal(self, named: str, target: Path) -> TooLarge:
        """Error for packages that did not fit and have been removed again."""
        own, total = self._used(target)
        if self.limits.total_bytes - total < self.limits.bytes - own:
            return self._all_full(
                f"{named} is not installed, it does not fit: all packages together take {_format_mb(total)}"
            )
        return self._one_full(
            f"{named} is not installed, it does not fit: the packages here take {_format_mb(own)}", target
        )

    def _used(self, target: Path) -> tuple[int, int]:
        own = measure_disk_usage([target]).bytes
        return own, own + measure_disk_usage(one for one in self.folders.environments() if one != target).bytes

    def _one_full(self, said: str, target: Path) -> TooLarge:
        lasting = self.folders.is_lasting(target)
        clear = f"delete the folder {target.name} in data/codexec/packages, or " if lasting else ""
        return TooLarge(
            f"{said}, and {_format_mb(self.limits.bytes)} is what they may take.",
            hint="Take a smaller package, or install it into a new session: start_session, then its session_id. "
            f"The person can {clear}raise CODEXEC_MAX_PACKAGES_MB.",
        )

    def _all_full(self, said: str) -> TooLarge:
        return TooLarge(
            f"{said}, and {_format_mb(self.limits.total_bytes)} is what they may take.",
            hint="Close sessions you are done with, or delete scripts that have packages and are not needed. "
            "The person can delete folders in data/codexec/packages, or raise CODEXEC_MAX_PACKAGES_TOTAL_MB.",
        )


def _format_mb(size: int) -> str:
    return f"{size / _MB:,.0f} MB"


_LISTS = ("package.json", "package-lock.json", "node_modules/.package-lock.json")
"""Where npm records what it has installed. It fetches everything listed there with the next package."""
_SHARED = ("__pycache__", "bin", ".bin")
"""Folders shared by several packages."""


@dataclass(frozen=True, slots=True)
class PackageSnapshot:
    """Packages of one language before an install. `restore` does not bring back an overwritten version."""

    folder: Path
    packages: frozenset[Path]
    lists: dict[str, bytes]

    @classmethod
    def take(cls, folder: Path) -> PackageSnapshot:
        lists = {name: (folder / name).read_bytes() for name in _LISTS if (folder / name).is_file()}
        return cls(folder, frozenset(_list_packages(folder)), lists)

    def restore(self) -> None:
        for place in _list_packages(self.folder) - self.packages:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    place.unlink()
        for name in _LISTS:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)
                if name in self.lists:
                    (self.folder / name).write_bytes(self.lists[name])


def _list_packages(folder: Path) -> set[Path]:
    """Paths of packages: side by side for Python; for Node in node_modules, some below a scope."""
    found: set[Path] = set()
    for place in (*list_folder(folder), *list_folder(folder / "node_modules")):
        if place.name == "node_modules":
            continue
        found |= set(list_folder(place)) if place.name in _SHARED or place.name.startswith("@") else {place}
    return found


_TARGET = "/packages/target"
_SCRATCH = ".scratch"
_END_SECONDS = 10.0
_FILE_FACTOR = 10
_NOTHING_FOUND = {"PYTHONPATH": "", "NODE_PATH": ""}
"""Package managers must not load what they have installed."""
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


class PackageInstaller:
    """Installs packages. Calls for the same folder run one after the other."""

    def __init__(self, runner: CodeRunner) -> None:
        self._runner = runner
        self._space = PackageQuota(runner.folders, runner.config.packages)
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    async def install(self, language: SessionLanguage, packages: Sequence[str], target: Path) -> None:
        """Install checked packages. Raises the package manager's message if it fails, TooLarge if the quota is full."""
        backend = await self._runner.isolation.layer()
        lock = self._locks.setdefault(target, asyncio.Lock())
        async with lock:
            disk = await in_thread(lambda stop: self._space.remaining_quota(target))
            before = await in_thread(lambda stop: PackageSnapshot.take(target / language))
            scratch = target / _SCRATCH
            try:
                await in_thread(lambda stop: self._prepare(backend, target, scratch))
                outcome = await self._run(backend, language, packages, disk)
            finally:
                with anyio.move_on_after(_END_SECONDS, shield=True):
                    await in_thread(lambda stop: shutil.rmtree(scratch, ignore_errors=True))
            if outcome.killed == "disk" or await in_thread(lambda stop: self._space.is_exceeded(target)):
                await in_thread(lambda stop: before.restore())
                raise await in_thread(lambda stop: self._space.refusal(", ".join(packages), target))
        self._raise_on_failure(outcome, packages)

    def _prepare(self, backend: SandboxBackend, target: Path, scratch: Path) -> None:
        scratch.mkdir(exist_ok=True)
        backend.prepare(target, private=True)

    async def _run(
        self, backend: SandboxBackend, language: SessionLanguage, packages: Sequence[str], disk: DiskQuota
    ) -> RunOutcome:
        mount = Mount(disk.folder, _TARGET, writable=True)
        inside = backend.place(mount)
        argv, mounts = self._command(backend, language, packages, f"{inside}/{language}")
        sandbox = SandboxSpec(
            name=f"annabelle-install-{secrets.token_hex(8)}",
            argv=argv,
            mounts=(mount, *mounts),
            folder=f"{inside}/{_SCRATCH}",
            env={
                **build_environment(backend, mount),
                "TMPDIR": f"{inside}/{_SCRATCH}",
                **_NOTHING_FOUND,
                **self._sources(),
            },
            limits=self._limits(),
            network=True,
        )
        return await run_sandbox(backend, sandbox, self._runner.config.limits.max_seconds, disk)

    def _command(
        self, backend: SandboxBackend, language: SessionLanguage, packages: Sequence[str], folder: str
    ) -> tuple[tuple[str, ...], tuple[Mount, ...]]:
        if language == "python":
            pip = InterpreterFinder(backend).pip()
            return (*pip.argv, *_PIP, "--target", folder, "--", *packages), pip.mounts
        npm = InterpreterFinder(backend).npm()
        return (*npm.argv, *_NPM, "--prefix", folder, "--", *packages), npm.mounts

    def _sources(self) -> dict[str, str]:
        """Set by environment: a URL may hold a password, and arguments are visible to others."""
        config = self._runner.config
        sources = {"PIP_CONFIG_FILE": "/dev/null", "npm_config_cache": f"{SCRATCH}/npm"}
        if config.pip_index:
            sources["PIP_INDEX_URL"] = config.pip_index
        if config.npm_registry:
            sources["npm_config_registry"] = config.npm_registry
        return sources

    def _limits(self) -> SandboxLimits:
        own = self._runner.build_limits()
        return replace(own, file_bytes=own.file_bytes * _FILE_FACTOR)

    def _raise_on_failure(self, outcome: RunOutcome, packages: Sequence[str]) -> None:
        named = ", ".join(packages)
        if outcome.timed_out:
            raise ToolTimeout(f"Installing {named} took too long.", hint="Try again, or a smaller package.")
        if outcome.exit_code == 0:
            return
        said = _extract_errors(outcome.stderr) or outcome.stdout.strip() or "it was ended"
        for address in (self._runner.config.pip_index, self._runner.config.npm_registry):
            said = said.replace(address, "the configured source") if address else said
        raise RetryByModel(
            f"{named} could not be installed: {shorten_middle(said, _SAID_CHARS)}",
            hint="Check the name and the version. Packages that must be built here are not installed.",
        )


def _extract_errors(stderr: str) -> str:
    """The lines with pip's or npm's errors, without warnings, stacks and log files."""
    lines = [_PREFIX.sub("", line) for line in stderr.splitlines() if _PREFIX.match(line)]
    telling = [line.strip() for line in lines if line.strip() and not _STACK.match(line)]
    return " ".join(telling[:4]) or stderr.strip()


_PYTHON_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_BOUND = r"(?:==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.!+*_-]*"
_PYTHON = re.compile(
    rf"{_PYTHON_NAME}(?:\[{_PYTHON_NAME}(?:,\s*{_PYTHON_NAME})*\])?(?:\s*{_BOUND}(?:\s*,\s*{_BOUND})*)?", re.ASCII
)
_PART = r"[a-z0-9][a-z0-9._~-]*"
_NODE = re.compile(rf"(?:@{_PART}/)?{_PART}(?:@[\^~]?[A-Za-z0-9][A-Za-z0-9.+-]*)?", re.ASCII)

MAX_CHARS = 200


def check_package_name(language: SessionLanguage, package: str, field: str = "package") -> str:
    """Return the package for the package manager. Refuses options, URLs and paths."""
    wanted = package.strip()
    pattern, example = (_PYTHON, "requests==2.32.0") if language == "python" else (_NODE, "lodash@4.17.21")
    if len(wanted) > MAX_CHARS or pattern.fullmatch(wanted) is None:
        raise InvalidArguments(
            f"{wanted[:100]!r} is not the name of a package.",
            hint=f"Give a name with or without a version, as {example}; no options, addresses or paths.",
            field=field,
        )
    return wanted


class PackageInstalled(Result):
    """A package that can be used from now on."""

    package: str
    language: str
    session_id: str | None = Field(default=None, description="The session that has it; null: all your later runs")

    def to_text(self) -> str:
        where = "all later runs" if self.session_id is None else f"session{for_model(f' {self.session_id}')}"
        return f"{self.package} is installed for {where}."


class PackageTools:
    def __init__(self, runner: CodeRunner, pool: SessionPool, installer: PackageInstaller) -> None:
        self._runner = runner
        self._pool = pool
        self._installer = installer

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def install_package(
        self,
        language: Annotated[SessionLanguage, Field(description="python or node")],
        package: Annotated[
            str, Field(max_length=300, description="Name, with a version if it matters: requests==2.32.0, lodash@4.17")
        ],
        session_id: Annotated[
            str | None, Field(max_length=200, description="Only for this session; by default for all your runs")
        ] = None,
    ) -> PackageInstalled:
        """Install a package from PyPI or npm for code you run later, or for one open session."""
        wanted = check_package_name(language, package)
        if session_id is None:
            target = await in_thread(lambda stop: self._runner.folders.agent_packages(current_owner()))
            await self._installer.install(language, [wanted], target)
            return PackageInstalled(package=wanted, language=language)
        session = self._pool.find(session_id)
        if session.language != language:
            raise InvalidArguments(f"Session {session.id} speaks {session.language}.", field="language")
        await self._installer.install(language, [wanted], session.packages)
        session.touch()
        return PackageInstalled(package=wanted, language=language, session_id=session.id)
