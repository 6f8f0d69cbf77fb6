"""Judges a document: the embedded scanner first, then a guard model if configured and its answer can matter."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from annabelle.core.errors import Unavailable
from annabelle.core.trust import ThreatType
from annabelle.servers.guardian.attack_cues import CUES, Cue, find_cues, find_hints
from annabelle.servers.guardian.config import GuardianConfig, ModelConfig
from annabelle.servers.guardian.document import ScanDocument, Window, split_into_windows
from annabelle.servers.guardian.guard_model import MAX_SHOWN_CHARS
from annabelle.servers.kit import deferred_module, in_thread

if TYPE_CHECKING:
    from annabelle.core.ports import Ledger
    from annabelle.servers.guardian.guard_model import GuardAnswer
    from annabelle.servers.guardian.model_judge import ModelJudge

if TYPE_CHECKING:
    from annabelle.servers.guardian import classifier
    from annabelle.servers.guardian.classifier import ClassifierHead, ClassifierModel
else:
    classifier = deferred_module("annabelle.servers.guardian.classifier")


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspicious piece: its kind, score, position in the document, and text."""

    kind: ThreatType
    score: float
    position: int
    reading: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """How much a text looks like an attack (0 to 1), and why."""

    score: float
    findings: tuple[Finding, ...] = ()
    unscanned: str | None = None
    final: bool = True
    """False if the guard model did not answer: ask again next time."""


MAX_FINDINGS: Final = 10
MESSAGE_CONTEXTS: Final = ("message", "user message", "user input", "tool input")
"""Contexts in which people may give orders. Everywhere else an order is suspicious."""
_MIN_WINDOWS_READ: Final = 8
"""Minimum number of windows searched for phrases, those with the highest sums and hints."""
_HINT: Final = 0.7
_MAX_HINTS: Final = 4
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class _ScanPart:
    """A text with its start among all parts, and its position in the document."""

    kind: str
    position: int
    begin: int
    text: str


class EmbeddedScanner:
    name = "embedded"

    def assess(self, document: ScanDocument, context: str) -> Assessment:
        """Assess a document. CPU-bound: run long ones in a thread."""
        parts = _split_parts(document)
        spans = [(span, part) for part in parts for span in split_into_windows(part.begin, len(part.text))]
        if not spans:
            return Assessment(0.0, unscanned=document.unscanned)
        whole = _BETWEEN.join(part.text for part in parts)
        said = context.strip().lower().replace("_", " ") in MESSAGE_CONTEXTS
        head = self._model.message if said else self._model.output
        features = classifier.read_features(whole, self._model.kinds)
        windows = [span for span, _ in spans]
        sums = classifier.window_sums(features, head, windows)
        hints = classifier.counts_within(find_hints(whole), windows)
        many = max(min(_MIN_WINDOWS_READ, len(spans) // 2 + 1), len(spans) // 40)
        highest = (sums + _HINT * hints.clip(max=_MAX_HINTS)).argsort()[::-1][:many]
        findings: list[Finding] = []
        for place in map(int, highest):
            span, part = spans[place]
            cues = find_cues(whole[span[0] : span[1]])
            score = head.score(float(sums[place]) + _cue_sum(head, cues, part.kind), len(spans))
            findings += _findings(score, span, part, cues)
        findings.sort(key=lambda finding: -finding.score)
        return Assessment(findings[0].score, _deduplicate(findings), document.unscanned)

    @cached_property
    def _model(self) -> ClassifierModel:
        return classifier.load_model()


def _split_parts(document: ScanDocument) -> list[_ScanPart]:
    parts: list[_ScanPart] = []
    begin = 0
    texts = [("", 0, document.text), *((aside.kind, aside.position, aside.text) for aside in document.asides)]
    for kind, position, text in texts:
        if text.strip():
            parts.append(_ScanPart(kind, position, begin, text))
            begin += len(text) + len(_BETWEEN)
    return parts


def _cue_sum(head: ClassifierHead, cues: list[Cue], kind: str) -> float:
    total = sum(float(head.cues[cue.family]) for cue in cues)
    return total + (float(head.cues[len(CUES) + (kind == "decoded")]) if kind else 0.0)


def _findings(score: float, span: Window, part: _ScanPart, cues: list[Cue]) -> list[Finding]:
    """One finding per phrase in a window. Without a known phrase, the window's text is the finding."""
    # Hidden text has a single position in the document.
    place = part.position + (span[0] - part.begin if not part.kind else 0)
    if not cues:
        text = part.text[span[0] - part.begin : span[1] - part.begin]
        return [Finding("prompt_injection", score, place, text)]
    return [Finding(cue.kind, score, place + (0 if part.kind else cue.start), cue.words) for cue in cues]


def _deduplicate(findings: list[Finding]) -> tuple[Finding, ...]:
    """Keep each phrase once, the most severe first. Windows overlap."""
    kept: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.kind, finding.position, finding.reading), finding)
    return tuple(kept.values())[:MAX_FINDINGS]


_log = logging.getLogger(__name__)
T = TypeVar("T")

LOW_SCORE: Final = 0.2
"""Scores from here on are in doubt."""
_SURE: Final = 0.99
LONG: Final = 30_000
"""Length from which a scan runs in a thread. Shorter ones take less time than a thread switch."""


async def run_by_length(length: int, work: Callable[[], T]) -> T:
    """Run work on a short text at once, on a long one in a thread, to keep the event loop free."""
    return work() if length < LONG else await in_thread(lambda stop: work())


class ContentJudges:
    def __init__(self, config: GuardianConfig, scanner: EmbeddedScanner) -> None:
        self._config, self._scanner = config, scanner

    @property
    def name(self) -> str:
        model = self._config.model
        if model is None:
            return self._scanner.name
        return f"{self._scanner.name}+{model.kind}" if model.only_in_doubt else model.kind

    async def judge(self, document: ScanDocument, context: str) -> Assessment:
        first = await run_by_length(len(document.text), lambda: self._scanner.assess(document, context))
        model = self._config.model
        if model is None or not self._worth_asking(model, first):
            return first
        try:
            answer = await self._asked.ask(_excerpt_for_model(document, first), context)
        except Unavailable as error:
            if not model.only_in_doubt:
                raise
            _log.warning("%s The embedded verdict holds.", error.message)
            return replace(first, final=False)
        return self._combine(first, answer)

    async def close(self) -> None:
        if "_asked" in self.__dict__:
            await self._asked.close()

    def _worth_asking(self, model: ModelConfig, first: Assessment) -> bool:
        if first.score >= self._config.block_score:
            return False  # no answer could lower it
        return not model.only_in_doubt or first.score >= LOW_SCORE

    def _combine(self, first: Assessment, answer: GuardAnswer | None) -> Assessment:
        if answer is None:
            return first
        if answer.violation:
            reading = first.findings[0].reading if first.findings else ""
            position = first.findings[0].position if first.findings else 0
            found = Finding(answer.kind, _SURE, position, reading)
            return replace(first, score=_SURE, findings=(found, *first.findings))
        if first.score >= LOW_SCORE:
            return replace(first, score=LOW_SCORE / 2, findings=())
        return first

    @cached_property
    def _asked(self) -> ModelJudge:
        assert self._config.model is not None
        module = importlib.import_module("annabelle.servers.guardian.model_judge")  # imports the network client
        return module.ModelJudge(self._config.model, _make_ledger())


def _make_ledger() -> Ledger | None:
    """The hub's ledger, if the hub has started this process."""
    url, token = os.environ.get("ANNABELLE_LEDGER_URL"), os.environ.get("ANNABELLE_LEDGER_TOKEN")
    if not url or not token:
        return None
    return importlib.import_module("annabelle.embeddings.http_ledger").HttpLedger(url, token)


def _excerpt_for_model(document: ScanDocument, first: Assessment) -> str:
    """A short text whole; of a long one, the surroundings of the findings and the beginning."""
    asides = "\n".join(aside.text for aside in document.asides)
    if len(document.text) + len(asides) <= MAX_SHOWN_CHARS:
        return f"{document.text}\n{asides}".strip()
    around = [document.text[max(0, found.position - 400) : found.position + 600] for found in first.findings[:4]]
    return "\n…\n".join([*around, asides[:1_500], document.text])[:MAX_SHOWN_CHARS]
