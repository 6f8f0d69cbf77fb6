"""Checks of what has to run: servers, agents, the durable engine; and of what stands still on purpose."""

from __future__ import annotations

import asyncio
from typing import Final

from annabelle.core.errors import AnnabelleError
from annabelle.hub.agents.manager import AgentStatus
from annabelle.hub.costs.monitor import account_agent
from annabelle.hub.diagnosis.check import Check, DiagnosisContext, Problem
from annabelle.store import cost_control
from annabelle.toolbox.status import ServerState

MOST_RESTARTS: Final = 3
ENGINE_SECONDS: Final = 3.0
_UNAVAILABLE: Final[dict[ServerState, str]] = {"down": "was given up", "restarting": "ended and is being restarted"}
_HELD: Final[dict[ServerState, str]] = {
    "waiting": "waits for your yes",
    "quarantined": "has changed since you accepted it, and is held back",
    "disabled": "is switched off, because something in its entry is missing",
}


async def check_servers(context: DiagnosisContext) -> list[Problem]:
    found: list[Problem] = []
    for server in context.running.servers:
        name = server.name
        if server.state in _UNAVAILABLE:
            text = f"The server {name} {_UNAVAILABLE[server.state]}."
            found.append(Problem("critical", text, f"/logs {name} says why.", name))
        elif server.state in _HELD:
            action = f"At the terminal: annabelle servers show {name}"
            found.append(Problem("warning", f"The server {name} {_HELD[server.state]}.", action, name))
    return found


async def check_agents(context: DiagnosisContext) -> list[Problem]:
    return [problem for agent in context.running.agents if (problem := _judge_agent(agent)) is not None]


def _judge_agent(agent: AgentStatus) -> Problem | None:
    """An agent without a process starts with its next message, so it is healthy."""
    name = agent.agent_id
    if agent.paused:
        reason = agent.pause_reason or "no reason was given"
        return Problem("critical", f"The agent {name} is paused: {reason}.", _resume_costs(name), name)
    if agent.flapping:
        return Problem("critical", f"The agent {name} keeps dying.", f"/logs {name} says why.", name)
    if agent.restart_count > MOST_RESTARTS:
        text = f"The agent {name} had to be restarted {agent.restart_count} times."
        return Problem("warning", text, f"/logs {name} says why.", name)
    return None


async def check_engine(context: DiagnosisContext) -> list[Problem]:
    try:
        async with asyncio.timeout(ENGINE_SECONDS):
            await context.running.probe_engine()
    except (TimeoutError, AnnabelleError):
        text = "The durable engine does not answer: messages are stored, but nothing goes on."
        return [Problem("critical", text, "Restart Annabelle; nothing is lost. /logs hub says why.")]
    return []


async def check_costs(context: DiagnosisContext) -> list[Problem]:
    states = await context.query(cost_control.list_agent_states, {})
    found: list[Problem] = []
    for account, state in states.items():
        if state.paused and "token" in (state.reason or "").lower():
            agent = account_agent(account)
            what = f"The agent {agent}" if account == agent else f"Background work of {agent}"
            text = f"{what} is paused for its costs: {state.reason}."
            found.append(Problem("critical", text, _resume_costs(agent), account))
    return found


def _resume_costs(agent: str) -> str:
    return f"Let it go on at the terminal: annabelle costs resume {agent}"


async def check_halts(context: DiagnosisContext) -> list[Problem]:
    halts = context.halts
    if halts.everything is not None:
        why = ", because the file that says what is stopped is damaged" if halts.damaged else ""
        return [Problem("warning", f"Everything is stopped{why}.", "Let it go on with /resume", "all")]
    return [
        Problem("warning", f"{name} is stopped.", f"Let it go on with /resume {name}", name) for name in halts.stopped
    ]


CHECKS: Final = (
    Check(
        "mcp-health",
        "services",
        ("critical", "warning"),
        "a server is not available (warning: it is held back until you decide)",
        check_servers,
        needs_hub=True,
    ),
    Check(
        "agent-health",
        "services",
        ("critical", "warning"),
        f"an agent is paused or keeps dying (warning: more than {MOST_RESTARTS} restarts);"
        " one that waits for its next message is healthy",
        check_agents,
        needs_hub=True,
    ),
    Check(
        "engine-health",
        "services",
        ("critical",),
        f"the durable engine does not answer within {ENGINE_SECONDS:g} s",
        check_engine,
        needs_hub=True,
    ),
    Check(
        "cost-status",
        "services",
        ("critical",),
        "an agent, or its work in the background, is paused for the tokens it used",
        check_costs,
    ),
    Check("halt-manager", "services", ("warning",), "something is stopped by its owner", check_halts),
)
