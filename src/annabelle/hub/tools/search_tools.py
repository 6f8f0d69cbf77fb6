"""`search_tools`: find a tool that was not offered, by what it should do (RTR-05)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.embeddings.books import Books
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.tools.first_line import first_line
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import OWN_WORDS, NativeTool

if TYPE_CHECKING:
    from annabelle.toolbox.ranking import ToolRanker

NAME = "search_tools"
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What the tool should do"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 8},
    },
    "required": ["query"],
    "additionalProperties": False,
}


class ToolSearch:
    """Ranks what an agent may use. The index is made at the first search: most homes never need it in the hub."""

    def __init__(self, toolbox: Toolbox, agents: AgentManager, settings: Settings, home: Home, books: Books) -> None:
        self._toolbox, self._agents, self._settings, self._home = toolbox, agents, settings, home
        self._books = books
        self._ranker: ToolRanker | None = None

    def tool(self) -> NativeTool:
        annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
        return NativeTool(
            NAME,
            "Find tools by what they do, when none of those you have fits. What is found can be called next.",
            _SCHEMA,
            self.search,
            annotations,
            scan=OWN_WORDS,
        )

    async def search(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """The listing is the caller's own: what its policy forbids is not found."""
        usable = self._toolbox.tools(self._agents.policy_of(context))
        specs = {tool.name: tool for tool in usable.tools if tool.name != NAME}
        ranking = await self._ranked_by().rank(usable, str(arguments["query"]))
        limit = cast("int", arguments.get("limit", 8))
        found: list[JsonObject] = [
            {"name": name, "description": first_line(specs[name].description), "server": specs[name].server}
            for name in [tool.name for tool in ranking.tools if tool.name in specs][:limit]
        ]
        lines = [f"- {tool['name']}: {tool['description']}" for tool in found]
        return ToolResult(text="\n".join(lines) or "No tool fits.", structured={"tools": found}, trust="trusted")

    def _ranked_by(self) -> ToolRanker:
        if self._ranker is None:
            # Numbers and vocabulary are not loaded before somebody searches: the hub starts without them.
            ranking = importlib.import_module("annabelle.toolbox.ranking")
            config = EmbeddingConfig.from_settings(self._settings)
            embedder = make_embedder(config, self._home.embedding_cache, self._books)
            self._ranker = cast("ToolRanker", ranking.ToolRanker(embedder))
        return self._ranker
