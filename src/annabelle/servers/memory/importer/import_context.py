"""State of one import: owner, file, trust and counts. Cheap to import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.memory.arguments import lowest_trust
from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from sqlalchemy import Connection

SHOWN = 20


@dataclass(slots=True)
class ImportTally:
    """Outcomes of rows by kind, and the changes that the search index needs."""

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    retired: list[int] = field(default_factory=list[int])
    removed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Facts whose lines were deleted from the page."""
    notes: list[str] = field(default_factory=list[str])

    def count(self, kind: str, outcome: str, by: int = 1) -> None:
        self.counts.setdefault(kind, Counter())[outcome] += by


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Whose memory a file is imported into, and how far the file is trusted."""

    owner: Owner
    name: str
    trust: Trust
    origin: JsonObject
    prune: bool

    def limit_trust(self, claimed: Trust) -> Trust:
        """Trust of a row: what it claims, but never more than the file's."""
        return lowest_trust(claimed, self.trust)

    def file_origin(self) -> JsonObject:
        """Origin of what a person wrote into a file."""
        return {**self.origin, "kind": "file", "file": self.name}

    def merge_origin(self, claimed: JsonObject) -> JsonObject:
        """Add this import to a row's origin. Ignores the origin claimed by an untrusted file."""
        note = {"file": self.name, "at": now().isoformat()}
        return {**(self.file_origin() if self.trust == "untrusted" else claimed), "import": note}


class RowImporter:
    """Base of what imports rows of one kind. All importers of an import share its transaction and its tally."""

    def __init__(self, connection: Connection, source: ImportSource, tally: ImportTally) -> None:
        self._connection, self._owner, self._source, self._tally = connection, source.owner, source, tally
