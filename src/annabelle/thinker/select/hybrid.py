"""The selection of every turn: exactly what is required, or the few tools that fit a message (SEL-01…06, SEL-08…10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from annabelle.core.contract import ToolList
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.embeddings.embedder import Embedder
from annabelle.thinker.select.choosing import Choice, Claims, Limits, choose
from annabelle.thinker.select.routes import Routes
from annabelle.thinker.select.schemas import SlimSpecs
from annabelle.thinker.select.selector import Selection, SelectionAsk, SelectionReport, required_only
from annabelle.thinker.select.small_talk import talk_of
from annabelle.toolbox.ranking import Ranking, ToolRanker

CORE = ("send_message", "store_fact", "search_memories", "get_status", "spawn_subagent", "search_tools")
"""Always offered, as far as they exist; the last one finds what is not."""
_ALIASES = {"send_telegram": "send_message"}
_TOP = 5
_SURE, _CALM = 0.6, 0.3


class HybridSelector:
    """Ranks by words and by meaning, adds what words, playbooks and the last turns call for, and cuts at the cap."""

    def __init__(self, settings: Settings, embedder: Embedder, temperature: float) -> None:
        self._limits = Limits(
            threshold=settings.tool_selector_threshold,
            top_k=settings.tool_selector_top_k,
            min_tools=settings.tool_selector_min_tools,
            max_tools=settings.tool_selector_max_tools,
        )
        self._temperature = temperature
        self._ranker = ToolRanker(embedder)
        self._slim = SlimSpecs()
        self._routes: tuple[str, int, Routes] | None = None

    async def select(self, ask: SelectionAsk) -> Selection:
        specs = {tool.name: self._slim.of(tool) for tool in (*ask.available.tools, *ask.local)}
        if ask.brief.required_tools is not None:
            return required_only(ask.brief.required_tools, _by_name(specs.values()))
        for alias, name in _ALIASES.items():
            if name in specs:
                specs.pop(alias, None)
        core = [name for name in CORE if name in specs]
        core += sorted(tool.name for tool in ask.local if tool.name not in core)
        forced = [name for name in dict.fromkeys((*ask.playbook_tools, *ask.sticky)) if name in specs]
        talk = talk_of(ask.text)
        if talk is not None and not ask.playbook_tools:
            # "Ok" may be the answer to a question, and what was in use is what it is about.
            kept = [*core, *(forced if talk == "assent" else ())]
            choice = Choice(tuple(dict.fromkeys(kept))[: self._limits.max_tools], 0.0)
            return self._selection(choice, core, specs, None, "small-talk")
        rest = _only(ask.available, specs.keys() - set(core))
        ranking = await self._ranker.rank(rest, ask.text)
        routed = self._routes_of(rest).called_for(ask.text)
        choice = choose(Claims(core, forced, ranking, routed), self._limits)
        fell_back = not ranking.tools and not routed.matched
        return self._selection(choice, core, specs, ranking, "default" if fell_back else ranking.method)

    async def close(self) -> None:
        await self._ranker.close()

    def _selection(
        self,
        choice: Choice,
        core: Sequence[str],
        specs: dict[str, ToolSpec],
        ranking: Ranking | None,
        method: str,
    ) -> Selection:
        chosen, first = set(choice.names), set(core)
        ours = _by_name(specs[name] for name in chosen & first)
        rest = _by_name(specs[name] for name in chosen - first)
        top = ranking.top_score if ranking is not None else 0.0
        best = () if ranking is None else tuple((tool.name, tool.score) for tool in ranking.tools[:_TOP])
        report = SelectionReport(method, len(chosen), len(specs), top, choice.cutoff, best)
        return Selection(
            tools=(*ours, *rest),
            report=report,
            temperature=min(self._temperature, _CALM) if top > _SURE else None,
            small_talk=method == "small-talk",
            limit=self._limits.max_tools,
            others=tuple(_by_name(tool for name, tool in specs.items() if name not in chosen)),
            wanted=choice.names,
        )

    def _routes_of(self, tools: ToolList) -> Routes:
        if self._routes is None or self._routes[:2] != (tools.version, len(tools.tools)):
            self._routes = tools.version, len(tools.tools), Routes(tools.tools)
        return self._routes[2]


def _by_name(tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Sorted, so that the same tools are the same prefix of the next request."""
    return sorted(tools, key=lambda tool: tool.name)


def _only(tools: ToolList, names: set[str]) -> ToolList:
    """The list less what is offered anyway; without that it is the same list for every message."""
    return ToolList(version=tools.version, tools=tuple(tool for tool in tools.tools if tool.name in names))
