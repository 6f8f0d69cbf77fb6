"""Which model answers an agent's messages, as the hub and its traces say."""

from __future__ import annotations

from typing import cast

from annabelle.cli.hub_client import CliHubClient
from annabelle.core.contract import AgentProfile
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import read_trace
from annabelle.core.trace_export import parse_spans
from annabelle.llm.providers import PROVIDERS


def find_profile(status: JsonObject, agent_id: str | None, settings: Settings) -> AgentProfile | None:
    """The hub's profile of the given agent, or of the first enabled one."""
    agents = cast("list[JsonObject]", status.get("agents") or [])
    for agent in agents:
        if agent.get("agentId") == agent_id if agent_id is not None else agent.get("enabled"):
            provider, model = agent.get("llmProvider"), agent.get("model")
            # A model that all agents share is better explained by its setting.
            own = provider if provider != settings.thinker_llm_provider else None
            return AgentProfile(
                agent_id=str(agent["agentId"]),
                provider=cast("str | None", own),
                model=cast("str | None", model),
            )
    return None


async def find_answering_model(home: Home, client: CliHubClient, message_id: str) -> str | None:
    """The model that answered a message, according to its trace."""
    replies = cast("list[JsonObject]", (await client.get(f"/messages/{message_id}")).get("replies") or [])
    trace_id = next((str(reply["traceId"]) for reply in replies if reply.get("traceId")), None)
    spans = parse_spans(read_trace(home.traces_file, trace_id)) if trace_id is not None else []
    for span in reversed(spans):
        if span.event == "model.called":
            provider = PROVIDERS.get(str(span.data.get("provider")))  # pyright: ignore[reportArgumentType]
            return f"{span.data.get('model')} at {provider.label if provider is not None else 'its provider'} answered."
    return None
