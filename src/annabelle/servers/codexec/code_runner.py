"""Runs code in the sandbox: working folders, limits and mounts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.data_folders import CodeFolders, RunFolder
from annabelle.servers.codexec.execution import (
    Artifacts,
    FolderSnapshot,
    RunReport,
    build_report,
    copy_changed,
    list_changed,
    run_sandbox,
    snapshot_folder,
)
from annabelle.servers.codexec.isolation.backend import (
    CODE,
    SANDBOX_HOME,
    SCRATCH,
    WORK,
    Mount,
    SandboxBackend,
    SandboxLimits,
    SandboxProgram,
    SandboxSpec,
)
from annabelle.servers.codexec.isolation.selection import IsolationSelector
from annabelle.servers.codexec.languages import InterpreterFinder, Language, ProgramStart, start_for_code
from annabelle.servers.codexec.sandboxed_process import DiskQuota
from annabelle.servers.kit import current_call, in_thread
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """Working folder of the code. `shown` is the caller's name for it, None for a private folder."""

    run: RunFolder
    folder: Path
    shown: str | None

    @property
    def mount(self) -> Mount:
        """Workspace folders keep their own path, so that paths mean the same inside and outside."""
        return Mount(self.folder, WORK if self.shown is None else str(self.folder), writable=True)

    def disk_quota(self, most_bytes: int) -> DiskQuota | None:
        return DiskQuota(self.folder, most_bytes) if self.shown is None else None

    async def take_snapshot(self) -> FolderSnapshot:
        return await snapshot_folder(self.folder)

    async def collect_artifacts(self, before: FolderSnapshot, workspace: Workspace) -> Artifacts:
        if self.shown is None:
            return await copy_changed(self.folder, before, workspace)
        return await list_changed(self.folder, before, self.shown)


class FolderClaims:
    """Folders in use, by their real paths."""

    def __init__(self) -> None:
        self._held: Counter[Path] = Counter()

    def claim(self, folder: Path) -> None:
        """Claim a folder. Raises Conflict if code runs above or below it and could replace it by a link."""
        if any(held in folder.parents or folder in held.parents for held in self._held):
            raise Conflict(
                "Code is running in a folder above or below this one.",
                hint="Wait for it, close its session, or use the same folder.",
                field="working_dir",
            )
        self._held[folder] += 1

    def release(self, folder: Path) -> None:
        self._held[folder] -= 1
        if self._held[folder] <= 0:
            del self._held[folder]


_PATH = "/usr/local/bin:/usr/bin:/bin"
_END_SECONDS = 10.0


def current_owner() -> str:
    """Owner of packages and sessions: the calling agent, or people who call directly."""
    return current_call().agent_id or "people"


class CodeRunner:
    def __init__(self, config: CodeConfig, isolation: IsolationSelector | None = None) -> None:
        self.config = config
        self.isolation = isolation or IsolationSelector(config)
        self.workspace = Workspace(config.files)
        self.overflow = Overflow(self.workspace)
        self.folders = CodeFolders(config.data)
        self.claims = FolderClaims()

    def resolve_timeout(self, timeout_ms: int | None) -> float:
        limits = self.config.limits
        if timeout_ms is None:
            return limits.default_seconds
        if timeout_ms / 1000 > limits.max_seconds:
            raise InvalidArguments(
                f"timeout_ms may be at most {round(limits.max_seconds * 1000)}.",
                hint="The person can raise CODEXEC_MAX_TIMEOUT_MS.",
                field="timeout_ms",
            )
        return timeout_ms / 1000

    @asynccontextmanager
    async def work_folder(self, working_dir: str | None) -> AsyncGenerator[WorkFolder]:
        """Yield a work folder. A private one is removed afterwards, also on cancellation."""
        work_folder = await self.acquire_work_folder(working_dir)
        try:
            yield work_folder
        finally:
            await self.release_work_folder(work_folder)

    async def acquire_work_folder(self, working_dir: str | None) -> WorkFolder:
        backend = await self.isolation.layer()
        named = None if working_dir is None else await self._resolve_folder(working_dir)
        if named is not None:
            self.claims.claim(named)
        run: RunFolder | None = None
        try:
            if working_dir is not None:
                await self._resolve_folder(working_dir)  # code that ended before the claim may have left a link
            run = await in_thread(lambda stop: self.folders.new_run())
            work_folder = WorkFolder(run, named or run.work_folder, working_dir)
            await in_thread(lambda stop: self._prepare(backend, work_folder))
        except BaseException:
            await self._clear(run, named)
            raise
        return work_folder

    async def _resolve_folder(self, working_dir: str) -> Path:
        return await self.workspace.folder(working_dir, "write", field="working_dir")

    async def release_work_folder(self, work_folder: WorkFolder) -> None:
        await self._clear(work_folder.run, None if work_folder.shown is None else work_folder.folder)

    async def _clear(self, run: RunFolder | None, named: Path | None) -> None:
        if named is not None:
            self.claims.release(named)
        if run is not None:
            with anyio.move_on_after(_END_SECONDS, shield=True):
                await in_thread(lambda stop: run.remove())

    def _prepare(self, backend: SandboxBackend, work_folder: WorkFolder) -> None:
        backend.prepare(work_folder.folder, private=work_folder.shown is None)
        backend.prepare(work_folder.run.packages, private=True)

    async def run_code(
        self,
        language: Language,
        code: str,
        work_folder: WorkFolder,
        seconds: float,
        args: Sequence[str] = (),
        packages: Path | None = None,
    ) -> RunReport:
        """Run code once. `packages` are a script's own, in addition to the agent's."""
        backend = await self.isolation.layer()
        program = InterpreterFinder(backend).interpreter(language)
        start = start_for_code(language, code, self.config.limits.memory_mb)
        limits = self.build_limits(cpu_seconds=int(seconds * (os.cpu_count() or 1)) + 1)
        extra = () if packages is None else (Mount(packages, "/packages/script"),)
        sandbox = await self.build_sandbox(backend, work_folder, program, start, limits, args, extra)
        before = await work_folder.take_snapshot()
        outcome = await run_sandbox(backend, sandbox, seconds, work_folder.disk_quota(self.config.limits.disk_bytes))
        artifacts = await work_folder.collect_artifacts(before, self.workspace)
        return await build_report(outcome, artifacts, self.overflow, self.config.limits.output_chars)

    def build_limits(self, cpu_seconds: int | None = None) -> SandboxLimits:
        own = self.config.limits
        return SandboxLimits(own.processes, own.memory_bytes, own.file_bytes, cpu_seconds)

    async def build_sandbox(
        self,
        backend: SandboxBackend,
        work_folder: WorkFolder,
        program: SandboxProgram,
        start: ProgramStart,
        limits: SandboxLimits,
        args: Sequence[str] = (),
        extra: tuple[Mount, ...] = (),
    ) -> SandboxSpec:
        """Build a sandbox that sees only the code, its work folder and the packages."""
        agent = await in_thread(lambda stop: self._write_code(work_folder.run, start))
        code = Mount(work_folder.run.code_folder, CODE)
        packages = (*extra, Mount(agent, "/packages/agent"))
        modules = next((mount.source for mount in packages if _node_modules(mount.source).is_dir()), None)
        beside = () if modules is None else (Mount(_node_modules(modules), "/node_modules"),)  # where `import` looks
        return SandboxSpec(
            name=f"annabelle-{work_folder.run.root.name}",
            argv=(*program.argv, *start.argv(backend.place(code)), *args),
            mounts=(work_folder.mount, code, *packages, *beside, *program.mounts),
            folder=backend.place(work_folder.mount),
            env=build_environment(backend, work_folder.mount, packages),
            limits=limits,
            network=self.config.network,
        )

    def _write_code(self, run: RunFolder, start: ProgramStart) -> Path:
        for name, text in start.files.items():
            run.write_code(name, text)
        return self.folders.agent_packages(current_owner())


def build_environment(backend: SandboxBackend, folder: Mount, packages: Sequence[Mount] = ()) -> dict[str, str]:
    """Environment of the code. Contains nothing of the server's own."""
    work = backend.place(folder)
    places = [backend.place(mount) for mount in packages]
    own = work != folder.target  # host paths: /tmp is not private here
    return {
        "PATH": _PATH,
        "HOME": work if own else SANDBOX_HOME,
        "TMPDIR": work if own else SCRATCH,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": ":".join([work, *(f"{place}/python" for place in places)]),
        "NODE_PATH": ":".join(f"{place}/node/node_modules" for place in places),
    }


def _node_modules(packages: Path) -> Path:
    return packages / "node" / "node_modules"
