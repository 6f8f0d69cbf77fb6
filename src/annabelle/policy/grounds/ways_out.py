"""Reading has a way out, too: the address that is opened and the words that are searched for tell something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.targets import made_here
from annabelle.policy.grounds.why import short
from annabelle.policy.naming import content_words, hides_something, host_of, page_key, pages_in, plain
from annabelle.policy.seen import SeenResult
from annabelle.policy.tools.nouns import mentions
from annabelle.policy.tools.reviewed import reviewed_tools

# Words with which a person sends us on, from what was read to where it leads.
_ON: Final = re.compile(
    r"\b(?:links?|linked|follow|click|each|sources?|references?|results?|subpages?|further|liens?|enlaces?|verlink\w*|"
    r"quellen?|linki|odnośnik\w*)\b"
)
_AROUND: Final = re.compile(
    r"\b(?:sites?|websites?|pages?|online|browse|explore|documentation|docs|seiten?|webseiten?|pages|páginas?|sitio|"
    r"stron\w*|shop|store|blog|articles?)\b"
)
_OPEN: Final = re.compile(r"\b(?:open|visit|fetch|load|go to|öffne|besuche|ouvre|visite|abre|visita|otwórz|odwiedź)\b")
_SEARCHES: Final = re.compile(r"_search$")
_LONGEST: Final = 160
_READING: Final = frozenset({"read_private", "read_untrusted"})
_TELLING: Final = re.compile(r"\S*(?:\d\S*){4,}|\S+@\S+|\S{24,}")


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    for url in call.values(call.traits.urls):
        if not _opens_what_was_seen(url, turn):
            yield f"you did not name the address {short(url)}"
        elif turn.pried and not turn.said.page(url):
            # Which of many links is opened can tell as much as what stands in it.
            yield "private data was read that you did not speak of"
    for query in call.values(call.traits.queries):
        if _tells(query, call, turn):
            yield f"“{short(query)}” would tell private data to the outside"


def _opens_what_was_seen(url: str, turn: TurnFacts) -> bool:
    """An address the person gave, or one that stands word for word where the person sent us to look."""
    if hides_something(url):
        return False
    spoken = _as_written(url)
    if turn.said.page(url) and spoken in turn.said.text:
        return True
    if _is_on_a_named_site(url, turn):
        return True
    read = (result for result in turn.seen.results if _was_read(result, turn))
    holding = [result for result in read if _holds(url, result) and spoken in result.plain]
    return any(_led_there(url, result, turn) for result in holding)


def _was_read(result: SeenResult, turn: TurnFacts) -> bool:
    """Whether others wrote what stands there. An error, an answer of our own or a thing that was just written repeats
    what the agent itself said."""
    known = reviewed_tools().get(result.tool)
    reads = known is None or set(known.classes) <= _READING or known.source == "web"
    written = any(made_here(path, turn) for thing in result.things for path in thing.texts("path"))
    return reads and not (result.failed or result.trusted or written)


def _is_on_a_named_site(url: str, turn: TurnFacts) -> bool:
    """`Open x.example/hotel and then go to the news page`: another page there, of which every word was said."""
    host, _, way = page_key(url).partition("/")
    words = re.findall(r"\w+", way.casefold())
    plain_way = re.fullmatch(r"[^\W\d]*(?:[/.-][^\W\d]+)*", way) is not None and "#" not in url
    told_to_go = _OPEN.search(turn.own_words.casefold()) is not None
    return told_to_go and host in turn.now.hosts and plain_way and all(turn.now.verbatim(word) for word in words)


def _as_written(url: str) -> str:
    """What must stand there word for word: a page's own program reads what is behind the # and may pass it on."""
    page, sign, place = url.strip().partition("#")
    return plain(page_key(page).partition("/")[2] + sign + place) if place else ""


def _holds(url: str, result: SeenResult) -> bool:
    """Whether the address stands there, or the way to it from the page that was seen."""
    if page_key(url) in pages_in(result.whole):
        return True
    host, _, way = page_key(url).partition("/")
    here = {host_of(page) for thing in result.things for page in thing.texts("url")}
    return host in here and re.search(rf"/url: /{re.escape(way)}\s", f"{result.whole}\n") is not None


def _led_there(url: str, result: SeenResult, turn: TurnFacts) -> bool:
    """Whether the person lets us go from this result to that address."""
    words = turn.topic
    if _ON.search(words):
        return True
    pages = [page for thing in result.things for page in thing.texts("url", "final_url", "link")]
    if result.source == "web" and _SEARCHES.search(result.tool):
        return page_key(url) in {page_key(page) for page in pages}
    if result.source == "web":
        return _AROUND.search(words) is not None and host_of(url) in {host_of(page) for page in pages}
    return _OPEN.search(words) is not None


def _tells(query: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether words of private content go along that the person did not say."""
    new = content_words(query) - turn.said.words
    private = turn.seen.private
    if turn.pried or turn.seen.hides_private or (private and len(query) > _LONGEST):
        return bool(new)
    if not private:
        return False
    unsaid = [found for found in _TELLING.findall(query) if not turn.said.verbatim(found)]
    leaks = bool(unsaid) or any(word in private for word in new)
    asked_for = mentions(turn.topic, call.traits.about) and not unsaid
    return leaks and not asked_for
