"""What a WebDAV server tells of several things at once: questions and answers in XML."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from annabelle.core.errors import Unavailable
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from defusedxml import ElementTree
else:
    ElementTree = deferred_module("defusedxml.ElementTree")

CONNECT = "Check the address, the user name and the password: annabelle connect mail"
_DAV = "{DAV:}"
_CAL = "{urn:ietf:params:xml:ns:caldav}"
_SPACES = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'


def properties(*names: str) -> str:
    """A PROPFIND that asks for these, written `d:displayname` or `c:calendar-home-set`."""
    return f"<d:propfind {_SPACES}><d:prop>{''.join(f'<{name}/>' for name in names)}</d:prop></d:propfind>"


def events_between(start: datetime, end: datetime) -> str:
    """A REPORT that asks for all events of a time."""
    edges = f'start="{start.astimezone(UTC):%Y%m%dT%H%M%SZ}" end="{end.astimezone(UTC):%Y%m%dT%H%M%SZ}"'
    return (
        f"<c:calendar-query {_SPACES}><d:prop><d:getetag/><c:calendar-data/></d:prop><c:filter>"
        f'<c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:time-range {edges}/></c:comp-filter>'
        "</c:comp-filter></c:filter></c:calendar-query>"
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One thing, by its full address, with the properties it has."""

    url: str
    found: dict[str, Element]

    def text(self, name: str) -> str:
        element = self.found.get(_long(name))
        return "" if element is None else (element.text or "").strip()

    def linked(self, name: str) -> str | None:
        """The address a property points to."""
        element = self.found.get(_long(name))
        href = None if element is None else element.find(f"{_DAV}href")
        return None if href is None or not href.text else joined(self.url, href.text.strip())

    def has(self, name: str, *inner: str) -> bool:
        """Whether a property has one of these elements anywhere in it."""
        element = self.found.get(_long(name))
        return element is not None and any(element.find(f".//{_long(one)}") is not None for one in inner)

    def values(self, name: str) -> set[str]:
        """The `name` attributes of what is in a property."""
        element = self.found.get(_long(name))
        return set() if element is None else {child.get("name", "").upper() for child in element}


def read_parts(url: str, body: bytes) -> list[Part]:
    """The things in an answer; what the server could not tell of a thing is left out."""
    try:
        root: Element = ElementTree.fromstring(body, forbid_dtd=True)
    except (ElementTree.ParseError, ValueError) as error:
        raise _nonsense() from error
    return [part for response in root.iter(f"{_DAV}response") if (part := _part(url, response)) is not None]


def joined(base: str, href: str) -> str:
    """Where a link leads; whether one may go there is another question."""
    try:
        return urllib.parse.urljoin(base, href)
    except ValueError as error:
        raise _nonsense() from error


def _nonsense() -> Unavailable:
    return Unavailable("The calendar server's answer can not be read.", hint=CONNECT)


def _part(url: str, response: Element) -> Part | None:
    href = response.find(f"{_DAV}href")
    if href is None or not href.text:
        return None
    found: dict[str, Element] = {}
    for propstat in response.iter(f"{_DAV}propstat"):
        status, prop = propstat.find(f"{_DAV}status"), propstat.find(f"{_DAV}prop")
        if prop is not None and (status is None or " 200" in (status.text or "")):
            found.update({element.tag: element for element in prop})
    return Part(joined(url, href.text.strip()), found)


def _long(name: str) -> str:
    space, _, own = name.partition(":")
    return f"{_DAV if space == 'd' else _CAL}{own}"
