"""Selects the tools of a turn: exactly the required ones, or the few that fit the message, with shortened schemas
(SEL-01…06, SEL-08…10).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from annabelle.core.contract import ToolList
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.embeddings.embedder import Embedder
from annabelle.language.tool_odds import NO_TOOL, packaged_tool_odds
from annabelle.thinker.selection.keywords import KeywordRoutes, RoutedTools, classify_small_talk
from annabelle.thinker.selection.selection import (
    SelectionReason,
    SelectionReport,
    SelectionRequest,
    ToolSelection,
    select_required,
)
from annabelle.toolbox.ranking import ToolRanker, ToolRanking

_CLEAR = 0.96
"""From this score on the first tool stands out, and what comes far behind it is left out."""
_USUAL_THRESHOLD = 0.3
_FLAT, _STEEP = (0.6, 0.5), (0.97, 0.85)
"""The first tool's score, and the share of it that others must reach: little when nothing stands out."""
_GUIDED_SHARE, _NAMED_SHARE = 0.75, 0.7
"""The same where the message names a group: for tools outside of it, and for its own."""


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """What the settings allow."""

    threshold: float
    top_k: int
    min_tools: int
    max_tools: int


@dataclass(frozen=True, slots=True)
class SelectionCandidates:
    """Names by why they are wanted, each in the order of how much."""

    core: Sequence[str]
    forced: Sequence[str]
    ranking: ToolRanking
    routed: RoutedTools
    learned: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The chosen names, most wanted first, each with why, and the score that was needed."""

    reasons: Mapping[str, SelectionReason]
    cutoff: float
    at_hand: frozenset[str] = frozenset()
    """Those of them that are offered whatever the message asks for."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.reasons)


def choose_tools(candidates: SelectionCandidates, limits: SelectionLimits) -> ToolChoice:
    """At most `max_tools`, whatever is wanted: the cap comes after everything else."""
    ranking, top = candidates.ranking, candidates.ranking.top_score
    guided = candidates.routed.matched and bool(candidates.routed.names)
    cutoff = _cutoff(top, limits.threshold, _GUIDED_SHARE if guided else 0.0)
    fitting = [tool.name for tool in ranking.tools[: limits.top_k] if tool.score >= cutoff]
    if len(fitting) < limits.min_tools or (guided and top < limits.threshold):
        fitting = [tool.name for tool in ranking.tools[: min(limits.min_tools, limits.top_k)]]
    possible: Iterable[str] = ()
    if guided:
        named = _named_group_tools(candidates, _NAMED_SHARE * top if top >= limits.threshold else 0.0, limits.min_tools)
    else:
        named = list(candidates.routed.names) if top < limits.threshold else []
        # Where nothing stands out, the places that are left go to what may still be meant.
        possible = () if top >= _CLEAR and not ranking.in_parts else _possible_tools(ranking)
    always = (*candidates.core, *candidates.forced)
    wanted: tuple[tuple[SelectionReason, Iterable[str]], ...] = (
        *(("core", candidates.core), ("in use", candidates.forced), ("learned", candidates.learned)),
        *(("fits", fitting), ("may fit", possible), ("named group", named)),
    )
    at_hand = frozenset(always) - {*candidates.learned, *fitting, *named}
    return ToolChoice(_take_first(wanted, limits.max_tools), cutoff, at_hand)


def _cutoff(top: float, threshold: float, least_share: float) -> float:
    (low, least), (high, most) = _FLAT, _STEEP
    share = least + (most - least) * min(max((top - low) / (high - low), 0.0), 1.0)
    return top * min(max(share, least_share) * threshold / _USUAL_THRESHOLD, 1.0)


def _named_group_tools(candidates: SelectionCandidates, cutoff: float, least: int) -> list[str]:
    """Tools of the groups the message names, best first: the first few, and more that fit well enough."""
    scores = {tool.name: tool.score for tool in candidates.ranking.tools}
    best = sorted(candidates.routed.names, key=lambda name: -scores.get(name, 0.0))
    return [name for place, name in enumerate(best) if place < least or scores.get(name, 0.0) >= cutoff]


def _possible_tools(ranking: ToolRanking) -> Iterator[str]:
    """The next by score, and after every two of them the next that is about the same."""
    by_score = [tool.name for tool in ranking.tools]
    taken = iter(ranking.about)
    for place, name in enumerate(by_score):
        yield name
        if place % 2:
            yield from islice(taken, 1)
    yield from taken


def _take_first(wanted: Iterable[tuple[SelectionReason, Iterable[str]]], most: int) -> dict[str, SelectionReason]:
    found: dict[str, SelectionReason] = {}
    for reason, names in wanted:
        for name in names:
            if len(found) >= most:
                return found
            found.setdefault(name, reason)
    return found


_LEARNED_MASS = 0.97
_MOST_LEARNED = 8
"""Of a part of a message as many tools as have these odds together, so more where the odds are flat."""


def pick_learned(parts: Iterable[Mapping[str, float]], available: Container[str]) -> dict[str, float]:
    """Names and odds of the tools that the parts of a message ask for, best first."""
    found: dict[str, float] = {}
    for odds in parts:
        mass = odds.get(NO_TOOL, 0.0)
        for place, name in enumerate(sorted(odds, key=odds.__getitem__, reverse=True)):
            if place >= _MOST_LEARNED or (place and mass >= _LEARNED_MASS):
                break
            if name in available:
                found[name] = max(found.get(name, 0.0), odds[name])
            mass += odds[name] if name != NO_TOOL else 0.0
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


_MAX_DESCRIPTION = 320
_MAX_HINT = 140
_MAX_DEFAULT = 40
_MAX_TEXT = 1_000
_MAX_SCHEMA_DEPTH = 20
_MAX_CACHED = 2_000
_NOT_SHOWN = frozenset({"title", "$schema", "$id", "$comment", "examples", "example", "readOnly", "writeOnly"})
_SENTENCE_END = re.compile(r"[.!?](?=\s)")


class SlimToolSpecs:
    """Slimmed tools by what they were before: made once, and the same in every turn."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[ToolSpec, ToolSpec]] = {}

    def get(self, tool: ToolSpec) -> ToolSpec:
        known = self._made.get(id(tool))
        if known is not None and known[0] is tool:
            return known[1]
        if len(self._made) > _MAX_CACHED:
            self._made.clear()
        made = slim_tool(tool)
        self._made[id(tool)] = tool, made
        return made


def slim_tool(tool: ToolSpec) -> ToolSpec:
    """The tool with what costs more than it tells left out; every call that was valid still is."""
    return tool.model_copy(
        update={
            "description": shorten_description(tool.description, _MAX_DESCRIPTION),
            "input_schema": _slim_schema(tool.input_schema, 0),
            "output_schema": None,
            "keywords": (),
        }
    )


def shorten_description(text: str, most: int) -> str:
    """The sentences at its beginning that fit, or what fits of the first one."""
    text = text.strip()
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text[: most + 1])]
    return text[: ends[-1]] if ends and ends[-1] > most // 4 else text[: most - 1].rstrip() + "…"


def _slim_schema(schema: JsonObject, depth: int) -> JsonObject:
    """One level of a schema. Names of properties are not words of the schema, whatever they are."""
    slim: JsonObject = {}
    for key, value in schema.items():
        if key in _NOT_SHOWN or _tells_nothing(key, value):
            continue
        if key == "description" and isinstance(value, str):
            slim[key] = shorten_description(value, _MAX_HINT)
        elif key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            inner = cast("JsonObject", value)
            slim[key] = {name: _slim_nested(part, depth) for name, part in inner.items()}
        elif key in ("items", "additionalProperties", "not", "if", "then", "else"):
            slim[key] = _slim_nested(value, depth)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            slim[key] = [_slim_nested(part, depth) for part in cast("list[object]", value)]
        else:
            slim[key] = value
    return slim


def _slim_nested(value: object, depth: int) -> object:
    if isinstance(value, dict) and depth < _MAX_SCHEMA_DEPTH:
        return _slim_schema(cast("JsonObject", value), depth + 1)
    return cast("object", value)


def _tells_nothing(key: str, value: object) -> bool:
    """A default of nothing, a long one, and bounds nobody gets near to."""
    if key == "default":
        return value in (None, "", [], {}) or len(str(value)) > _MAX_DEFAULT
    if key == "maxLength":
        return isinstance(value, int) and value >= _MAX_TEXT
    return key == "minLength" and value in (0, 1)


CORE = ("send_message", "store_fact", "search_memories", "get_status", "spawn_subagent", "read_skill", "search_tools")
"""Always offered, as far as they exist; the last one finds what is not."""
_ALIASES = {"send_telegram": "send_message"}
_TOP = 5
_CLEAR_MATCH_SCORE, _CLEAR_MATCH_TEMPERATURE = 0.6, 0.3


class HybridSelector:
    """Ranks by words and by meaning, adds what words, playbooks and the last turns call for, and cuts at the cap."""

    def __init__(self, settings: Settings, embedder: Embedder, temperature: float) -> None:
        self._limits = SelectionLimits(
            threshold=settings.tool_selector_threshold,
            top_k=settings.tool_selector_top_k,
            min_tools=settings.tool_selector_min_tools,
            max_tools=settings.tool_selector_max_tools,
        )
        self._sticky, self._temperature = settings.thinker_sticky_tools_max, temperature
        self._ranker = ToolRanker(embedder)
        self._slim = SlimToolSpecs()
        self._catalogue: _ToolCatalogue | None = None

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        catalogue = self._catalogue_for(ask)
        if ask.brief.required_tools is not None:
            return select_required(ask.brief.required_tools, catalogue.everything.values())
        core = catalogue.core
        sticky = [name for name in ask.sticky if name in catalogue.specs and name not in core][: self._sticky]
        forced = [name for name in dict.fromkeys((*ask.playbook_tools, *sticky)) if name in catalogue.specs]
        talk = classify_small_talk(ask.text)
        if talk is not None and not ask.playbook_tools:
            # "Ok" may be the answer to a question, and what was in use is what it is about.
            kept = _take_first((("core", core), ("in use", forced if talk == "assent" else ())), self._limits.max_tools)
            choice = ToolChoice(kept, 0.0, frozenset(kept))
            return self._make_selection(choice, catalogue, (), "small-talk")
        learned = self._pick_learned(ask, catalogue)
        ranked = catalogue.unlearned if learned else catalogue.rest
        ranking = await self._ranker.rank(ranked.tools, ask.text)
        routed = ranked.routes.route(ask.text)
        choice = choose_tools(SelectionCandidates(core, forced, ranking, routed, tuple(learned)), self._limits)
        fell_back = not ranking.tools and not routed.matched
        method = "learned" if learned else "default" if fell_back else ranking.method
        scores = [*learned.items(), *((tool.name, tool.score) for tool in ranking.tools[:_TOP])]
        return self._make_selection(choice, catalogue, sorted(scores, key=lambda pair: -pair[1]), method)

    def _pick_learned(self, ask: SelectionRequest, catalogue: _ToolCatalogue) -> dict[str, float]:
        """Of the tools the weights know; none where they do not know the words."""
        odds = packaged_tool_odds() if catalogue.learned else None
        if odds is None:
            return {}
        steps = odds.steps(ask.text, ask.previous)
        return pick_learned([step.odds for step in steps], catalogue.learned)

    def _make_selection(
        self, choice: ToolChoice, catalogue: _ToolCatalogue, scores: Sequence[tuple[str, float]], method: str
    ) -> ToolSelection:
        chosen, core = set(choice.names), set(catalogue.core)
        # Sorted by name in both parts: the same tools are the same prefix of the next request.
        ours = [tool for name, tool in catalogue.specs.items() if name in chosen and name in core]
        rest = [tool for name, tool in catalogue.specs.items() if name in chosen and name not in core]
        top = scores[0][1] if scores else 0.0
        best, total = tuple(scores[:_TOP]), len(catalogue.specs)
        return ToolSelection(
            tools=(*ours, *rest),
            report=SelectionReport(method, len(chosen), total, top, choice.cutoff, best, choice.reasons),
            temperature=min(self._temperature, _CLEAR_MATCH_TEMPERATURE) if top > _CLEAR_MATCH_SCORE else None,
            small_talk=method == "small-talk",
            limit=self._limits.max_tools,
            others=tuple(catalogue.list_others(chosen)),
            wanted=choice.names,
            in_brief=choice.at_hand - {tool.name for tool in catalogue.local},
        )

    def _catalogue_for(self, ask: SelectionRequest) -> _ToolCatalogue:
        """What does not depend on the message, made once per list of tools."""
        catalogue = self._catalogue
        if catalogue is None or catalogue.available is not ask.available or catalogue.local != ask.local:
            catalogue = self._catalogue = _ToolCatalogue.build(ask.available, ask.local, self._slim)
        return catalogue


@dataclass(frozen=True, slots=True)
class _RankedTools:
    """A list of tools and the keyword routes to them."""

    tools: ToolList
    routes: KeywordRoutes


@dataclass(frozen=True, slots=True)
class _ToolCatalogue:
    """A list of tools as the selection needs it: slim, sorted by name, with the core apart from the rest."""

    available: ToolList
    local: tuple[ToolSpec, ...]
    everything: dict[str, ToolSpec]
    specs: dict[str, ToolSpec]
    core: tuple[str, ...]
    rest: _RankedTools
    learned: frozenset[str]
    """Those the learned selection knows, and the rest without them."""
    unlearned: _RankedTools

    def list_others(self, chosen: Container[str]) -> Iterator[ToolSpec]:
        """What can be called though it is not offered."""
        return (tool for name, tool in self.everything.items() if name not in chosen and tool.audience != "named")

    @classmethod
    def build(cls, available: ToolList, local: tuple[ToolSpec, ...], slim: SlimToolSpecs) -> _ToolCatalogue:
        everything = {tool.name: slim.get(tool) for tool in sorted((*available.tools, *local), key=_tool_name)}
        # A tool under its old name too would be sent twice.
        twice = {alias for alias, name in _ALIASES.items() if name in everything}
        specs = {name: tool for name, tool in everything.items() if name not in twice and tool.audience != "named"}
        core = [name for name in CORE if name in specs]
        core += sorted(tool.name for tool in local if tool.name not in core)
        rest = [tool for tool in available.tools if tool.name in specs and tool.name not in core]
        odds = packaged_tool_odds()
        learned = frozenset(specs) & frozenset(odds.names if odds is not None else ())

        def ranked(tools: Iterable[ToolSpec]) -> _RankedTools:
            listed = ToolList(version=available.version, tools=tuple(tools))
            return _RankedTools(listed, KeywordRoutes(listed.tools))

        unlearned = ranked(tool for tool in rest if tool.name not in learned)
        return cls(available, local, everything, specs, tuple(core), ranked(rest), learned, unlearned)


def _tool_name(tool: ToolSpec) -> str:
    return tool.name
