"""One import: whose memory, which file, how far it is trusted, and what was done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.memory.arguments import lowest_trust
from annabelle.store.memory.owner import Owner

SHOWN = 20


@dataclass(slots=True)
class ImportTally:
    """What became of the rows, by kind; and what search has to be told."""

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    retired: list[int] = field(default_factory=list[int])
    removed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Facts whose lines are gone from the page."""
    notes: list[str] = field(default_factory=list[str])

    def count(self, kind: str, outcome: str, by: int = 1) -> None:
        self.counts.setdefault(kind, Counter())[outcome] += by

    def get(self, kind: str, outcome: str) -> int:
        return self.counts.get(kind, Counter())[outcome]


@dataclass(frozen=True, slots=True)
class ImportContext:
    """One import: into whose memory, from which file, and how far it is to be trusted."""

    connection: Connection
    owner: Owner
    name: str
    trust: Trust
    origin: JsonObject
    prune: bool
    tally: ImportTally

    def limit_trust(self, claimed: Trust) -> Trust:
        """A row is trusted as far as it says, and never more than the file."""
        return lowest_trust(claimed, self.trust)

    def file_origin(self) -> JsonObject:
        """Where something a person wrote into a file comes from."""
        return {**self.origin, "kind": "file", "file": self.name}

    def merge_origin(self, claimed: JsonObject) -> JsonObject:
        """Where a row came from, with this import added. What a file that is not trusted claims is not repeated."""
        note = {"file": self.name, "at": now().isoformat()}
        return {**(self.file_origin() if self.trust == "untrusted" else claimed), "import": note}
