"""The latest scans, kept in memory; the audit trail on disk is the hub's."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from annabelle.servers.guardian.results import LoggedScan

KEPT: Final = 1_000


class RecentScans:
    """A bounded list of what was scanned, without the content."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._scans: OrderedDict[str, LoggedScan] = OrderedDict()

    def add(self, scan: LoggedScan) -> None:
        self._scans[scan.scan_id] = scan
        if len(self._scans) > self._kept:
            self._scans.popitem(last=False)

    def find(self, scan_id: str | None, threats_only: bool) -> list[LoggedScan]:
        """Those that fit, the newest first."""
        if scan_id is not None:
            found = self._scans.get(scan_id)
            scans = [] if found is None else [found]
        else:
            scans = list(reversed(self._scans.values()))
        return [scan for scan in scans if scan.threats or not threats_only]
