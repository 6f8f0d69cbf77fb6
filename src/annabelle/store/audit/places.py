"""Where the audit of a home lies: the file that grows, those it was rotated into, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from annabelle.core.home import Home
from annabelle.store.audit.key import has_begun


@dataclass(frozen=True, slots=True)
class AuditPlaces:
    """The paths. A rotated file is named after its first record, so one rename is the whole rotation."""

    active: Path
    head: Path
    key: Path
    forgotten: Path
    """What was forgotten; its lines need the key, also in a home that has no audit yet."""

    @classmethod
    def of(cls, home: Home) -> AuditPlaces:
        return cls(home.audit_file, home.audit_head_file, home.audit_key_file, home.forgotten_file)

    @property
    def torn(self) -> Path:
        """What a crash left of a line that was being written."""
        return self.active.with_name("audit.torn")

    @property
    def never_begun(self) -> bool:
        """Whether there is a key and never was an audit: something was forgotten before there were any.

        A key that an audit was begun with says so, and who can take that away has read the key.
        """
        traces = self.head.exists() or self.torn.exists() or bool(self.files())
        return self.forgotten.exists() and not traces and not has_begun(self.key)

    def rotated(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.active.parent.glob("audit-*.jsonl"))

    def rotated_from(self, first: int) -> Path:
        return self.active.with_name(f"audit-{first:012d}.jsonl")

    def files(self) -> list[Path]:
        """All that hold records, oldest first."""
        return [*self.rotated(), *([self.active] if self.active.exists() else [])]
