"""Who gets one of the few places: core tools, what a playbook or the last turns need, what fits, what words name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from annabelle.thinker.select.routes import Routed
from annabelle.toolbox.ranking import Ranking

_CLEAR = 0.96
"""From this score on the first tool stands out, and what comes far behind it is left out."""
_USUAL_THRESHOLD = 0.3
_FLAT, _STEEP = (0.6, 0.5), (0.97, 0.85)
"""The first tool's score, and the share of it that others must reach: little when nothing stands out."""
_GUIDED_SHARE, _NAMED_SHARE = 0.75, 0.7
"""The same where the message names a group: for tools outside of it, and for its own."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the settings allow."""

    threshold: float
    top_k: int
    min_tools: int
    max_tools: int


@dataclass(frozen=True, slots=True)
class Claims:
    """Names by why they are wanted, each in the order of how much."""

    core: Sequence[str]
    forced: Sequence[str]
    ranking: Ranking
    routed: Routed


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen names, most wanted first, and the score that was needed."""

    names: tuple[str, ...]
    cutoff: float


def choose(claims: Claims, limits: Limits) -> Choice:
    """At most `max_tools`, whatever is wanted: the cap comes after everything else."""
    ranking, top = claims.ranking, claims.ranking.top_score
    guided = claims.routed.matched and bool(claims.routed.names)
    cutoff = _cutoff(top, limits.threshold, _GUIDED_SHARE if guided else 0.0)
    fitting = [tool.name for tool in ranking.tools[: limits.top_k] if tool.score >= cutoff]
    if len(fitting) < limits.min_tools or (guided and top < limits.threshold):
        fitting = [tool.name for tool in ranking.tools[: min(limits.min_tools, limits.top_k)]]
    perhaps: Iterable[str] = ()
    if guided:
        named = _named(claims, _NAMED_SHARE * top if top >= limits.threshold else 0.0, limits.min_tools)
    else:
        named = list(claims.routed.names) if top < limits.threshold else []
        # Where nothing stands out, the places that are left go to what may still be meant.
        perhaps = () if top >= _CLEAR and not ranking.in_parts else _perhaps(ranking)
    wanted = chain(claims.core, claims.forced, fitting, perhaps, named)
    return Choice(_first(wanted, limits.max_tools), cutoff)


def _cutoff(top: float, threshold: float, least_share: float) -> float:
    (low, least), (high, most) = _FLAT, _STEEP
    share = least + (most - least) * min(max((top - low) / (high - low), 0.0), 1.0)
    return top * min(max(share, least_share) * threshold / _USUAL_THRESHOLD, 1.0)


def _named(claims: Claims, cutoff: float, least: int) -> list[str]:
    """Tools of the groups the message names, best first: the first few, and more that fit well enough."""
    scores = {tool.name: tool.score for tool in claims.ranking.tools}
    best = sorted(claims.routed.names, key=lambda name: -scores.get(name, 0.0))
    return [name for place, name in enumerate(best) if place < least or scores.get(name, 0.0) >= cutoff]


def _perhaps(ranking: Ranking) -> Iterator[str]:
    """The next by score, and after every two of them the next that is about the same."""
    by_score = [tool.name for tool in ranking.tools]
    taken = iter(ranking.about)
    for place, name in enumerate(by_score):
        yield name
        if place % 2:
            yield from islice(taken, 1)
    yield from taken


def _first(names: Iterable[str], most: int) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in names:
        if len(found) >= most:
            break
        found[name] = None
    return tuple(found)
