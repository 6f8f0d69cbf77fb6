"""Checks addresses against their site's robots.txt (RFC 9309), cached for an hour."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from annabelle.core.errors import NotAllowed, Unavailable
from annabelle.servers.kit import in_thread
from annabelle.servers.kit.host_access import printable_host

MAX_RULES = 5_000
_MAX_PATTERN = 2_000
_MAX_PATH = 4_000
"""Only this much of a path is matched: with a longer one, a site could keep thousands of rules busy for seconds."""


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """A pattern of paths, and whether it allows them."""

    pattern: str
    allow: bool

    def fits(self, path: str) -> bool:
        ends = self.pattern.endswith("$")
        first, *others = self.pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        if not others:
            return not ends or len(path) == len(first)
        here = len(first)
        *middle, last = others
        for piece in middle:
            found = path.find(piece, here)
            if found < 0:
                return False
            here = found + len(piece)
        return path.endswith(last) and len(path) - len(last) >= here if ends else path.find(last, here) >= 0


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of a site for one agent; without rules everything is allowed."""

    rules: tuple[RobotsRule, ...] = ()

    @classmethod
    def parse(cls, text: str, agent: str) -> RobotsRules:
        """The rules of all groups that name the agent, or of the groups for everyone if none does."""
        ours: list[RobotsRule] = []
        everyones: list[RobotsRule] = []
        named = False
        targets: list[list[RobotsRule]] = []
        in_rules = False
        for key, value in _lines(text):
            if key == "user-agent":
                if in_rules:
                    targets, in_rules = [], False
                product = value.partition("/")[0].strip().lower()
                if product == agent.lower():
                    named = True
                    targets.append(ours)
                elif product == "*":
                    targets.append(everyones)
            elif key in ("allow", "disallow"):
                in_rules = True
                for rules in targets:
                    if value and len(rules) < MAX_RULES:
                        rules.append(RobotsRule(unquote(value[:_MAX_PATTERN]), key == "allow"))
        return cls(tuple(ours if named else everyones))

    def open_to(self, url: str) -> bool:
        parts = urlsplit(url)
        path = unquote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}")[:_MAX_PATH]
        fitting = [rule for rule in self.rules if rule.fits(path)]
        # Of two patterns of equal length, the one that allows wins.
        return max(fitting, key=lambda rule: (len(rule.pattern), rule.allow)).allow if fitting else True


def _lines(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


AGENT = "Annabelle"
KEEP_SECONDS = 3600.0
MAX_SITES = 500
MAX_BYTES = 512_000


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """A site's response to the request for robots.txt."""

    status: int
    data: bytes


Load = Callable[[str], Awaitable[RobotsFile]]


@dataclass(frozen=True, slots=True)
class _CachedRobots:
    rules: RobotsRules
    until: float


class Robots:
    """Checks addresses against the rules of their site."""

    def __init__(self, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        self._load, self._clock = load, clock
        self._sites: OrderedDict[str, _CachedRobots] = OrderedDict()

    async def check(self, url: str) -> None:
        """Raise if the site forbids the address, or if its robots.txt is unavailable for now."""
        parts = urlsplit(url)
        rules = await self._rules(f"{parts.scheme}://{parts.netloc}")
        if not await in_thread(lambda stop: rules.open_to(url)):  # a site may have thousands of rules
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
        # RFC 9309: a missing file forbids nothing.
        text = answer.data.decode("utf-8-sig", errors="replace") if answer.status < 300 else ""
        rules = await in_thread(lambda stop: RobotsRules.parse(text, AGENT))
        self._sites[site] = _CachedRobots(rules, self._clock() + KEEP_SECONDS)
        self._sites.move_to_end(site)
        while len(self._sites) > MAX_SITES:
            self._sites.popitem(last=False)
        return rules
