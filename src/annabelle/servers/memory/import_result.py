"""The result of an import."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.trust import Trust
from annabelle.servers.kit import Result


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
