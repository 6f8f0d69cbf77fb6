"""Nothing is forgotten while something runs, and what a failure leaves is finished later."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest

from annabelle.core.errors import Conflict, StorageTrouble, Unavailable
from annabelle.core.home import Home
from annabelle.core.secrets.forget_mask import fold_spelling
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.conversations.turns import ActiveTurns, MaintenanceGate
from annabelle.hub.forgetting.databases import DatabaseSnapshots
from annabelle.hub.forgetting.files import HomeFiles
from annabelle.hub.forgetting.forget_journal import ForgetRequest, PendingForgetFile
from annabelle.hub.forgetting.forget_service import ForgetService, ForgetTargets, RunningWork, report_lines
from annabelle.hub.forgetting.memory_client import MemoryMatches
from annabelle.hub.notices import Notices
from annabelle.store.audit.records import get_or_create_key, keyed_hash
from annabelle.store.database import Database, sqlite_url
from support.timing import seconds

ASKED = ForgetRequest(texts=("Zürich Vault 4711",), user_id="owner", agent_id="annabelle")


class House:
    """The parts around forgetting: real where words are kept, counted where they only have to stand still."""

    def __init__(self, home: Home, database: Database) -> None:
        self.home, self.turns, self.quiet, self.notices = home, ActiveTurns(database), MaintenanceGate(), Notices()
        self.held: list[str] = []
        self.noted: list[tuple[AuditKind, JsonObject]] = []
        self.stopped = 0
        self.memory_trouble: Exception | None = None
        self.asked: list[tuple[str, ...]] = []
        self.door = asyncio.Event()
        self.door.set()
        targets = SimpleNamespace(
            home=home,
            files=HomeFiles(home),
            database=database,
            engines=SimpleNamespace(sweep=self._nothing, suspended=contextlib.nullcontext),
            snapshots=DatabaseSnapshots(None),
            memory=SimpleNamespace(forget=self._forget, find_matches=self._matches),
        )
        work = SimpleNamespace(
            thread_queue=SimpleNamespace(pause=lambda: self.held.append("held"), unpause=self._let_go),
            turns=self.turns,
            maintenance=self.quiet,
            agents=SimpleNamespace(all_stopped=self._all_stopped),
            browser=SimpleNamespace(close_browsers=self._close_browser),
        )
        self.forgetting = ForgetService(
            cast("ForgetTargets", targets),
            cast("RunningWork", work),
            self.notices,
            audit=self,
            still_seconds=0.2,
        )

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        self.noted.append((kind, facts))

    async def _close_browser(self) -> None:
        self.held.append("browser closed")

    async def _nothing(self, _sweep: object) -> int:
        return 0

    async def _forget(self, texts: tuple[str, ...], _user_id: str, _agent_id: str) -> MemoryMatches:
        self.asked.append(texts)
        await self.door.wait()
        if self.memory_trouble is not None:
            raise self.memory_trouble
        return MemoryMatches(counts={"facts": 1})

    async def _matches(self, *_asked: object) -> MemoryMatches:
        return MemoryMatches()

    async def _let_go(self) -> None:
        self.held.append("let go")

    @contextlib.asynccontextmanager
    async def _all_stopped(self) -> AsyncIterator[None]:
        self.stopped += 1
        yield


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    database = await Database.open(sqlite_url(home.database_file))
    yield House(home, database)
    await database.close()


@pytest.mark.req("TRU-09", "TRU-08")
async def test_that_something_was_forgotten_is_noted_by_its_keyed_hash_alone(house: House):
    await house.forgetting.forget(ASKED)
    [(kind, facts)] = house.noted
    assert (kind, facts["user_id"], facts["places"]) == ("forget", "owner", {"facts": 1})
    assert facts["hashes"] == [
        keyed_hash(get_or_create_key(house.home.audit_key_file), fold_spelling(ASKED.texts[0]).encode())
    ]
    assert "Vault" not in str(facts)


def test_the_files_of_the_audit_are_never_masked(home: Home):
    kept = [home.audit_file, home.audit_file.with_name("audit-000000000001.jsonl"), home.audit_head_file]
    other = home.logs / "filer-audit.jsonl"
    for path in (*kept, other):
        path.write_text("Zürich Vault 4711\n")
    assert [found.path for found in HomeFiles(home).files()] == [other]


@pytest.mark.req("TRU-09")
async def test_a_turn_that_does_not_end_in_time_keeps_everything_as_it_is(house: House):
    with house.turns.busy(), pytest.raises(Unavailable, match="nothing was forgotten"):
        await house.forgetting.forget(ASKED)
    assert (house.asked, house.stopped, house.held) == ([], 0, ["held", "let go"])
    assert not house.home.forgetting_file.exists()
    async with house.quiet.working():
        pass  # and work may begin again


async def test_what_is_handed_on_beside_turns_is_waited_for_and_waits_itself(house: House):
    house.door.clear()
    begun = asyncio.Event()

    async def hand_on() -> None:
        async with house.quiet.working():
            begun.set()

    async with house.quiet.working():
        with pytest.raises(Unavailable):
            await house.forgetting.forget(ASKED)
    forgetting = asyncio.create_task(house.forgetting.forget(ASKED))
    async with asyncio.timeout(seconds(10)):
        while not house.asked:  # noqa: ASYNC110  one turn of the loop
            await asyncio.sleep(0.01)
    handing = asyncio.create_task(hand_on())
    with pytest.raises(Conflict):
        await house.forgetting.forget(ASKED)
    assert not begun.is_set()
    house.door.set()
    await asyncio.wait_for(forgetting, seconds(10))
    await asyncio.wait_for(handing, seconds(10))


async def test_what_failed_half_way_is_kept_and_finished_with_the_next(house: House):
    house.memory_trouble = StorageTrouble("The disk is full.")
    with pytest.raises(StorageTrouble):
        await house.forgetting.forget(ASKED)
    assert PendingForgetFile(house.home.forgetting_file).read() == ASKED
    assert [notice.topic for notice in house.notices.all()] == ["forgetting"]
    house.memory_trouble = None

    done = await house.forgetting.forget(ASKED.model_copy(update={"texts": ("another",)}))

    assert house.asked[-1] == (*ASKED.texts, "another")
    assert done.places == report_lines({"facts": 1})
    assert house.notices.all() == []
    assert not house.home.forgetting_file.exists()


async def test_a_start_goes_on_when_the_memory_is_still_away_and_says_so(house: House):
    PendingForgetFile(house.home.forgetting_file).write(ASKED)
    house.memory_trouble = Unavailable("The memory is not running.")
    assert house.forgetting.has_pending
    await house.forgetting.resume()
    assert house.forgetting.has_pending
    (notice,) = house.notices.all()
    assert (notice.level, ASKED.texts[0] in notice.text) == ("error", False)
    house.memory_trouble = None
    await house.forgetting.resume()
    assert not house.forgetting.has_pending


def test_places_have_the_names_people_know():
    found = report_lines({"tool_calls": 2, "facts": 1, "profile_history": 1}, {"logs": 3, "facts": 2, "events": 0})
    assert [(place.name, place.count, place.fate) for place in found] == [
        ("facts", 3, "deleted"),
        ("logs", 3, "masked"),
        ("tool results", 2, "masked"),
        ("profile history", 1, "rewritten"),
    ]
