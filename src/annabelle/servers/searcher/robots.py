"""What a site asks programs not to read (robots.txt), remembered for an hour."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from annabelle.core.errors import NotAllowed, Unavailable
from annabelle.servers.kit import in_thread
from annabelle.servers.kit.net.addresses import printable_host
from annabelle.servers.searcher.robots_rules import RobotsRules

AGENT = "Annabelle"
KEEP_SECONDS = 3600.0
MAX_SITES = 500
MAX_BYTES = 512_000


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """What a site answered when its robots.txt was asked for."""

    status: int
    data: bytes


Load = Callable[[str], Awaitable[RobotsFile]]


@dataclass(frozen=True, slots=True)
class _Kept:
    rules: RobotsRules
    until: float


class Robots:
    """Judges addresses by the rules of their site."""

    def __init__(self, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        self._load, self._clock = load, clock
        self._sites: OrderedDict[str, _Kept] = OrderedDict()

    async def check(self, url: str) -> None:
        """Raise for an address its site does not want read. A site that can not say so for now is left alone."""
        parts = urlsplit(url)
        rules = await self._rules(f"{parts.scheme}://{parts.netloc}")
        if not await in_thread(lambda stop: rules.open_to(url)):  # thousands of rules, written by a stranger
            raise NotAllowed(
                f"{printable_host(parts.hostname or '')} asks programs not to read this page (robots.txt).",
                hint="Open it with the browser tools if the user wants to see it.",
            )

    async def _rules(self, site: str) -> RobotsRules:
        kept = self._sites.get(site)
        if kept is not None and kept.until > self._clock():
            return kept.rules
        answer = await self._load(f"{site}/robots.txt")
        if answer.status >= 500 or answer.status == 429:
            raise Unavailable(
                f"{printable_host(urlsplit(site).hostname or '')} can not say for now what may be read "
                f"(robots.txt answered {answer.status}).",
                hint="Try again later.",
            )
        # The standard: what is not there forbids nothing.
        text = answer.data.decode("utf-8-sig", errors="replace") if answer.status < 300 else ""
        rules = await in_thread(lambda stop: RobotsRules.parse(text, AGENT))
        self._sites[site] = _Kept(rules, self._clock() + KEEP_SECONDS)
        self._sites.move_to_end(site)
        while len(self._sites) > MAX_SITES:
            self._sites.popitem(last=False)
        return rules
