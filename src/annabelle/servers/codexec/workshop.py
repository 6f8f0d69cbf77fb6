"""What all tools that run code share: the layer, the folders, the limits, and the way to put a cell together."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from annabelle.core.errors import InvalidArguments
from annabelle.servers.codexec.bench import Bench
from annabelle.servers.codexec.claims import Claims
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.folders import Folders, RunFolder
from annabelle.servers.codexec.isolation.choosing import Isolation
from annabelle.servers.codexec.isolation.layer import CELL_HOME, CODE, SCRATCH, Cell, CellLimits, Layer, Mount, Program
from annabelle.servers.codexec.languages import Start, start_of
from annabelle.servers.codexec.programs import Language, Programs
from annabelle.servers.codexec.report import RunReport, run_report
from annabelle.servers.codexec.running import run_cell
from annabelle.servers.kit import current_call, in_thread
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow

_PATH = "/usr/local/bin:/usr/bin:/bin"
_END_SECONDS = 10.0


def whose() -> str:
    """Whom packages and sessions belong to: the agent that calls, or the people who call themselves."""
    return current_call().agent_id or "people"


class Workshop:
    """Puts cells together and runs them."""

    def __init__(self, config: CodeConfig, isolation: Isolation | None = None) -> None:
        self.config = config
        self.isolation = isolation or Isolation(config)
        self.workspace = Workspace(config.files)
        self.overflow = Overflow(self.workspace)
        self.folders = Folders(config.data)
        self.claims = Claims()

    def seconds(self, timeout_ms: int | None) -> float:
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
    async def bench(self, working_dir: str | None) -> AsyncGenerator[Bench]:
        """A place to work, gone afterwards if it is private; also when the call is cancelled."""
        bench = await self.take_bench(working_dir)
        try:
            yield bench
        finally:
            await self.leave_bench(bench)

    async def take_bench(self, working_dir: str | None) -> Bench:
        """A place to work until `leave_bench`."""
        layer = await self.isolation.layer()
        named = None if working_dir is None else await self._named(working_dir)
        if named is not None:
            self.claims.take(named)
        run: RunFolder | None = None
        try:
            if working_dir is not None:
                await self._named(working_dir)  # code that ended just before it was claimed may have left a link there
            run = await in_thread(lambda stop: self.folders.new_run())
            bench = Bench(run, named or run.work, working_dir)
            await in_thread(lambda stop: self._prepare(layer, bench))
        except BaseException:
            await self._clear(run, named)
            raise
        return bench

    async def _named(self, working_dir: str) -> Path:
        return await self.workspace.folder(working_dir, "write", field="working_dir")

    async def leave_bench(self, bench: Bench) -> None:
        await self._clear(bench.run, None if bench.shown is None else bench.folder)

    async def _clear(self, run: RunFolder | None, named: Path | None) -> None:
        if named is not None:
            self.claims.give_back(named)
        if run is not None:
            with anyio.move_on_after(_END_SECONDS, shield=True):
                await in_thread(lambda stop: run.remove())

    def _prepare(self, layer: Layer, bench: Bench) -> None:
        layer.prepare(bench.folder, private=bench.shown is None)
        layer.prepare(bench.run.packages, private=True)

    async def run_code(
        self,
        language: Language,
        code: str,
        bench: Bench,
        seconds: float,
        args: Sequence[str] = (),
        packages: Path | None = None,
    ) -> RunReport:
        """One run, and what came of it. `packages` are those of a script, beside the agent's own."""
        layer = await self.isolation.layer()
        program = Programs(layer).interpreter(language)
        start = start_of(language, code, self.config.limits.memory_mb)
        limits = self.limits(cpu_seconds=int(seconds * (os.cpu_count() or 1)) + 1)
        extra = () if packages is None else (Mount(packages, "/packages/script"),)
        cell = await self.cell(layer, bench, program, start, limits, args, extra)
        before = await bench.before()
        outcome = await run_cell(layer, cell, seconds, bench.disk(self.config.limits.disk_bytes))
        artifacts = await bench.made_since(before, self.workspace)
        return await run_report(outcome, artifacts, self.overflow, self.config.limits.output_chars)

    def limits(self, cpu_seconds: int | None = None) -> CellLimits:
        own = self.config.limits
        return CellLimits(own.processes, own.memory_bytes, own.file_bytes, cpu_seconds)

    async def cell(
        self,
        layer: Layer,
        bench: Bench,
        program: Program,
        start: Start,
        limits: CellLimits,
        args: Sequence[str] = (),
        extra: tuple[Mount, ...] = (),
    ) -> Cell:
        """A program on some code. It sees the code, its place, the agent's packages, and no more."""
        agent = await in_thread(lambda stop: self._laid_out(bench.run, start))
        code = Mount(bench.run.code, CODE)
        packages = (*extra, Mount(agent, "/packages/agent"))
        modules = next((mount.source for mount in packages if _modules(mount.source).is_dir()), None)
        beside = () if modules is None else (Mount(_modules(modules), "/node_modules"),)  # where import looks
        return Cell(
            name=f"annabelle-{bench.run.root.name}",
            argv=(*program.argv, *start.argv(layer.place(code)), *args),
            mounts=(bench.mount, code, *packages, *beside, *program.mounts),
            folder=layer.place(bench.mount),
            env=environment(layer, bench.mount, packages),
            limits=limits,
            network=self.config.network,
        )

    def _laid_out(self, run: RunFolder, start: Start) -> Path:
        for name, text in start.files.items():
            run.put(name, text)
        return self.folders.of_agent(whose())


def environment(layer: Layer, folder: Mount, packages: Sequence[Mount] = ()) -> dict[str, str]:
    """All that code finds in its environment. Nothing of the server's own is handed on."""
    work = layer.place(folder)
    places = [layer.place(mount) for mount in packages]
    own = work != folder.target  # paths are those of the machine: /tmp is not private here
    return {
        "PATH": _PATH,
        "HOME": work if own else CELL_HOME,
        "TMPDIR": work if own else SCRATCH,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": ":".join([work, *(f"{place}/python" for place in places)]),
        "NODE_PATH": ":".join(f"{place}/node/node_modules" for place in places),
    }


def _modules(packages: Path) -> Path:
    return packages / "node" / "node_modules"
