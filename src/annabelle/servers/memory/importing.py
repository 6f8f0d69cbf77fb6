"""The tool that reads files of memories: exports, also edited ones, and plain lists of facts."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.errors import CallerMistake, NotAllowed
from annabelle.core.failpoints import failpoint
from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Call, StopSign, current_call, deferred_module, in_thread, tool
from annabelle.servers.memory.failpoints import FAILPOINTS
from annabelle.servers.memory.files.places import Chosen, choose, read_files
from annabelle.servers.memory.files.reading import FOLDER, Reading, read_all
from annabelle.servers.memory.files.rows import dump_row, load_row
from annabelle.servers.memory.imported import Imported, Removed
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import origin_of, owner_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.library import Library
    from annabelle.servers.memory.taking import take, tally
    from annabelle.store.memory import imports
    from annabelle.store.memory.owner import Owner
else:
    take = deferred_module("annabelle.servers.memory.taking.take")
    tally = deferred_module("annabelle.servers.memory.taking.tally")
    imports = deferred_module("annabelle.store.memory.imports")

_BETWEEN, _BEFORE_COMMIT = FAILPOINTS
BATCH = 500
_EXPORT = "an export"


class _Rehearsed(Exception):
    """Carries out what an import would have done."""


class ImportTools:
    """import_memory."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._one_at_a_time = asyncio.Lock()
        self._last: Reading | None = None

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
        agent_id: Annotated[
            str | None, Field(description="The agent whose memory is meant; leave it out for your own")
        ] = None,
        dry_run: Annotated[bool, Field(description="Only say what would happen")] = False,
        prune: Annotated[
            bool, Field(description="Also retire facts whose lines were removed from an exported facts.md")
        ] = False,
        batch_size: Annotated[
            int | None,
            Field(ge=1, le=10_000, description="Put aside only this many rows, and go on with the next call"),
        ] = None,
    ) -> Imported:
        """Read memories from a file. It is checked as a whole first: a file with something wrong in it imports nothing.
        A changed line corrects a fact, a new line adds one; what is known already is left alone, so the same file
        can be imported twice. Rows that look like secrets are left out."""
        call = current_call()
        owner, (said, origin) = owner_of(call, agent_id), origin_of(call)
        by_agent = call.caller not in ("cli", "api", "hub")
        places = choose(self._opening.config, owner, file_path, any_agent=not by_agent)
        async with self._one_at_a_time:
            place, trust, reading = await self._read(places, said, by_agent, prune)
            if prune and trust == "untrusted":
                raise NotAllowed(
                    "Facts are not retired by a file that others may have written.",
                    hint="Leave prune out.",
                    field="prune",
                )
            work = _Work(
                await self._opening.library(), owner, place.shown if place.names else _EXPORT, trust, origin, prune
            )
            if dry_run:
                return _told(reading, await work.rehearse(reading), staged=len(reading.rows), dry_run=True)
            answer = await self._bring_in(work, reading, call, batch_size)
            self._last = None if answer.finished else reading
            return answer

    async def _read(
        self, places: list[Chosen], said: Trust, by_agent: bool, prune: bool
    ) -> tuple[Chosen, Trust, Reading]:
        """The file, read and checked. What lies in the workspace may have been put there by anything an agent read."""
        place, files = await asyncio.to_thread(read_files, places, FOLDER)
        trust: Trust = said if place.exported or not by_agent else "untrusted"
        last = self._last

        def read(stop: StopSign) -> Reading:
            return read_all(files, trust, prune, stop, last)

        return place, trust, await in_thread(read)

    async def _bring_in(self, work: _Work, reading: Reading, call: Call, batch_size: int | None) -> Imported:
        total = len(reading.rows)
        begun = await work.begin(reading)
        staged = begun.staged
        until = total if batch_size is None else min(total, staged + batch_size)
        while staged < until:
            staged = await work.stage(begun.id, reading, staged, min(until, staged + BATCH))
            failpoint(_BETWEEN)
            await call.progress(staged, total, f"{staged} of {total} rows read")
        if staged < total:
            return _told(reading, tally.Tally(), staged=staged, finished=False)
        done = await work.finish(begun.id, reading)
        await call.progress(total, total, "imported")
        return _told(reading, done, staged=total)


@dataclass(frozen=True, slots=True)
class _Work:
    """One import into one memory."""

    library: Library
    owner: Owner
    name: str
    trust: Trust
    origin: JsonObject
    prune: bool

    def _taking(self, connection: Connection) -> tally.Taking:
        return tally.Taking(connection, self.owner, self.name, self.trust, self.origin, self.prune, tally.Tally())

    async def rehearse(self, reading: Reading) -> tally.Tally:
        """Do it all, and take it back."""
        done: list[tally.Tally] = []

        def attempt(connection: Connection) -> None:
            taking = self._taking(connection)
            take.take(taking, reading.between(0, len(reading.rows)))
            done.append(taking.tally)
            raise _Rehearsed

        with contextlib.suppress(_Rehearsed):
            await self.library.database.write(attempt)
        return done[-1]

    async def begin(self, reading: Reading) -> imports.Import:
        total = len(reading.rows)
        return await self.library.database.write(
            lambda c: imports.begin(c, self.owner, reading.digest, self.name, total)
        )

    async def stage(self, import_id: int, reading: Reading, start: int, stop: int) -> int:
        """Put some rows aside; how many there are now."""

        def read(sign: StopSign) -> list[JsonObject]:
            return [dump_row(row) for row in reading.between(start, stop)]

        rows = await in_thread(read)
        await self.library.database.write(lambda c: imports.stage(c, import_id, start, rows))
        return stop

    async def finish(self, import_id: int, reading: Reading) -> tally.Tally:
        """Take everything in that was put aside, in one transaction. A row that does not fit refuses all of them."""

        def apply(connection: Connection) -> tally.Tally:
            taking = self._taking(connection)
            if not imports.get(connection, self.owner, reading.digest).finished:
                take.take(taking, map(load_row, imports.staged(connection, import_id)))
                imports.finish(connection, import_id)
            failpoint(_BEFORE_COMMIT)
            return taking.tally

        async def store() -> tally.Tally:
            try:
                done = await self.library.database.write(apply)
            except CallerMistake:  # the file's fault, so that going on with it would not help
                await self.library.database.write(lambda c: imports.abandon(c, import_id))
                raise
            self.library.search.drop("fact", self.owner, done.retired)
            if done.of("conversations", "added"):
                await self.library.search.load()
            self.library.upkeep.wake()
            return done

        return await self.library.whole.do(store())


def _told(
    reading: Reading, done: tally.Tally, *, staged: int, finished: bool = True, dry_run: bool = False
) -> Imported:
    removed = [Removed(id=number, fact=fact) for number, fact in done.removed]
    return Imported(
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
