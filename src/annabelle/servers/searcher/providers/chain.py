"""The sources in their order: the next one answers where one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from annabelle.core.errors import AnnabelleError, InvalidArguments, Unavailable
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.providers.brave import Brave
from annabelle.servers.searcher.providers.keyless import Keyless
from annabelle.servers.searcher.providers.provider import Provider, Question
from annabelle.servers.searcher.providers.searxng import SearXNG
from annabelle.servers.searcher.providers.spacing import Spacing

T = TypeVar("T")

MISSING = "Search is not connected."
MISSING_HINT = (
    "Run: annabelle config set BRAVE_API_KEY, or annabelle config set SEARXNG_URL, or "
    "annabelle config set SEARCH_WITHOUT_KEY true"
)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What was found, who found it, and what there is to say about it."""

    hits: list[T]
    provider: str
    note: str | None


class Chain:
    """Every source that is set up, the best first."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self._providers = tuple(providers)

    @classmethod
    def of(cls, config: SearcherConfig) -> Chain:
        providers: list[Provider] = []
        if config.brave_key:
            providers.append(Brave(config.brave_url, config.brave_key, Spacing(config.brave_spacing)))
        if config.searxng_url:
            providers.append(SearXNG(config.searxng_url))
        if config.without_key:
            providers.append(Keyless())
        return cls(providers)

    async def missing(self) -> str | None:
        """What keeps every search from working, as one sentence."""
        return None if self._providers else f"{MISSING} {MISSING_HINT}"

    async def ask(self, verb: Callable[[Provider, Question], Awaitable[list[T]]], question: Question) -> Outcome[T]:
        """The first source's answer; why others gave none is in the note, or in the error if none gave one."""
        if not self._providers:
            raise Unavailable(MISSING, hint=MISSING_HINT)
        failures: list[AnnabelleError] = []
        for provider in self._providers:
            try:
                hits = await verb(provider, question)
            except InvalidArguments:
                raise
            except AnnabelleError as error:
                failures.append(error)
            else:
                notes = [failure.message for failure in failures]
                return Outcome(hits, provider.name, " ".join([*notes, *_widened(provider, question)]) or None)
        if len(failures) == 1:
            raise failures[0]
        raise Unavailable(" ".join(failure.message for failure in failures), hint=failures[0].hint)


def _widened(provider: Provider, question: Question) -> list[str]:
    freshness = question.freshness
    if provider.knows_days or freshness.days is None:
        return []
    span = freshness.covering()
    wider = f"the past {span}" if span else "all time"
    return [f"{provider.name} knows no range of days; these results are of {wider}."]
