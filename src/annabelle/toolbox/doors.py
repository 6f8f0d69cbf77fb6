"""Who is asked on a call's way to its server; the hub says who that is."""

from __future__ import annotations

from dataclasses import dataclass, field

from annabelle.core.ports import ApprovalDesk, Audit, Judge
from annabelle.core.redact import Redactor
from annabelle.toolbox.guard.rules import Guarding


@dataclass(frozen=True, slots=True)
class Doors:
    """Without a judge every allowed call of an agent is made, without guarding nothing is scanned: that is for tests
    of the parts below alone. `redact` knows the secrets of this home, and learns those of external servers."""

    judge: Judge | None = None
    desk: ApprovalDesk | None = None
    audit: Audit | None = None
    guarding: Guarding | None = None
    redact: Redactor = field(default_factory=Redactor)
