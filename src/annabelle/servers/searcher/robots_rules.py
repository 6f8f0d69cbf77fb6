"""The rules in a robots.txt (RFC 9309): the longest one that fits counts, `*` stands for anything, `$` for the end.

The standard library's parser takes the first rule that fits and knows no wildcards, so it both refuses pages that are
open and reads some that are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

MAX_RULES = 5_000
_MAX_PATTERN = 2_000
_MAX_PATH = 4_000
"""What is judged of a path: a site that redirects to a longer one could keep thousands of rules busy for seconds."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: a pattern of paths, and whether it opens or closes them."""

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
    """What a site says to one agent; without rules everything is open."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, text: str, agent: str) -> RobotsRules:
        """The rules of all groups that name the agent; of those for everyone if none does."""
        ours: list[Rule] = []
        everyones: list[Rule] = []
        named = False
        targets: list[list[Rule]] = []
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
                        rules.append(Rule(unquote(value[:_MAX_PATTERN]), key == "allow"))
        return cls(tuple(ours if named else everyones))

    def open_to(self, url: str) -> bool:
        parts = urlsplit(url)
        path = unquote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}")[:_MAX_PATH]
        fitting = [rule for rule in self.rules if rule.fits(path)]
        # Of two that are equally long the open one counts.
        return max(fitting, key=lambda rule: (len(rule.pattern), rule.allow)).allow if fitting else True


def _lines(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()
