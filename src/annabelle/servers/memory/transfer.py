"""Tools that export the memory to files and import files into it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import CallerMistake, NotAllowed
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.kit import Call, Result, StopSign, current_call, deferred_module, in_thread, tool
from annabelle.servers.memory.arguments import Agent, resolve_origin, resolve_owner
from annabelle.servers.memory.config import FAILPOINTS
from annabelle.servers.memory.files.locations import ImportLocation, export_folder, find_locations, read_files
from annabelle.servers.memory.files.reader import FOLDER, ImportContent, read_import
from annabelle.servers.memory.files.rows import dump_row, load_row
from annabelle.servers.memory.importer.import_context import ImportSource, ImportTally
from annabelle.servers.memory.lazy_memory import LazyMemory, MemoryTools

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.files import writer
    from annabelle.servers.memory.importer import records
    from annabelle.servers.memory.open_memory import OpenMemory
    from annabelle.store.memory import transfer
else:
    records = deferred_module("annabelle.servers.memory.importer.records")
    transfer = deferred_module("annabelle.store.memory.transfer")
    writer = deferred_module("annabelle.servers.memory.files.writer")


_BETWEEN, _BEFORE_COMMIT = FAILPOINTS
BATCH = 500
_EXPORT = "an export"


class _DryRunDone(Exception):
    """Rolls back a dry run."""


class RemovedLine(BaseModel):
    """A fact whose line is gone from the page."""

    model_config = ConfigDict(frozen=True)

    id: int
    fact: str


class ImportResult(Result):
    """How far an import is, and what became of each kind of row."""

    files: list[str]
    total: int = Field(description="Rows in the file that can be imported")
    staged: int = Field(description="Rows put aside so far; nothing of them is visible before all are")
    finished: bool = Field(description="Whether all of it is in")
    dry_run: bool = False
    outcome: dict[str, dict[str, int]] = Field(description="By kind: how many were added, changed, known, …")
    removed: list[RemovedLine] = Field(description="The first facts whose lines are gone from the page")
    left_out: dict[str, int] = Field(description="Rows that look like they hold a secret, by its kind")
    notes: list[str] = Field(default_factory=list[str])
    trust: Trust

    def to_text(self) -> str:
        return " ".join(filter(None, [self._state(), self._outcome(), self._removed(), self._left_out(), *self.notes]))

    def _state(self) -> str:
        if self.dry_run:
            return "Nothing was changed yet; an import would do this."
        if not self.finished:
            return f"{self.staged} of {self.total} rows are put aside; call it again to go on."
        return f"Imported {', '.join(self.files)}."

    def _outcome(self) -> str:
        parts = [
            f"{kind}: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}"
            for kind, counts in self.outcome.items()
            if any(counts.values())
        ]
        nothing = "There was nothing in it." if self.finished or self.dry_run else ""
        return f"{'; '.join(parts)}." if parts else nothing

    def _removed(self) -> str:
        gone = self.outcome.get("facts", {}).get("removed from the page", 0)
        shown = ", ".join(f"{one.id} ({one.fact[:60]})" for one in self.removed[:5])
        return f"Lines are gone for facts {shown}{', …' if gone > 5 else ''}; prune retires them." if gone else ""

    def _left_out(self) -> str:
        kinds = ", ".join(f"{count} with a {kind}" for kind, count in self.left_out.items())
        return f"Left out because they look like secrets: {kinds}." if kinds else ""


class ImportTools(MemoryTools):
    """import_memory."""

    def __init__(self, lazy_memory: LazyMemory) -> None:
        super().__init__(lazy_memory)
        self._one_at_a_time = asyncio.Lock()
        self._last: ImportContent | None = None

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def import_memory(
        self,
        file_path: Annotated[
            str,
            Field(
                max_length=4000,
                description="A file in the export folder or the workspace: memory.json, an edited page such as "
                'facts.md, lines of {"fact": …, "category": …} in a .jsonl, or a folder of pages',
            ),
        ],
        agent_id: Agent = None,
        dry_run: Annotated[bool, Field(description="Only say what would happen")] = False,
        prune: Annotated[
            bool, Field(description="Also retire facts whose lines were removed from an exported facts.md")
        ] = False,
        batch_size: Annotated[
            int | None,
            Field(ge=1, le=10_000, description="Put aside only this many rows, and go on with the next call"),
        ] = None,
    ) -> ImportResult:
        """Read memories from a file. It is checked as a whole first: a file with something wrong in it imports nothing.
        A changed line corrects a fact, a new line adds one; what is known already is left alone, so the same file
        can be imported twice. Rows that look like secrets are left out."""
        call = current_call()
        owner, (said, origin) = resolve_owner(call, agent_id), resolve_origin(call)
        by_agent = call.caller not in ("cli", "api", "hub")
        places = find_locations(self._memory.config, owner, file_path, any_agent=not by_agent)
        async with self._one_at_a_time:
            place, trust, reading = await self._read_content(places, said, by_agent, prune)
            if prune and trust == "untrusted":
                raise NotAllowed(
                    "Facts are not retired by a file that others may have written.",
                    hint="Leave prune out.",
                    field="prune",
                )
            source = ImportSource(owner, place.shown if place.names else _EXPORT, trust, origin, prune)
            work = _ImportJob(await self._memory.get(), source)
            if dry_run:
                return _to_result(reading, await work.dry_run(reading), staged=len(reading.rows), dry_run=True)
            answer = await self._import_rows(work, reading, call, batch_size)
            self._last = None if answer.finished else reading
            return answer

    async def _read_content(
        self, places: list[ImportLocation], said: Trust, by_agent: bool, prune: bool
    ) -> tuple[ImportLocation, Trust, ImportContent]:
        """The file, read and checked. What lies in the workspace may have been put there by anything an agent read."""
        place, files = await asyncio.to_thread(read_files, places, FOLDER)
        trust: Trust = said if place.exported or not by_agent else "untrusted"
        last = self._last

        def read_content(stop: StopSign) -> ImportContent:
            return read_import(files, trust, prune, stop, last)

        return place, trust, await in_thread(read_content)

    async def _import_rows(
        self, work: _ImportJob, reading: ImportContent, call: Call, batch_size: int | None
    ) -> ImportResult:
        total = len(reading.rows)
        begun = await work.begin(reading)
        staged = begun.staged
        until = total if batch_size is None else min(total, staged + batch_size)
        while staged < until:
            staged = await work.stage(begun.id, reading, staged, min(until, staged + BATCH))
            failpoint(_BETWEEN)
            await call.progress(staged, total, f"{staged} of {total} rows read")
        if staged < total:
            return _to_result(reading, ImportTally(), staged=staged, finished=False)
        done = await work.finish(begun.id, reading)
        await call.progress(total, total, "imported")
        return _to_result(reading, done, staged=total)


@dataclass(frozen=True, slots=True)
class _ImportJob:
    """One import into one memory."""

    memory: OpenMemory
    source: ImportSource

    async def dry_run(self, reading: ImportContent) -> ImportTally:
        """Import everything and roll it back."""
        done: list[ImportTally] = []

        def import_and_roll_back(connection: Connection) -> None:
            done.append(records.import_rows(connection, self.source, reading.iter_rows(0, len(reading.rows))))
            raise _DryRunDone

        with contextlib.suppress(_DryRunDone):
            await self.memory.database.write(import_and_roll_back)
        return done[-1]

    async def begin(self, reading: ImportContent) -> transfer.ImportJob:
        owner, name, total = self.source.owner, self.source.name, len(reading.rows)
        return await self.memory.database.write(lambda c: transfer.begin_import(c, owner, reading.digest, name, total))

    async def stage(self, import_id: int, reading: ImportContent, start: int, stop: int) -> int:
        """Stage some rows and return how many are staged now."""

        def dump_rows(sign: StopSign) -> list[JsonObject]:
            return [dump_row(row) for row in reading.iter_rows(start, stop)]

        rows = await in_thread(dump_rows)
        await self.memory.database.write(lambda c: transfer.stage_rows(c, import_id, start, rows))
        return stop

    async def finish(self, import_id: int, reading: ImportContent) -> ImportTally:
        """Import all staged rows in one transaction. One bad row refuses all of them."""

        def apply_rows(connection: Connection) -> ImportTally:
            tally = ImportTally()
            if not transfer.get_import(connection, self.source.owner, reading.digest).finished:
                rows = map(load_row, transfer.read_staged_rows(connection, import_id))
                tally = records.import_rows(connection, self.source, rows)
                transfer.finish_import(connection, import_id)
            failpoint(_BEFORE_COMMIT)
            return tally

        async def store_import() -> ImportTally:
            try:
                done = await self.memory.database.write(apply_rows)
            except CallerMistake:  # the file is wrong, so trying again would not help
                await self.memory.database.write(lambda c: transfer.abandon_import(c, import_id))
                raise
            self.memory.search.drop("fact", self.source.owner, done.retired)
            if "added" in done.counts.get("conversations", ()):
                await self.memory.search.load()
            self.memory.upkeep.run_now()
            return done

        return await self.memory.uncancellable.run(store_import())


def _to_result(
    reading: ImportContent,
    done: ImportTally,
    *,
    staged: int,
    finished: bool = True,
    dry_run: bool = False,
) -> ImportResult:
    removed = [RemovedLine(id=number, fact=fact) for number, fact in done.removed]
    return ImportResult(
        files=reading.names,
        total=len(reading.rows),
        staged=staged,
        finished=finished and not dry_run,
        dry_run=dry_run,
        outcome={kind: dict(counts) for kind, counts in done.counts.items()},
        removed=removed,
        left_out=dict(reading.secrets),
        notes=[*reading.notes, *done.notes],
        trust="untrusted" if removed else "trusted",
    )


class ExportResult(Result):
    """Where an export is, and how much is in it."""

    format: Literal["markdown", "json"]
    folder: str
    files: list[str] = Field(description="Paths within the folder")
    counts: dict[str, int] = Field(description="How many rows of each kind")
    trust: Trust = "trusted"

    def to_text(self) -> str:
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self.counts.items())
        shown = ", ".join(self.files[:8]) + (", …" if len(self.files) > 8 else "")
        return f"Exported {counts} to {self.folder}: {shown}."


class ExportTools(MemoryTools):
    """export_memory."""

    def __init__(self, lazy_memory: LazyMemory) -> None:
        super().__init__(lazy_memory)
        self._one_at_a_time = asyncio.Lock()

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def export_memory(
        self,
        agent_id: Agent = None,
        format: Annotated[
            Literal["markdown", "json"],
            Field(description="markdown makes pages to read and edit, json one file that holds everything"),
        ] = "markdown",
        include_conversations: Annotated[bool, Field(description="Also what was said, month by month")] = True,
    ) -> ExportResult:
        """Write everything that is remembered into files in the user's export folder. import_memory reads them again,
        also after they were edited. The files of an earlier export are replaced."""
        owner = resolve_owner(current_call(), agent_id)
        config = self._memory.config
        folder, zone, sign = export_folder(config, owner), self._zone(), StopSign()

        def write_export(connection: Connection) -> ExportResult:
            work = writer.MemoryExport(connection, owner, folder, zone, sign)
            if format == "json":
                work.write_document(include_conversations)
            else:
                work.write_pages(include_conversations)
            files = [str(path.relative_to(folder)) for path in work.files]
            return ExportResult(format=format, folder=str(folder), files=files, counts=work.counts)

        async with self._one_at_a_time:
            try:
                return await self._read(write_export)
            except asyncio.CancelledError:
                sign.stop()
                raise
