"""Reading has a way out, too: the address that is opened and the words that are searched for tell something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.why import short
from annabelle.policy.naming import content_words, hides_something, host_of, page_key, pages_in, plain
from annabelle.policy.seen import SeenResult
from annabelle.policy.tools.nouns import mentions

_LINKS: Final = re.compile(
    r"\b(?:links?|follow|click|each|sources?|references?|results?|subpages?|linked|liens?|enlaces?|verlink\w*|link\w*)\b"
)
_SEARCHES: Final = re.compile(r"(?:search|feed|news)")
_LONGEST: Final = 160
_TELLING: Final = re.compile(r"\S*(?:\d\S*){4,}|\S+@\S+|\S{24,}")


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    for url in call.values(call.traits.urls):
        if not _opens_what_was_seen(url, turn):
            yield f"you did not name the address {short(url)}"
    for query in call.values(call.traits.queries):
        if _tells(query, call, turn):
            yield f"“{short(query)}” would tell private data to the outside"


def _opens_what_was_seen(url: str, turn: TurnFacts) -> bool:
    """An address the person gave, or one that stands word for word where the person sent us to look."""
    if hides_something(url):
        return False
    if turn.said.page(url):
        return True
    holding = [result for result in turn.seen.results if page_key(url) in pages_in(result.whole)]
    return any(_led_there(url, result, turn) for result in holding)


def _led_there(url: str, result: SeenResult, turn: TurnFacts) -> bool:
    if result.source == "web" and _SEARCHES.search(result.tool):
        return True
    own_pages = {host_of(page) for thing in result.things for page in thing.texts("url", "final_url")}
    if result.source == "web" and host_of(url) in own_pages | turn.said.hosts:
        return True
    return _LINKS.search(turn.topic) is not None or (result.private and mentions(turn.topic, ("web",)))


def _tells(query: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether words of private content go along that the person did not say."""
    new = content_words(query) - turn.said.words
    private = "\n".join(plain(result.whole) for result in turn.seen.results if result.private)
    if not private:
        return False
    if turn.pried or len(query) > _LONGEST:
        return bool(new)
    unsaid = [found for found in _TELLING.findall(query) if not turn.said.verbatim(found)]
    leaks = bool(unsaid) or any(word in private for word in new)
    asked_for = mentions(turn.topic, call.traits.about) and not unsaid
    return leaks and not asked_for
