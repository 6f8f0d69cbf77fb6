"""agents.json as it is written: agents, and which chat is bound to which of them (AGT-01)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from annabelle.core.contract import AgentProfile, ThinkingSettings, ThinkingStrategy, TurnLimits
from annabelle.core.scans import ScanChange
from annabelle.core.settings import Settings

ProviderName = Literal[
    "groq", "anthropic", "openai", "openrouter", "ollama", "lmstudio", "compatible", "embedded"
]  # fmt: skip
AGENT_ID = r"^[a-z0-9][a-z0-9_-]{0,39}$"
ANY_CHAT = "*"
STRICT_TOOL_CALLS = 5
ServerPattern = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,39})$")]
_NO_LIMIT = 10**15  # tokens; a larger number can not be reckoned with any more


class Entry(BaseModel):
    """Strict: a misspelled field is a mistake worth a sentence, not something to pass over."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class CostControls(Entry):
    """When the cost monitor pauses the agent (CST-02, CST-03)."""

    enabled: bool = True
    short_window_minutes: int = Field(default=2, ge=1, le=30)
    spike_multiplier: float = Field(default=3, ge=1.5, le=10)
    hard_cap_tokens_per_hour: int = Field(default=250_000, ge=10_000, le=_NO_LIMIT)
    minimum_baseline_tokens: int = Field(default=1000, ge=100, le=_NO_LIMIT)
    minimum_baseline_rate: int = Field(default=10_000, ge=0, le=_NO_LIMIT)
    notify_channel: str | None = None
    notify_chat_id: str | None = None


class Thinking(Entry):
    """What the agent does about a long history (CMP-09)."""

    enable_thinking_phase: bool = True
    thinking_strategy: ThinkingStrategy = "adaptive"
    compression_threshold: int = Field(
        default=12_000, ge=500, description="Tokens of history above which it is compressed"
    )
    thinking_model: str = Field(
        default="", description="A model that sums up what is left out; empty: that of LLM_THINKING_MODEL, if any"
    )
    note_in_history: bool = Field(
        default=False, description="Tell the model in one line of the history whenever it was shortened"
    )
    workspace: bool = Field(default=False, description="Give conversations a workspace too; tasks always have one")

    def as_settings(self, settings: Settings) -> ThinkingSettings:
        return ThinkingSettings(
            enabled=self.enable_thinking_phase,
            strategy=self.thinking_strategy,
            threshold_tokens=self.compression_threshold,
            model=self.thinking_model or settings.llm_thinking_model,
            note_in_history=self.note_in_history,
            workspace=self.workspace,
        )


class GuardianChanges(Entry):
    """What the guardian does otherwise for this agent and its subagents (GRD-03, GRD-11)."""

    fail_mode: Literal["closed", "open"] | None = Field(default=None, description="As GUARDIAN_FAIL_MODE")
    messages: bool | None = Field(default=None, description="As GUARDIAN_SCAN_MESSAGES, for messages to it")
    scan: dict[ServerPattern, ScanChange] = Field(
        default_factory=dict, description="By server, `*` for every one not named: which directions are scanned"
    )


class Agent(Entry):
    """One agent. What is left out comes from the settings."""

    agent_id: str = Field(pattern=AGENT_ID)
    enabled: bool = True
    port: int = Field(default=0, ge=0, le=65535)
    llm_provider: ProviderName | None = None
    model: str | None = Field(default=None, max_length=200)
    temperature: float | None = Field(default=None, ge=0, le=2)
    system_prompt: str = ""
    allowed_tools: tuple[str, ...] | None = Field(
        default=None, description="Globs; absent allows all, an empty list nothing"
    )
    denied_tools: tuple[str, ...] = ()
    max_steps: int = Field(default=8, ge=1, le=50)
    max_tool_calls: int | None = Field(default=None, ge=1, le=500, description="Per turn; by default bounded by steps")
    profile: Literal["standard", "strict"] = Field(default="standard", description="strict: five tool calls per turn")
    idle_timeout_minutes: float = Field(default=30, gt=0)
    cost_controls: CostControls = CostControls()
    guardian: GuardianChanges = Field(default=GuardianChanges(), description="Overrides for the guardian's scans")
    thinking: Thinking = Field(default=Thinking(), description="Settings of the thinking phase")

    def as_profile(self, settings: Settings) -> AgentProfile:
        """What the agent's thinker is told about itself."""
        return AgentProfile(
            agent_id=self.agent_id,
            provider=self.llm_provider or settings.thinker_llm_provider or None,
            model=self.model or None,
            temperature=settings.thinker_temperature if self.temperature is None else self.temperature,
            system_prompt=self.system_prompt,
            limits=TurnLimits(max_steps=self.max_steps, max_tool_calls=self._tool_calls),
            thinking=self.thinking.as_settings(settings),
        )

    @property
    def _tool_calls(self) -> int | None:
        return self.max_tool_calls or (STRICT_TOOL_CALLS if self.profile == "strict" else None)


class Binding(Entry):
    """The agent that answers in one chat of a channel, or with `*` in all of them."""

    channel: str = Field(min_length=1, max_length=200)
    chat_id: str = Field(min_length=1, max_length=200)
    agent_id: str


class AgentsConfig(Entry):
    """The whole file. The first enabled agent is the default one."""

    agents: tuple[Agent, ...] = Field(min_length=1)
    bindings: tuple[Binding, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [agent.agent_id for agent in self.agents]
        for agent_id in ids:
            if ids.count(agent_id) > 1:
                raise ValueError(f"agents: {agent_id} is named twice")
        if not any(agent.enabled for agent in self.agents):
            raise ValueError("agents: at least one must be enabled")
        for number, binding in enumerate(self.bindings):
            if binding.agent_id not in ids:
                raise ValueError(f"bindings.{number}.agentId: there is no agent {binding.agent_id}")
        return self

    def agent(self, agent_id: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.agent_id == agent_id), None)

    @property
    def default(self) -> Agent:
        return next(agent for agent in self.agents if agent.enabled)

    def bound(self, channel: str, chat_id: str) -> Agent:
        """The agent for a chat: an exact binding, else the channel's wildcard, else the default agent."""
        for wanted in (chat_id, ANY_CHAT):
            for binding in self.bindings:
                if binding.channel == channel and binding.chat_id == wanted:
                    agent = self.agent(binding.agent_id)
                    if agent is not None and agent.enabled:
                        return agent
        return self.default


def default_config(settings: Settings) -> AgentsConfig:
    """One agent from the settings, for an install without agents.json."""
    return AgentsConfig(agents=(Agent(agent_id=settings.thinker_agent_id, port=settings.thinker_port),))
