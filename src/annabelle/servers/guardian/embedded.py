"""The scanner that comes with Annabelle: no key, no network."""

from __future__ import annotations

from typing import Final

from annabelle.servers.guardian.assessment import Assessment, Finding
from annabelle.servers.guardian.cues import read_cues
from annabelle.servers.guardian.document import Document

MOST_FINDINGS: Final = 10
_STRONG: Final = ("prompt_injection", "jailbreak", "data_exfiltration")


class EmbeddedScanner:
    """Judges a document by what it says."""

    name = "embedded"

    def assess(self, document: Document, context: str) -> Assessment:
        cues = read_cues(document.text)
        names = {cue.family for cue in cues}
        score = 0.95 if 0 in names else min(0.6, 0.15 * len(names))
        findings = [Finding(cue.kind, score, cue.start, cue.words) for cue in cues]
        return Assessment(score, tuple(findings[:MOST_FINDINGS]), document.unscanned)
