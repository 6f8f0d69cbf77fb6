"""One server as the rest of the toolbox knows it, wherever it was configured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from annabelle.core.scans import Scan

ServerKind = Literal["builtin", "external", "http"]
ServerRole = Literal["guardian", "channel"]


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """Its names, what it is for, how far it is trusted and how long a call may take."""

    name: str
    label: str
    kind: ServerKind
    timeout_seconds: float
    group: str = ""
    keywords: tuple[str, ...] = ()
    role: ServerRole | None = None
    sensitive: bool = False
    scan: Scan = field(default_factory=Scan)
    provenance: bool = False
    """It is told where the content of a call may come from, and says how far its results may be trusted. Only a
    manifest can ask for it: the word of an external server counts for nothing."""
    takes_secrets: tuple[str, ...] = ()
    """The tools that get the value where a call names the handle of a secret. Again only a manifest can ask for it."""
    vouched: bool = False
    """The owner wrote `trusted` into the entry of an external server: it is believed when it says what an id is."""

    @property
    def tag(self) -> str:
        """What stands before each of its tools' descriptions (RTR-02)."""
        return f"[{self.label} | {self.group}]" if self.group else f"[{self.label}]"
