"""Imports facts: with their history from a document, as corrections and additions from a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.fact_writer import StoreOutcome, correct_in_transaction, store_in_transaction
from annabelle.servers.memory.files.pages import fact_checksum
from annabelle.servers.memory.files.rows import FactImportRow, FactLine, FactListingRow
from annabelle.servers.memory.importer.import_context import SHOWN, ImportContext
from annabelle.store.memory import facts, transfer
from annabelle.store.memory.facts import Fact, NewFact

_AT_ONCE = 200

T = TypeVar("T")


class FactImporter:
    def __init__(self, context: ImportContext, turns: dict[int, int]) -> None:
        """`turns` maps conversation ids of the file to ids in this memory."""
        self._context, self._turns = context, turns
        self._numbers: dict[int, int] = {}
        self._successors: dict[int, int] = {}
        self._new: set[int] = set()
        self._waiting: list[JsonObject] = []
        self._replaced: list[int | None] = []
        self._stored: dict[int, int] = {}
        facts.lock_facts(context.connection, context.owner)

    def import_rows(self, rows: Iterable[FactImportRow]) -> None:
        """Import facts of a document. Existing ones stay unchanged."""
        for part in _batches(rows):
            known = transfer.find_existing_facts(
                self._context.connection, self._context.owner, [row.fact for row in part]
            )
            places: list[tuple[int, int]] = []
            for row in part:
                here = known.setdefault(facts.fact_hash(row.fact), [])
                same = next((one for one in here if one.created_at == row.created_at), None)
                if same is None and row.retired_at is None:
                    same = next((one for one in here if one.current), None)
                if same is None:
                    same = self._add(row)
                    here.append(same)
                    self._context.tally.count("facts", "added" if same.current else "added as history")
                else:
                    self._context.tally.count("facts", "known")
                if row.id is not None:
                    places.append((row.id, same.id))
            self._flush()
            self._numbers |= {number: self._stored.get(place, place) for number, place in places}
            self._stored.clear()
        links = {new: self._numbers[old] for new, old in self._successors.items() if old in self._numbers}
        transfer.link_facts(self._context.connection, self._context.owner, links)

    def _add(self, row: FactImportRow) -> transfer.ExistingFact:
        context = self._context
        created = row.created_at or row.valid_from or now()
        about = row.about
        origin = context.merge_origin(self._renumbered(cast("JsonObject", row.origin)))
        source = row.source or f"import of {context.name}"
        current = row.retired_at is None
        if current and about is not None and self._has_others(row, about):
            new = NewFact(row.fact, row.category, source, row.confidence, context.limit_trust(row.trust), origin)
            kept = self._note_superseded(store_in_transaction(context.connection, context.owner, new))
            self._new.add(kept.fact.id)
            return transfer.ExistingFact(kept.fact.id, created, current)
        self._waiting.append(
            {
                "fact": row.fact,
                "category": row.category,
                "source": source,
                "confidence": row.confidence,
                "trust": context.limit_trust(row.trust),
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
        # Rows are stored in batches. Until then each has a negative id.
        return transfer.ExistingFact(-len(self._stored) - len(self._waiting), created, current)

    def _flush(self) -> None:
        numbers = transfer.import_facts(self._context.connection, self._context.owner, self._waiting)
        before = len(self._stored)
        for place, (number, successor) in enumerate(zip(numbers, self._replaced, strict=True), before + 1):
            self._stored[-place] = number
            if successor is not None:
                self._successors[number] = successor
        self._new.update(numbers)
        self._waiting, self._replaced = [], []

    def _has_others(self, row: FactImportRow, about: str) -> bool:
        """Whether older facts have the same relation. Facts of one export do not contradict each other."""
        self._flush()
        known = facts.list_current_about(self._context.connection, self._context.owner, about)
        return any(row.id is None or fact.id not in self._new for fact in known)

    def _renumbered(self, origin: JsonObject) -> JsonObject:
        said_in = origin.get("conversation_id")
        if not isinstance(said_in, int):
            return origin
        kept = {key: value for key, value in origin.items() if key != "conversation_id"}
        return {**kept, "conversation_id": self._turns[said_in]} if said_in in self._turns else kept

    def import_lines(self, lines: Iterable[FactLine]) -> None:
        """Import the lines of a page: unchanged, corrected or new."""
        for part in _batches(lines):
            ids = [line.id for line in part if line.id is not None]
            known = facts.get_facts(self._context.connection, self._context.owner, ids)
            for line in part:
                old = known.get(line.id) if line.id else None
                if old is not None and fact_checksum(old.fact, old.category) != line.check:
                    old = None  # exported from another memory, where this id is another fact
                if old is not None and line.check == fact_checksum(line.fact, line.category):
                    self._context.tally.count("facts", "unchanged")
                else:
                    self._import_changed_line(line, old)

    def _import_changed_line(self, line: FactLine, old: Fact | None) -> None:
        context, tally = self._context, self._context.tally
        # A changed line is the importer's own statement. An unchanged one keeps the trust it was exported with.
        as_exported = line.check == fact_checksum(line.fact, line.category)
        trust = context.limit_trust(line.trust) if as_exported else context.trust
        new = NewFact(line.fact, line.category, f"import of {context.name}", trust=trust, origin=context.file_origin())
        # An earlier line may have replaced it.
        old = facts.get_facts(context.connection, context.owner, [old.id])[old.id] if old else None
        if old is not None and old.current and (context.trust == "trusted" or old.trust == "untrusted"):
            self._note_superseded(correct_in_transaction(context.connection, context.owner, old.id, new))
            tally.count("facts", "corrected")
            return
        kept = self._note_superseded(store_in_transaction(context.connection, context.owner, new))
        tally.count("facts", "added" if kept.status == "stored" else "known")

    def import_listing(self, row: FactListingRow) -> None:
        """Find lines deleted from the page, and retire their facts if `prune` is set."""
        context, tally = self._context, self._context.tally
        then = transfer.read_facts_state(context.connection, context.owner, row.through, row.at)
        if then.digest != row.digest:
            tally.notes.append("Lines that are gone were not looked for: this page was not exported from this memory.")
            return
        on_page = set(row.ids)
        gone = [number for number in then.ids if number not in on_page]
        found = facts.get_facts(context.connection, context.owner, gone)
        removed = [fact for fact in found.values() if fact.current]
        tally.removed = [(fact.id, fact.fact) for fact in removed[:SHOWN]]
        if not context.prune:
            tally.count("facts", "removed from the page", len(removed))
            return
        ids = [fact.id for fact in removed]
        tally.retired += facts.retire_facts(
            context.connection, context.owner, ids, "deleted", origin=context.file_origin()
        )
        tally.count("facts", "retired", len(ids))

    def _note_superseded(self, kept: StoreOutcome) -> StoreOutcome:
        self._context.tally.retired += [fact.id for fact in kept.superseded]
        return kept


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while part := list(islice(waiting, _AT_ONCE)):
        yield part
