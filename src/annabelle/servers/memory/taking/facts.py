"""Takes facts in: from a document with their history, from a page as corrections and new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.facts_page import fact_check
from annabelle.servers.memory.files.rows import FactLine, FactRow, Listing
from annabelle.servers.memory.keeping import Kept, correct_in, keep_in
from annabelle.servers.memory.taking.tally import SHOWN, Taking
from annabelle.store.memory import adopting, exports, facts
from annabelle.store.memory.facts import Fact, NewFact

_AT_ONCE = 200

T = TypeVar("T")


class TakeFacts:
    """The facts of one import."""

    def __init__(self, taking: Taking, turns: dict[int, int]) -> None:
        """`turns` says which number a conversation of the file has here."""
        self._taking, self._turns = taking, turns
        self._numbers: dict[int, int] = {}
        self._successors: dict[int, int] = {}
        self._new: set[int] = set()
        self._waiting: list[JsonObject] = []
        self._replaced: list[int | None] = []
        self._stored: dict[int, int] = {}
        facts.lock(taking.connection, taking.owner)

    def rows(self, rows: Iterable[FactRow]) -> None:
        """Facts of a document. One that is here already stays as it is."""
        for part in _parts(rows):
            known = adopting.known_facts(self._taking.connection, self._taking.owner, [row.fact for row in part])
            places: list[tuple[int, int]] = []
            for row in part:
                here = known.setdefault(facts.fact_hash(row.fact), [])
                same = next((one for one in here if one.created_at == row.created_at), None)
                if same is None and row.retired_at is None:
                    same = next((one for one in here if one.current), None)
                if same is None:
                    same = self._add(row)
                    here.append(same)
                    self._taking.tally.count("facts", "added" if same.current else "added as history")
                else:
                    self._taking.tally.count("facts", "known")
                if row.id is not None:
                    places.append((row.id, same.id))
            self._store()
            self._numbers |= {number: self._stored.get(place, place) for number, place in places}
            self._stored.clear()
        links = {new: self._numbers[old] for new, old in self._successors.items() if old in self._numbers}
        adopting.link_facts(self._taking.connection, self._taking.owner, links)

    def _add(self, row: FactRow) -> adopting.KnownFact:
        taking = self._taking
        created = row.created_at or row.valid_from or now()
        about = row.about
        origin = taking.kept_origin(self._renumbered(cast("JsonObject", row.origin)))
        source = row.source or f"import of {taking.name}"
        current = row.retired_at is None
        if current and about is not None and self._others(row, about):
            new = NewFact(row.fact, row.category, source, row.confidence, taking.label(row.trust), origin)
            kept = self._note(keep_in(taking.connection, taking.owner, new))
            self._new.add(kept.fact.id)
            return adopting.KnownFact(kept.fact.id, created, current)
        self._waiting.append(
            {
                "fact": row.fact,
                "category": row.category,
                "source": source,
                "confidence": row.confidence,
                "trust": taking.label(row.trust),
                "origin": origin,
                "about": about,
                "valid_from": row.valid_from or created,
                "valid_until": row.valid_until,
                "created_at": created,
                "updated_at": row.updated_at or created,
                "retired_at": row.retired_at,
                "last_accessed_at": row.last_accessed_at,
                "retired_because": (row.retired_because or "deleted") if row.retired_at else None,
            }
        )
        self._replaced.append(row.superseded_by if not current else None)
        # Rows are stored many at a time; until then a number below 0 stands for each.
        return adopting.KnownFact(-len(self._stored) - len(self._waiting), created, current)

    def _store(self) -> None:
        numbers = adopting.add_facts(self._taking.connection, self._taking.owner, self._waiting)
        before = len(self._stored)
        for place, (number, successor) in enumerate(zip(numbers, self._replaced, strict=True), before + 1):
            self._stored[-place] = number
            if successor is not None:
                self._successors[number] = successor
        self._new.update(numbers)
        self._waiting, self._replaced = [], []

    def _others(self, row: FactRow, about: str) -> bool:
        """Whether facts of the same relation were here before. Those of one export did not contradict each other."""
        self._store()
        known = facts.current_about(self._taking.connection, self._taking.owner, about)
        return any(row.id is None or fact.id not in self._new for fact in known)

    def _renumbered(self, origin: JsonObject) -> JsonObject:
        said_in = origin.get("conversation_id")
        if not isinstance(said_in, int):
            return origin
        kept = {key: value for key, value in origin.items() if key != "conversation_id"}
        return {**kept, "conversation_id": self._turns[said_in]} if said_in in self._turns else kept

    def lines(self, lines: Iterable[FactLine]) -> None:
        """Lines of a page: as they were exported, corrected, or new."""
        for part in _parts(lines):
            ids = [line.id for line in part if line.id is not None]
            known = facts.get(self._taking.connection, self._taking.owner, ids)
            for line in part:
                old = known.get(line.id) if line.id else None
                if old is not None and fact_check(old.fact, old.category) != line.check:
                    old = None  # a page of another memory, in which this number is another fact
                if old is not None and line.check == fact_check(line.fact, line.category):
                    self._taking.tally.count("facts", "unchanged")
                else:
                    self._changed(line, old)

    def _changed(self, line: FactLine, old: Fact | None) -> None:
        taking, tally = self._taking, self._taking.tally
        # Somebody who changed a line said it themselves; one that reads as it was exported is trusted as it was then.
        as_exported = line.check == fact_check(line.fact, line.category)
        trust = taking.label(line.trust) if as_exported else taking.trust
        new = NewFact(line.fact, line.category, f"import of {taking.name}", trust=trust, origin=taking.from_file())
        # A line before this one may have taken its place.
        old = facts.get(taking.connection, taking.owner, [old.id])[old.id] if old else None
        if old is not None and old.current and (taking.trust == "trusted" or old.trust == "untrusted"):
            self._note(correct_in(taking.connection, taking.owner, old.id, new))
            tally.count("facts", "corrected")
            return
        kept = self._note(keep_in(taking.connection, taking.owner, new))
        tally.count("facts", "added" if kept.status == "stored" else "known")

    def listing(self, row: Listing) -> None:
        """What the page held when it was exported: a line that is gone from it is a fact to retire, if told so."""
        taking, tally = self._taking, self._taking.tally
        then = exports.state(taking.connection, taking.owner, row.through, row.at)
        if then.digest != row.digest:
            tally.notes.append("Lines that are gone were not looked for: this page was not exported from this memory.")
            return
        on_page = set(row.ids)
        gone = [number for number in then.ids if number not in on_page]
        found = facts.get(taking.connection, taking.owner, gone)
        removed = [fact for fact in found.values() if fact.current]
        tally.removed = [(fact.id, fact.fact) for fact in removed[:SHOWN]]
        if not taking.prune:
            tally.count("facts", "removed from the page", len(removed))
            return
        ids = [fact.id for fact in removed]
        tally.retired += facts.retire(taking.connection, taking.owner, ids, "deleted", origin=taking.from_file())
        tally.count("facts", "retired", len(ids))

    def _note(self, kept: Kept) -> Kept:
        self._taking.tally.retired += [fact.id for fact in kept.superseded]
        return kept


def _parts(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while part := list(islice(waiting, _AT_ONCE)):
        yield part
