"""Families of phrases that attacks are made of. None decides alone: each is a cue for the classifier's sum."""

from __future__ import annotations

from typing import Final

from annabelle.servers.guardian.aims import AIMS
from annabelle.servers.guardian.foreign import FOREIGN
from annabelle.servers.guardian.orders import ORDERS
from annabelle.servers.guardian.pattern import Pattern, pattern
from annabelle.servers.guardian.serving import SERVING

PATTERNS: Final[tuple[Pattern, ...]] = (
    *ORDERS,
    *AIMS,
    *(pattern(name, kind, signs, *expressions) for name, kind, signs, expressions in FOREIGN),
    *SERVING,
)
"""In the order of the trained weights: a family that is added or moved needs a new training."""
