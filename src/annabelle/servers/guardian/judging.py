"""Puts the judges together: the embedded scanner first, a model where it is configured and its word can matter.

A model can be talked round by the very text it judges. So its word raises a risk anywhere, but lowers one only where
the embedded scanner itself was in doubt.
"""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from annabelle.core.errors import Unavailable
from annabelle.servers.guardian.assessment import Assessment, Finding
from annabelle.servers.guardian.config import GuardianConfig, ModelConfig
from annabelle.servers.guardian.document import Document
from annabelle.servers.guardian.embedded import EmbeddedScanner
from annabelle.servers.guardian.questions import LONGEST
from annabelle.servers.kit import StopSign, in_thread

if TYPE_CHECKING:
    from annabelle.core.ports import Ledger
    from annabelle.servers.guardian.answers import Answer
    from annabelle.servers.guardian.model_judge import ModelJudge

_log = logging.getLogger(__name__)

LOW_SCORE: Final = 0.2
"""From here on something is worth a doubt."""
_SURE: Final = 0.99
LONG: Final = 30_000
"""Characters from which on a scan is done in a thread: shorter ones take less than a switch of threads may cost."""


class Judges:
    """Everyone who judges, in order."""

    def __init__(self, config: GuardianConfig, scanner: EmbeddedScanner) -> None:
        self._config, self._scanner = config, scanner

    @property
    def name(self) -> str:
        model = self._config.model
        if model is None:
            return self._scanner.name
        return f"{self._scanner.name}+{model.kind}" if model.only_in_doubt else model.kind

    async def judge(self, document: Document, context: str) -> Assessment:
        first = await self._embedded(document, context)
        model = self._config.model
        if model is None or not self._worth_asking(model, first):
            return first
        try:
            answer = await self._asked.ask(_shown(document, first), context)
        except Unavailable as error:
            if not model.only_in_doubt:
                raise
            _log.warning("%s The embedded verdict holds.", error.message)
            return replace(first, final=False)
        return self._with(first, answer)

    async def close(self) -> None:
        if "_asked" in self.__dict__:
            await self._asked.close()

    async def _embedded(self, document: Document, context: str) -> Assessment:
        if len(document.text) < LONG:
            return self._scanner.assess(document, context)

        def work(_: StopSign) -> Assessment:
            return self._scanner.assess(document, context)

        return await in_thread(work)

    def _worth_asking(self, model: ModelConfig, first: Assessment) -> bool:
        if first.score >= self._config.block_score:
            return False  # nothing a model says could lower it
        return not model.only_in_doubt or first.score >= LOW_SCORE

    def _with(self, first: Assessment, answer: Answer | None) -> Assessment:
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
        module = importlib.import_module("annabelle.servers.guardian.model_judge")  # with it the network client
        return module.ModelJudge(self._config.model, _ledger())


def _ledger() -> Ledger | None:
    """The hub's books, when the hub has started this process."""
    url, token = os.environ.get("ANNABELLE_LEDGER_URL"), os.environ.get("ANNABELLE_LEDGER_TOKEN")
    if not url or not token:
        return None
    return importlib.import_module("annabelle.embeddings.http_ledger").HttpLedger(url, token)


def _shown(document: Document, first: Assessment) -> str:
    """A short text as it is; of a long one what surrounds the findings, and its beginning."""
    asides = "\n".join(aside.text for aside in document.asides)
    if len(document.text) + len(asides) <= LONGEST:
        return f"{document.text}\n{asides}".strip()
    around = [document.text[max(0, found.position - 400) : found.position + 600] for found in first.findings[:4]]
    return "\n…\n".join([*around, asides[:1_500], document.text])[:LONGEST]
