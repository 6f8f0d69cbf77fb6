"""The current configuration of the agents: which there are, what each may call and spend."""

from __future__ import annotations

from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.hub.agents.config import Agent, AgentsConfig, AgentsFile, CostControls
from annabelle.toolbox.catalogue import AgentPolicy


class AgentRegistry:
    """Reads agents.json when created, and again with `reload_if_changed`."""

    def __init__(self, file: AgentsFile) -> None:
        self._file = file
        self.config: AgentsConfig = file.load()

    @property
    def home(self) -> Home:
        return self._file.home

    def reload_if_changed(self) -> bool:
        """Load a changed file. Returns whether the config differs. An invalid file only adds a notice."""
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
        """What the agent may call now. A removed or disabled agent may call nothing."""
        agent = self.find(agent_id)
        if agent is None or not agent.enabled:
            return AgentPolicy(allowed=())
        return AgentPolicy(allowed=agent.allowed_tools, denied=agent.denied_tools)

    def policy_of(self, context: CallContext) -> AgentPolicy | None:
        """The policy of the calling agent, None for a person or the hub."""
        return self.policy(context.agent_id or "") if context.caller == "agent" else None

    def cost_controls(self, agent_id: str) -> CostControls:
        """Spending limits of an agent, the defaults if it is not configured."""
        agent = self.find(agent_id)
        return CostControls() if agent is None else agent.cost_controls
