"""Keeps secrets out of memory: what looks like one is refused or masked, and only its kind is ever named (MEM-05)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from annabelle.core.errors import NotAllowed
from annabelle.core.redact import MASK
from annabelle.servers.kit import deferred_module
from annabelle.servers.memory.folding import fold

if TYPE_CHECKING:
    from annabelle.servers.memory import numbers, said, shaped
else:
    # Their patterns take some time to compile, which a server that nobody asks need not spend.
    numbers = deferred_module("annabelle.servers.memory.numbers")
    said = deferred_module("annabelle.servers.memory.said")
    shaped = deferred_module("annabelle.servers.memory.shaped")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Secret:
    """Where a text holds a secret, and of which kind."""

    start: int
    end: int
    kind: str


def secrets_in(text: str) -> list[Secret]:
    """Every secret in the text, in order. Full-width digits, zero-width characters and the like hide none."""
    # What was masked before is no secret any more; commas of the same length end a value and keep the places.
    folded = fold(text.replace(MASK, "," * len(MASK)))
    found = [*shaped.shaped_in(folded.text), *numbers.numbers_in(folded.text), *said.told_in(folded.text)]
    return sorted(Secret(*folded.original(start, end), kind) for kind, start, end in found)


def secret_kind(text: str) -> str | None:
    """The kind of the first secret in the text, or None. Never the value: it is in nobody's log."""
    found = secrets_in(text)
    return found[0].kind if found else None


def refuse_secret(text: str, *, what: str = "fact", field: str | None = None) -> None:
    """Raise NotAllowed for a text with a secret in it. The sentence and the log name the kind only."""
    kind = secret_kind(text)
    if kind is None:
        return
    _log.warning("refused a %s: it looks like it holds a %s", what, kind)
    raise NotAllowed(
        f"This {what} looks like it holds a {kind}, and memory keeps no secrets. Nothing was stored.",
        hint="Say it without the secret itself, for example where the secret is kept.",
        field=field,
    )


def without_secrets(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret masked, and the kinds that were found."""
    found = secrets_in(text)
    kept: list[str] = []
    position = 0
    for secret in found:
        if secret.end > position:
            kept.append(text[position : max(position, secret.start)])
            if secret.start >= position:
                kept.append(MASK)
            position = secret.end
    return "".join(kept) + text[position:], tuple(dict.fromkeys(secret.kind for secret in found))
