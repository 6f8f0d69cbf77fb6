"""`search_tools` and `get_tool_catalog`: which tools there are, and which one fits a request (RTR-05)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from annabelle.core.errors import RetryByModel
from annabelle.core.home import Home
from annabelle.core.result_text import for_model, make_result
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.embeddings.metering import EmbeddingMeter
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.toolbox.catalogue import OWN_WORDS, READS, NativeTool, native_tool, number_parameter, text_parameter
from annabelle.toolbox.facade import Toolbox

if TYPE_CHECKING:
    from annabelle.toolbox.ranking import ToolRanker


_DESCRIPTION_CHARS: Final = 160


def first_line(description: str) -> str:
    first = description.strip().split("\n", 1)[0]
    return first if len(first) <= _DESCRIPTION_CHARS else first[: _DESCRIPTION_CHARS - 1] + "…"


SEARCH_TOOLS = "search_tools"


class ToolSearch:
    """Ranks the tools an agent may use. The index is built at the first search."""

    def __init__(
        self, toolbox: Toolbox, agents: AgentRegistry, settings: Settings, home: Home, books: EmbeddingMeter
    ) -> None:
        self._toolbox, self._agents, self._settings, self._home = toolbox, agents, settings, home
        self._books = books
        self._ranker: ToolRanker | None = None

    def tool(self) -> NativeTool:
        return native_tool(
            SEARCH_TOOLS,
            "Find tools by what they do, when none of those you have fits. What is found can be called next.",
            {
                "query": text_parameter(2000, "What the tool should do"),
                "limit": number_parameter(1, 20, 8),
            },
            required=("query",),
            annotations=READS,
            scan=OWN_WORDS,
        )(self.search)

    async def search(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Finds only tools that the caller's policy allows."""
        usable = self._toolbox.tools(self._agents.policy_of(context))
        specs = {tool.name: tool for tool in usable.tools if tool.name != SEARCH_TOOLS and tool.audience != "named"}
        ranking = await self._load_ranker().rank(usable, str(arguments["query"]))
        limit = cast("int", arguments.get("limit", 8))
        found: list[JsonObject] = [
            {"name": name, "description": first_line(specs[name].description), "server": specs[name].server}
            for name in [tool.name for tool in ranking.tools if tool.name in specs][:limit]
        ]
        return make_result(lambda: _format_tools(found) or "No tool fits.", {"tools": found})

    def _load_ranker(self) -> ToolRanker:
        if self._ranker is None:
            # Imported at the first search, to keep the hub's start fast.
            ranking = importlib.import_module("annabelle.toolbox.ranking")
            config = EmbeddingConfig.from_settings(self._settings)
            embedder = make_embedder(config, self._home.embedding_cache, self._books)
            self._ranker = cast("ToolRanker", ranking.ToolRanker(embedder))
        return self._ranker


def get_tool_catalog_tool(toolbox: Toolbox, agents: AgentRegistry) -> NativeTool:
    """Lists only tools that the caller's policy allows."""

    @native_tool(
        "get_tool_catalog",
        "List the tools there are, by server.",
        {"mcp_name": {"type": "string", "description": "Only the tools of this server"}},
        annotations=READS,
        scan=OWN_WORDS,
    )
    async def list_tools(arguments: JsonObject, context: CallContext) -> ToolResult:
        by_server: dict[str, list[JsonObject]] = {}
        usable = toolbox.tools(agents.policy_of(context)).tools
        for tool in (one for one in usable if one.audience != "named"):
            entry: JsonObject = {"name": tool.name, "group": tool.group, "description": first_line(tool.description)}
            by_server.setdefault(tool.server, []).append(entry)
        wanted = arguments.get("mcp_name")
        if isinstance(wanted, str):
            if wanted not in by_server:
                raise RetryByModel(f"There is no server {wanted}.", hint=f"There are: {', '.join(sorted(by_server))}.")
            by_server = {wanted: by_server[wanted]}

        def render() -> str:
            blocks = [_format_server(server, tools) for server, tools in sorted(by_server.items())]
            return for_model("\n\n", "\n").join(blocks) or "There are no tools."

        return make_result(render, {"servers": by_server})

    return list_tools


def _format_server(server: str, tools: Sequence[JsonObject]) -> str:
    """A person reads what can be done, in one line."""
    words = [str(tool["name"]).removeprefix(f"{server}_").replace("_", " ") for tool in tools]
    return for_model(
        f"{server}:\n{_format_tools(tools)}", f"{server.replace('_', ' ').capitalize()}: {', '.join(words)}."
    )


def _format_tools(tools: Sequence[JsonObject]) -> str:
    return "\n".join(f"- {for_model(str(tool['name']) + ': ')}{tool['description']}" for tool in tools)
