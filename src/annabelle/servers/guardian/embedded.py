"""The scanner that comes with Annabelle: no key, no network."""

from __future__ import annotations

from typing import Final

from annabelle.servers.guardian.assessment import Assessment, Finding
from annabelle.servers.guardian.document import Document
from annabelle.servers.guardian.patterns import PATTERNS

MOST_FINDINGS: Final = 10


class EmbeddedScanner:
    """Judges a document by what it says."""

    name = "embedded"

    def assess(self, document: Document, context: str) -> Assessment:
        low = document.text.lower()
        findings = [
            Finding(pattern.kind, pattern.weight, found.start(), found.group())
            for pattern in PATTERNS
            if any(word in low for word in pattern.words) and (found := pattern.expression.search(document.text))
        ]
        findings.sort(key=lambda finding: -finding.score)
        return Assessment(max((finding.score for finding in findings), default=0.0), tuple(findings[:MOST_FINDINGS]))
