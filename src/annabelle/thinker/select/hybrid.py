"""The selection of every turn: exactly what is required, or the few tools that fit a message (SEL-01…06, SEL-08…10)."""

from __future__ import annotations

from dataclasses import dataclass

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
        self._sticky, self._temperature = settings.thinker_sticky_tools_max, temperature
        self._ranker = ToolRanker(embedder)
        self._slim = SlimSpecs()
        self._house: _House | None = None

    async def select(self, ask: SelectionAsk) -> Selection:
        house = self._house_of(ask)
        if ask.brief.required_tools is not None:
            return required_only(ask.brief.required_tools, house.everything.values())
        core = house.core
        sticky = [name for name in ask.sticky if name in house.specs and name not in core][: self._sticky]
        forced = [name for name in dict.fromkeys((*ask.playbook_tools, *sticky)) if name in house.specs]
        talk = talk_of(ask.text)
        if talk is not None and not ask.playbook_tools:
            # "Ok" may be the answer to a question, and what was in use is what it is about.
            kept = [*core, *(forced if talk == "assent" else ())]
            choice = Choice(tuple(dict.fromkeys(kept))[: self._limits.max_tools], 0.0)
            return self._selection(choice, house, None, "small-talk")
        ranking = await self._ranker.rank(house.rest, ask.text)
        routed = house.routes.called_for(ask.text)
        choice = choose(Claims(core, forced, ranking, routed), self._limits)
        fell_back = not ranking.tools and not routed.matched
        return self._selection(choice, house, ranking, "default" if fell_back else ranking.method)

    def _selection(self, choice: Choice, house: _House, ranking: Ranking | None, method: str) -> Selection:
        chosen, core = set(choice.names), set(house.core)
        # Sorted by name in both parts: the same tools are the same prefix of the next request.
        ours = [tool for name, tool in house.specs.items() if name in chosen and name in core]
        rest = [tool for name, tool in house.specs.items() if name in chosen and name not in core]
        top = ranking.top_score if ranking is not None else 0.0
        best = () if ranking is None else tuple((tool.name, tool.score) for tool in ranking.tools[:_TOP])
        return Selection(
            tools=(*ours, *rest),
            report=SelectionReport(method, len(chosen), len(house.specs), top, choice.cutoff, best),
            temperature=min(self._temperature, _CALM) if top > _SURE else None,
            small_talk=method == "small-talk",
            limit=self._limits.max_tools,
            others=tuple(tool for name, tool in house.everything.items() if name not in chosen),
            wanted=choice.names,
        )

    def _house_of(self, ask: SelectionAsk) -> _House:
        """What does not depend on the message, made once per list of tools."""
        house = self._house
        if house is None or house.available is not ask.available or house.local != ask.local:
            house = self._house = _House.of(ask.available, ask.local, self._slim)
        return house


@dataclass(frozen=True, slots=True)
class _House:
    """A list of tools as the selection needs it: slim, sorted by name, with the core apart from the rest."""

    available: ToolList
    local: tuple[ToolSpec, ...]
    everything: dict[str, ToolSpec]
    specs: dict[str, ToolSpec]
    core: tuple[str, ...]
    rest: ToolList
    routes: Routes

    @classmethod
    def of(cls, available: ToolList, local: tuple[ToolSpec, ...], slim: SlimSpecs) -> _House:
        everything = {tool.name: slim.of(tool) for tool in sorted((*available.tools, *local), key=_name)}
        # A tool under its old name too would be sent twice.
        twice = {alias for alias, name in _ALIASES.items() if name in everything}
        specs = {name: tool for name, tool in everything.items() if name not in twice}
        core = [name for name in CORE if name in specs]
        core += sorted(tool.name for tool in local if tool.name not in core)
        others = tuple(tool for tool in available.tools if tool.name in specs and tool.name not in core)
        rest = ToolList(version=available.version, tools=others)
        return cls(available, local, everything, specs, tuple(core), rest, Routes(others))


def _name(tool: ToolSpec) -> str:
    return tool.name
