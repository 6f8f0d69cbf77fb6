"""What a search found, as short and plain as a model should read it."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from annabelle.servers.kit import Result
from annabelle.servers.searcher.plain import one_line, web_address
from annabelle.servers.searcher.providers.provider import Hit, ImageHit

_TITLE, _SNIPPET, _SOURCE = 200, 500, 80


class Found(BaseModel):
    """A page."""

    model_config = ConfigDict(frozen=True)

    title: str
    url: str
    snippet: str = ""
    age: str | None = None
    source: str | None = None

    def shown(self) -> str:
        about = " · ".join(filter(None, (self.source, self.age)))
        return "\n   ".join(filter(None, (self.title, self.url, about, self.snippet)))


class FoundImage(BaseModel):
    """A picture, and the page it is on."""

    model_config = ConfigDict(frozen=True)

    title: str
    image_url: str
    page_url: str | None = None
    thumbnail: str | None = None
    source: str | None = None
    width: int | None = None
    height: int | None = None

    def shown(self) -> str:
        size = f"{self.width}×{self.height}" if self.width and self.height else None
        about = " · ".join(filter(None, (self.source, size)))
        page = f"on {self.page_url}" if self.page_url else None
        return "\n   ".join(filter(None, (self.title, self.image_url, page, about)))


class SearchResults(Result):
    """Pages, best first, and who found them."""

    query: str
    provider: str
    results: list[Found]
    note: str | None = None

    def text(self) -> str:
        return _listed(self.query, self.provider, [result.shown() for result in self.results], self.note)


class ImageResults(Result):
    """Pictures, best first, and who found them."""

    query: str
    provider: str
    results: list[FoundImage]
    note: str | None = None

    def text(self) -> str:
        return _listed(self.query, self.provider, [result.shown() for result in self.results], self.note)


def pages(hits: Iterable[Hit], count: int) -> list[Found]:
    """Each page once; what is no page of the web is left out."""
    found: dict[str, Found] = {}
    for hit in hits:
        url = web_address(hit.url)
        if url is None:
            continue
        page = Found(
            title=one_line(hit.title, _TITLE) or url,
            url=url,
            snippet=one_line(hit.snippet, _SNIPPET),
            age=one_line(hit.age, _SOURCE) or None,
            source=one_line(hit.source, _SOURCE) or None,
        )
        found.setdefault(_same(url), page)
    return list(found.values())[:count]


def pictures(hits: Iterable[ImageHit], count: int) -> list[FoundImage]:
    """Each picture once."""
    found: dict[str, FoundImage] = {}
    for hit in hits:
        image = web_address(hit.image)
        if image is None:
            continue
        picture = FoundImage(
            title=one_line(hit.title, _TITLE) or image,
            image_url=image,
            page_url=web_address(hit.page),
            thumbnail=web_address(hit.thumbnail),
            source=one_line(hit.source, _SOURCE) or None,
            width=_pixels(hit.width),
            height=_pixels(hit.height),
        )
        found.setdefault(image, picture)
    return list(found.values())[:count]


def _same(url: str) -> str:
    """The same for two addresses that open the same page: scheme, `www.`, last slash and fragment do not count."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.netloc.lower().removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}"


def _pixels(value: object) -> int | None:
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None


def _listed(query: str, provider: str, shown: list[str], note: str | None) -> str:
    lines = [f"{number}. {entry}" for number, entry in enumerate(shown, start=1)]
    found = lines or [f"Nothing was found for {query!r}. Try other or fewer words."]
    return "\n".join([*found, f"[{provider}{f'. {note}' if note else ''}]"])
