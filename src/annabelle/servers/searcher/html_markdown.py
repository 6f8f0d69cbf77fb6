"""Converts an HTML page to Markdown without menus, scripts and hidden parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol, cast

import lxml.etree
import lxml.html
import trafilatura

MAX_HTML_CHARS = 3_000_000
_STYLE = "translate(@style,'ABCDEFGHIJKLMNOPQRSTUVWXYZ \t','abcdefghijklmnopqrstuvwxyz')"
_UNSEEN = (
    "//script|//style|//noscript|//template|//title|//meta|//link|//base|//svg|//iframe|//object|//*[@hidden]|//*[@aria-hidden='true']"
    f"|//*[contains({_STYLE},'display:none')]|//*[contains({_STYLE},'visibility:hidden')]"
)
_DESCRIPTION = "//meta[@name='description']|//meta[@property='og:description']"
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section"),
        *("table", "td", "th", "tr", "ul"),
    )
)


class LxmlNode(Protocol):
    """The part of lxml's elements that is used."""

    tag: object
    text: str | None
    tail: str | None

    def xpath(self, path: str) -> list[LxmlNode]: ...
    def iter(self) -> Iterable[LxmlNode]: ...
    def getparent(self) -> LxmlNode | None: ...
    def drop_tree(self) -> None: ...
    def findtext(self, path: str) -> str | None: ...
    def get(self, key: str) -> str | None: ...


class ParseHtml(Protocol):
    def __call__(self, html: bytes, parser: object) -> LxmlNode: ...


class ExtractMarkdown(Protocol):
    def __call__(
        self, filecontent: LxmlNode, *, url: str, output_format: str, include_links: bool, include_comments: bool
    ) -> str | None: ...


# lxml has no types of its own.
_parse = cast("ParseHtml", lxml.html.document_fromstring)  # pyright: ignore[reportUnknownMemberType]
_LxmlError = cast("type[Exception]", lxml.etree.LxmlError)  # pyright: ignore[reportUnknownMemberType]
_extract = cast("ExtractMarkdown", trafilatura.extract)


def read_html(text: str, url: str, *, links: bool) -> tuple[str, str, str]:
    """Its title, its description of itself, and its text."""
    tree = _parsed(text[:MAX_HTML_CHARS])
    if tree is None:
        return "", "", ""
    title = " ".join((tree.findtext(".//title") or "").split())
    described = (" ".join((node.get("content") or "").split()) for node in tree.xpath(_DESCRIPTION))
    description = next(filter(None, described), "")
    for node in tree.xpath(_UNSEEN):
        if node.getparent() is not None:
            node.drop_tree()
    content = _extract(tree, url=url, output_format="markdown", include_links=links, include_comments=False)
    return title, description, (content or "").strip() or _body_text(tree)


def _parsed(page: str) -> LxmlNode | None:
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        # As bytes: lxml refuses characters with an encoding declaration in them.
        return _parse(page.encode(errors="replace"), parser=parser)
    except (_LxmlError, ValueError):
        return None


def _body_text(tree: LxmlNode) -> str:
    """All text of the body, one line per block, for pages without a recognisable article."""
    pieces: list[str] = []
    for node in tree.iter():
        block = node.tag in _BLOCKS
        pieces += ["\n" if block else "", node.text or "", "\n" if block and node.tail else "", node.tail or ""]
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
