"""Imports facts: with their history and conversations from a document, as corrections and additions from a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from sqlalchemy import Connection

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.fact_writer import StoreOutcome, correct_in_transaction, store_in_transaction
from annabelle.servers.memory.files.markdown import checksum
from annabelle.servers.memory.files.rows import FactImportRow, FactLine, FactListingRow, TurnImportRow
from annabelle.servers.memory.importer.import_context import SHOWN, ImportSource, ImportTally, RowImporter
from annabelle.store.memory import facts, transfer
from annabelle.store.memory.facts import Fact, NewFact

_AT_ONCE = 200

T = TypeVar("T")


class FactImporter(RowImporter):
    def __init__(self, connection: Connection, source: ImportSource, tally: ImportTally) -> None:
        super().__init__(connection, source, tally)
        self._turns: dict[int, int] = {}
        """Ids of turns in this memory by those of the file."""
        self._numbers: dict[int, int] = {}
        """The same for facts."""
        self._successors: dict[int, int] = {}
        self._new: set[int] = set()
        facts.lock_facts(connection, source.owner)

    def import_turn(self, row: TurnImportRow) -> None:
        values = row.model_dump(exclude={"kind", "id"}, exclude_none=True)
        values |= {"trust": self._source.limit_trust(row.trust)}
        known = transfer.find_existing_turn(self._connection, self._owner, values)
        number = transfer.import_turn(self._connection, self._owner, values) if known is None else known
        if row.id is not None:
            self._turns[row.id] = number
        self._tally.count("conversations", "added" if known is None else "known")

    def import_rows(self, rows: Iterable[FactImportRow]) -> None:
        """Import facts of a document. Existing ones stay unchanged."""
        for part in _batches(rows):
            known = transfer.find_existing_facts(self._connection, self._owner, [row.fact for row in part])
            for row in part:
                here = known.setdefault(facts.fact_hash(row.fact), [])
                same = next((one for one in here if one.created_at == row.created_at), None)
                if same is None and row.retired_at is None:
                    same = next((one for one in here if one.current), None)
                if same is None:
                    same = self._add(row)
                    here.append(same)
                    self._tally.count("facts", "added" if same.current else "added as history")
                else:
                    self._tally.count("facts", "known")
                if row.id is not None:
                    self._numbers[row.id] = same.id
        links = {new: self._numbers[old] for new, old in self._successors.items() if old in self._numbers}
        transfer.link_facts(self._connection, self._owner, links)

    def _add(self, row: FactImportRow) -> transfer.ExistingFact:
        created = row.created_at or row.valid_from or now()
        current = row.retired_at is None
        said_by, trust = row.source or f"import of {self._source.name}", self._source.limit_trust(row.trust)
        origin = self._source.merge_origin(self._renumbered(cast("JsonObject", row.origin)))
        if current and row.about is not None and self._has_others(row, row.about):
            new = NewFact(row.fact, row.category, said_by, row.confidence, trust, origin)
            number = self._note_superseded(store_in_transaction(self._connection, self._owner, new)).fact.id
        else:
            values = {
                **row.model_dump(exclude={"kind", "id", "superseded_by"}),
                "source": said_by,
                "trust": trust,
                "origin": origin,
                "valid_from": row.valid_from or created,
                "created_at": created,
                "updated_at": row.updated_at or created,
                "retired_because": None if current else row.retired_because or "deleted",
            }
            number = transfer.import_fact(self._connection, self._owner, values)
            if not current and row.superseded_by is not None:
                self._successors[number] = row.superseded_by
        self._new.add(number)
        return transfer.ExistingFact(number, created, current)

    def _has_others(self, row: FactImportRow, about: str) -> bool:
        """Whether older facts have the same relation. Facts of one export do not contradict each other."""
        known = facts.list_current_about(self._connection, self._owner, about)
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
            known = facts.get_facts(self._connection, self._owner, ids)
            for line in part:
                old = known.get(line.id) if line.id else None
                if old is not None and checksum(old.fact, old.category) != line.check:
                    old = None  # exported from another memory, where this id is another fact
                if old is not None and line.unedited:
                    self._tally.count("facts", "unchanged")
                else:
                    self._import_changed_line(line, old)

    def _import_changed_line(self, line: FactLine, old: Fact | None) -> None:
        source = self._source
        # A changed line is the importer's own statement. An unchanged one keeps the trust it was exported with.
        trust = source.limit_trust(line.trust) if line.unedited else source.trust
        new = NewFact(line.fact, line.category, f"import of {source.name}", trust=trust, origin=source.file_origin())
        # An earlier line may have replaced it.
        old = facts.get_facts(self._connection, self._owner, [old.id])[old.id] if old else None
        if old is not None and old.current and (source.trust == "trusted" or old.trust == "untrusted"):
            self._note_superseded(correct_in_transaction(self._connection, self._owner, old.id, new))
            self._tally.count("facts", "corrected")
            return
        kept = self._note_superseded(store_in_transaction(self._connection, self._owner, new))
        self._tally.count("facts", "added" if kept.status == "stored" else "known")

    def import_listing(self, row: FactListingRow) -> None:
        """Find lines deleted from the page, and retire their facts if `prune` is set."""
        then = transfer.read_facts_state(self._connection, self._owner, row.through, row.at)
        if then.digest != row.digest:
            self._tally.notes.append(
                "Lines that are gone were not looked for: this page was not exported from this memory."
            )
            return
        on_page = set(row.ids)
        gone = [number for number in then.ids if number not in on_page]
        removed = [fact for fact in facts.get_facts(self._connection, self._owner, gone).values() if fact.current]
        self._tally.removed = [(fact.id, fact.fact) for fact in removed[:SHOWN]]
        if not self._source.prune:
            self._tally.count("facts", "removed from the page", len(removed))
            return
        ids, origin = [fact.id for fact in removed], self._source.file_origin()
        self._tally.retired += facts.retire_facts(self._connection, self._owner, ids, "deleted", origin=origin)
        self._tally.count("facts", "retired", len(ids))

    def _note_superseded(self, kept: StoreOutcome) -> StoreOutcome:
        self._tally.retired += [fact.id for fact in kept.superseded]
        return kept


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while part := list(islice(waiting, _AT_ONCE)):
        yield part
