"""Reasons to ask before a URL, a search or an image carries data out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from annabelle.policy.checks.targets import was_written_here
from annabelle.policy.person_words import (
    content_words,
    find_addresses,
    find_pages,
    has_hidden_characters,
    host_of,
    normalize_text,
    page_key,
    remove_pages,
)
from annabelle.policy.private_values import holds_private_value
from annabelle.policy.seen_content import SeenResult
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.unsolicited_read import find_mentioned_texts
from annabelle.policy.vocabulary import mentions_any

# Words that tell the agent to go from what it read to what is linked there.
_FOLLOWS_LINKS: Final = re.compile(
    r"\b(?:links?|linked|follow|click|each|sources?|references?|results?|subpages?|further|liens?|enlaces?|verlink\w*|"
    r"quellen?|linki|odnośnik\w*)\b"
)
_BROWSES_SITE: Final = re.compile(
    r"\b(?:sites?|websites?|pages?|online|browse|explore|documentation|docs|seiten?|webseiten?|pages|páginas?|sitio|"
    r"stron\w*|shop|store|blog|articles?)\b"
)
_OPEN: Final = re.compile(r"\b(?:open|visit|fetch|load|go to|öffne|besuche|ouvre|visite|abre|visita|otwórz|odwiedź)\b")
_SEARCHES: Final = re.compile(r"_search$")
_LONGEST: Final = 160
_READING: Final = frozenset({"read_private", "read_untrusted"})
_TELLING: Final = re.compile(r"\S*(?:\d\S*){4,}|\S+@\S+|\S{24,}")


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    for url in call.values(call.traits.urls):
        if not _opens_what_was_seen(url, turn):
            yield f"you did not name the address {shorten(url)}"
        elif turn.unsolicited_read and not turn.said.names_page(url):
            # The choice among many links can leak as much as the text of one.
            yield "private data was read that you did not speak of"
        elif _carries_private_value(url, turn):
            yield f"the address {shorten(url)} would tell private data to the outside"
    for query in call.values(call.traits.queries):
        if _reveals_private_words(query, call, turn):
            yield f"“{shorten(query)}” would tell private data to the outside"


def _opens_what_was_seen(url: str, turn: TurnFacts) -> bool:
    """Whether the person gave the URL, or it appears verbatim where they told the agent to look."""
    if has_hidden_characters(url):
        return False
    spoken = _as_written(url)
    if turn.said.names_page(url) and spoken in turn.said.text:
        return True
    if _is_on_a_named_site(url, turn):
        return True
    read = (result for result in turn.seen.results if _was_read(result, turn))
    holding = [result for result in read if _contains_address(url, result) and spoken in result.plain]
    return any(_may_follow(url, result, turn) for result in holding)


def _was_read(result: SeenResult, turn: TurnFacts) -> bool:
    """Whether others wrote the content. Errors, own answers and files just written only repeat the agent."""
    known = reviewed_tools().get(result.tool)
    reads = known is None or set(known.classes) <= _READING or known.source == "web"
    written = any(was_written_here(one, turn) for thing in result.things for one in thing.ids)
    return reads and not (result.failed or result.trusted or written)


def _carries_private_value(url: str, turn: TurnFacts) -> bool:
    """Whether a URL that content gave has a value of other private content: one that was put together to be opened."""
    if turn.said.names_page(url):
        return False
    gave = [result for result in turn.seen.results if _contains_address(url, result)]
    others = [remove_pages(result.whole) for result in turn.seen.results if result.private and result not in gave]
    return holds_private_value([url], others, [turn.said.text, *(remove_pages(result.whole) for result in gave)])


def _is_on_a_named_site(url: str, turn: TurnFacts) -> bool:
    """Whether the URL is on a named site and every word of its path was said: `open x.example and go to the news
    page`."""
    host, _, way = page_key(url).partition("/")
    words = re.findall(r"\w+", way.casefold())
    plain_way = re.fullmatch(r"[^\W\d]*(?:[/.-][^\W\d]+)*", way) is not None and "#" not in url
    told_to_go = _OPEN.search(turn.own_words.casefold()) is not None
    return (
        told_to_go and host in turn.said_now.hosts and plain_way and all(turn.said_now.contains(word) for word in words)
    )


def _as_written(url: str) -> str:
    """The part that must appear verbatim. Scripts on the page can read and pass on what follows the #."""
    page, sign, place = url.strip().partition("#")
    return normalize_text(page_key(page).partition("/")[2] + sign + place) if place else ""


def _contains_address(url: str, result: SeenResult) -> bool:
    """Whether the result contains the URL, or its path as a link on the same host."""
    if page_key(url) in find_pages(result.whole):
        return True
    host, _, way = page_key(url).partition("/")
    here = {host_of(page) for thing in result.things for page in thing.texts("url")}
    return host in here and re.search(rf"/url: /{re.escape(way)}\s", f"{result.whole}\n") is not None


def _may_follow(url: str, result: SeenResult, turn: TurnFacts) -> bool:
    """Whether the person allows following links from this result to this URL."""
    words = turn.topic
    if _FOLLOWS_LINKS.search(words):
        return True
    pages = [page for thing in result.things for page in thing.texts("url", "final_url", "link")]
    if result.source == "web" and _SEARCHES.search(result.tool):
        return page_key(url) in {page_key(page) for page in pages}
    if result.source == "web":
        return _BROWSES_SITE.search(words) is not None and host_of(url) in {host_of(page) for page in pages}
    return _OPEN.search(words) is not None


def _reveals_private_words(query: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the query contains private words that the person did not say."""
    new = content_words(query) - turn.said.words
    private = turn.seen.private
    if turn.unsolicited_read or turn.seen.hides_private or (private and len(query) > _LONGEST):
        return bool(new)
    if not private:
        return False
    unsaid = [found for found in _TELLING.findall(query) if not turn.said.contains(found)]
    if holds_private_value([query], [private], [turn.said.text]):
        return True
    leaks = bool(unsaid) or any(word in private for word in new)
    asked_for = mentions_any(turn.topic, call.traits.about) and not unsaid
    return leaks and not asked_for


_LONG_NUMBER: Final = re.compile(r"\+?[A-Z]{0,2}\d(?:[ ./-]?\w?\d){5,}")
_LINK: Final = re.compile(
    r"\b(?:links?|urls?|(?:web|home)?(?:site|page)s?|web address|booking|menu|adresse|webseite|seite|lien|enlace|"
    r"página|dirección|stron\w+|odnośnik\w*)\b"
)
_MAIL: Final = re.compile(r"\b(?:e-?mail|mail|address|adresse|correo|dirección|adres\w*|contact|kontakt|vcard)\b")
_DIGITS: Final = re.compile(
    r"\b(?:numbers?|phone|tel|mobile|iban|account|wi-?fi|wlan|password|code|contact|vcard|nummer|telefon\w*|konto|"
    r"passwort|numéro|téléphone|compte|número|teléfono|cuenta|contraseña|numer\w*|kont\w+|hasł\w*)\b"
)


def reasons_to_ask_for_picture(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Each URL, mail address or number in the image must come from the person or be the only one where they told us to
    look."""
    for text in call.values(call.traits.shown):
        for find, spoken_of in ((_find_page_list, _LINK), (find_addresses, _MAIL), (_find_numbers, _DIGITS)):
            given = find(turn.said.text)
            for one in find(text):
                if one not in given and not _is_the_one(one, find, spoken_of, turn):
                    yield f"you did not name {shorten(one)}"


def _is_the_one(value: str, find: Callable[[str], list[str]], spoken_of: re.Pattern[str], turn: TurnFacts) -> bool:
    if spoken_of.search(turn.topic) is None:
        return False
    return {one for text in find_mentioned_texts(turn) for one in find(text)} - {*find(turn.said.text)} == {value}


def _find_page_list(text: str) -> list[str]:
    # The domain of a mail address is not a page.
    addresses = " ".join(find_addresses(text))
    return [page for page in find_pages(text) if page not in addresses]


def _find_numbers(text: str) -> list[str]:
    return [re.sub(r"\W", "", found.group()).casefold() for found in _LONG_NUMBER.finditer(text)]
