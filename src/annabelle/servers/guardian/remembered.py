"""Verdicts on content that was seen lately, so that nobody judges the same text twice."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from annabelle.servers.guardian.results import ScanVerdict

KEPT: Final = 2_000


class RememberedVerdicts:
    """A bounded number of verdicts by what was judged, the least recently used forgotten first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._verdicts: OrderedDict[tuple[str, str], ScanVerdict] = OrderedDict()

    def get(self, fingerprint: str, context: str) -> ScanVerdict | None:
        key = (fingerprint, context)
        if key in self._verdicts:
            self._verdicts.move_to_end(key)
        return self._verdicts.get(key)

    def keep(self, fingerprint: str, context: str, verdict: ScanVerdict) -> None:
        self._verdicts[fingerprint, context] = verdict
        if len(self._verdicts) > self._kept:
            self._verdicts.popitem(last=False)
