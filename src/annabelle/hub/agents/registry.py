"""The agents' configuration in force: which agents there are, what each may call and spend. No processes."""

from __future__ import annotations

from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.hub.agents.config import Agent, AgentsConfig, AgentsFile, CostControls
from annabelle.toolbox.catalogue import AgentPolicy


class AgentRegistry:
    """Reads agents.json when it is made, and again with `reload_if_changed`."""

    def __init__(self, file: AgentsFile) -> None:
        self._file = file
        self.config: AgentsConfig = file.load()

    @property
    def home(self) -> Home:
        return self._file.home

    def reload_if_changed(self) -> bool:
        """Put a changed file in force; whether it says something new. A bad one only gives a notice."""
        config = self._file.load_if_changed()
        if config is None or config == self.config:
            return False
        self.config = config
        return True

    def find(self, agent_id: str) -> Agent | None:
        return self.config.agent(agent_id)

    def agent(self, agent_id: str) -> Agent:
        agent = self.find(agent_id)
        if agent is None:
            known = ", ".join(sorted(one.agent_id for one in self.config.agents))
            raise NotFound(f"There is no agent {agent_id}.", hint=f"There are: {known}.")
        return agent

    def policy(self, agent_id: str) -> AgentPolicy:
        """What the agent may call, by the config in force now. One that is gone may call nothing."""
        agent = self.find(agent_id)
        if agent is None or not agent.enabled:
            return AgentPolicy(allowed=())
        return AgentPolicy(allowed=agent.allowed_tools, denied=agent.denied_tools)

    def policy_of(self, context: CallContext) -> AgentPolicy | None:
        """The policy a call comes with: that of the agent that makes it, none for a person or the hub."""
        return self.policy(context.agent_id or "") if context.caller == "agent" else None

    def cost_controls(self, agent_id: str) -> CostControls:
        """What bounds an agent's spending; one that is gone from the config has the usual bounds."""
        agent = self.find(agent_id)
        return CostControls() if agent is None else agent.cost_controls
