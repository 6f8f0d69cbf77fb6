"""The scanner that comes with Annabelle: no key, no network. Its weights are loaded by the first scan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from annabelle.servers.guardian.assessment import Assessment, Finding
from annabelle.servers.guardian.cues import CUES, Cue, read_cues, telling_places
from annabelle.servers.guardian.document import Document
from annabelle.servers.guardian.windows import Window, windows_of
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.guardian import classifier
    from annabelle.servers.guardian.classifier import Head, Model
else:
    # numpy and the weights take a tenth of a second: not while the server starts, which all others wait for.
    classifier = deferred_module("annabelle.servers.guardian.classifier")

MOST_FINDINGS: Final = 10
MESSAGE_CONTEXTS: Final = ("message", "user message", "user input", "tool input")
"""Where people give orders rightfully; everywhere else an order is suspicious."""
_LOOKED_INTO: Final = 8
"""Windows whose phrases are read, those with the highest sums and hints: half of a short text's, a 40th of a long
one's."""
_HINT: Final = 0.7
_MOST_HINTS: Final = 4
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class _Part:
    """A text of the document, where it begins among all parts, and where in the document it belongs."""

    kind: str
    position: int
    begin: int
    text: str


class EmbeddedScanner:
    """Judges a document by what it says."""

    name = "embedded"

    def assess(self, document: Document, context: str) -> Assessment:
        """How much the document looks like an attack. CPU only; a long one takes a second and belongs in a thread."""
        parts = _parts(document)
        spans = [(span, part) for part in parts for span in windows_of(part.begin, len(part.text))]
        if not spans:
            return Assessment(0.0, unscanned=document.unscanned)
        whole = _BETWEEN.join(part.text for part in parts)
        said = context.strip().lower().replace("_", " ") in MESSAGE_CONTEXTS
        head = self._model.message if said else self._model.output
        features = classifier.read_features(whole, self._model.kinds)
        windows = [span for span, _ in spans]
        sums = classifier.window_sums(features, head, windows)
        hints = classifier.counts_within(telling_places(whole), windows)
        many = max(min(_LOOKED_INTO, len(spans) // 2 + 1), len(spans) // 40)
        highest = (sums + _HINT * hints.clip(max=_MOST_HINTS)).argsort()[::-1][:many]
        findings: list[Finding] = []
        for place in map(int, highest):
            span, part = spans[place]
            cues = read_cues(whole[span[0] : span[1]])
            score = head.score(float(sums[place]) + _cue_sum(head, cues, part.kind), len(spans))
            findings += _findings(score, span, part, cues)
        findings.sort(key=lambda finding: -finding.score)
        return Assessment(findings[0].score, _apart(findings), document.unscanned)

    @cached_property
    def _model(self) -> Model:
        return classifier.load_model()


def _parts(document: Document) -> list[_Part]:
    parts: list[_Part] = []
    begin = 0
    texts = [("", 0, document.text), *((aside.kind, aside.position, aside.text) for aside in document.asides)]
    for kind, position, text in texts:
        if text.strip():
            parts.append(_Part(kind, position, begin, text))
            begin += len(text) + len(_BETWEEN)
    return parts


def _cue_sum(head: Head, cues: list[Cue], kind: str) -> float:
    total = sum(float(head.cues[cue.family]) for cue in cues)
    return total + (float(head.cues[len(CUES) + (kind == "decoded")]) if kind else 0.0)


def _findings(score: float, span: Window, part: _Part, cues: list[Cue]) -> list[Finding]:
    """One for each phrase in a window; a window that shows no known phrase is told by its words."""
    # Within an aside positions say nothing about the document: it stands at one place of it.
    place = part.position + (span[0] - part.begin if not part.kind else 0)
    if not cues:
        text = part.text[span[0] - part.begin : span[1] - part.begin]
        return [Finding("prompt_injection", score, place, text)]
    return [Finding(cue.kind, score, place + (0 if part.kind else cue.start), cue.words) for cue in cues]


def _apart(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each phrase once, though it stands in several windows; the gravest first."""
    kept: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.kind, finding.position, finding.reading), finding)
    return tuple(kept.values())[:MOST_FINDINGS]
