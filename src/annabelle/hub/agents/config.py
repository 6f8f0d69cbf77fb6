"""agents.json: its schema, and the file that keeps the last good version in force (AGT-01, I-18)."""

from __future__ import annotations

import logging
import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from annabelle.core.config_file import ConfigEntry, ConfigFile, parse_config
from annabelle.core.contract import AgentProfile, ThinkingSettings, ThinkingStrategy, TurnLimits
from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home, write_atomically
from annabelle.core.settings import Settings
from annabelle.core.trust import ScanDirectionsChange
from annabelle.hub.notices import Notices

ProviderName = Literal[
    "groq", "anthropic", "openai", "openrouter", "ollama", "lmstudio", "compatible", "embedded"
]  # fmt: skip
AGENT_ID = r"^[a-z0-9][a-z0-9_-]{0,39}$"
ANY_CHAT = "*"
STRICT_TOOL_CALLS = 5
ServerPattern = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,39})$")]
_NO_LIMIT = 10**15  # tokens; upper bound of the token settings


class CostControls(ConfigEntry):
    """When the cost monitor pauses the agent (CST-02, CST-03)."""

    enabled: bool = True
    short_window_minutes: int = Field(default=2, ge=1, le=30)
    spike_multiplier: float = Field(default=3, ge=1.5, le=10)
    hard_cap_tokens_per_hour: int = Field(default=250_000, ge=10_000, le=_NO_LIMIT)
    minimum_baseline_tokens: int = Field(default=1000, ge=100, le=_NO_LIMIT)
    minimum_baseline_rate: int = Field(default=10_000, ge=0, le=_NO_LIMIT)
    notify_channel: str | None = None
    notify_chat_id: str | None = None


class AgentThinking(ConfigEntry):
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
    tool_hints: bool = Field(
        default=True, description="Offer calls that worked for a request like this one as a hint (CMP-11)"
    )

    def as_settings(self, settings: Settings) -> ThinkingSettings:
        return ThinkingSettings(
            enabled=self.enable_thinking_phase,
            strategy=self.thinking_strategy,
            threshold_tokens=self.compression_threshold,
            model=self.thinking_model or settings.llm_thinking_model,
            note_in_history=self.note_in_history,
            workspace=self.workspace,
            tool_hints=self.tool_hints,
        )


class GuardianChanges(ConfigEntry):
    """What the guardian does otherwise for this agent and its subagents (GRD-03, GRD-11)."""

    fail_mode: Literal["closed", "open"] | None = Field(default=None, description="As GUARDIAN_FAIL_MODE")
    messages: bool | None = Field(default=None, description="As GUARDIAN_SCAN_MESSAGES, for messages to it")
    scan: dict[ServerPattern, ScanDirectionsChange] = Field(
        default_factory=dict, description="By server, `*` for every one not named: which directions are scanned"
    )


class Agent(ConfigEntry):
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
    thinking: AgentThinking = Field(default=AgentThinking(), description="Settings of the thinking phase")

    def as_profile(self, settings: Settings) -> AgentProfile:
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


class Binding(ConfigEntry):
    """The agent that answers in one chat of a channel, or with `*` in all of them."""

    channel: str = Field(min_length=1, max_length=200)
    chat_id: str = Field(min_length=1, max_length=200)
    agent_id: str


class AgentsConfig(ConfigEntry):
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

    def agent_for_chat(self, channel: str, chat_id: str) -> Agent:
        """Agent for a chat: by exact binding, else by the channel's wildcard, else the default agent."""
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


_log = logging.getLogger(__name__)
_TOPIC = "agents_config"


class AgentsFile:
    """agents.json of one home, read at start and whenever it changes."""

    def __init__(self, home: Home, settings: Settings, notices: Notices) -> None:
        self.home = home
        self._file = ConfigFile(settings.agents_config_path or home.agents_file)
        self._good_path, self._settings, self._notices = home.good_agents_file, settings, notices

    def load(self) -> AgentsConfig:
        """The file, else its last good copy with a notice, else one default agent."""
        self._file.has_changed()
        try:
            return self._read()
        except ConfigMistake as mistake:
            good = self._last_good()
            if good is None:
                raise
            self._report(mistake)
            return good

    def load_if_changed(self) -> AgentsConfig | None:
        """The new config if the file changed and is valid. An invalid file only adds a notice."""
        if not self._file.has_changed():
            return None
        try:
            config = self._read()
        except ConfigMistake as mistake:
            self._report(mistake)
            return None
        self._notices.clear(_TOPIC)
        return config

    def _report(self, mistake: ConfigMistake) -> None:
        self._notices.add(_TOPIC, f"{mistake.message} The last good one stays in force.", level="error")

    def _read(self) -> AgentsConfig:
        text = self._file.read_text()
        if text is None:
            return self._default()
        config = parse_config(AgentsConfig, text, str(self._file.path))
        self._keep(text)
        return config

    def _keep(self, text: str) -> None:
        try:
            if not self._good_path.exists() or self._good_path.read_text(encoding="utf-8", errors="replace") != text:
                write_atomically(self._good_path, text)
        except OSError as error:
            _log.warning("No copy of %s could be kept: %s", self._file.path, error.strerror)

    def _default(self) -> AgentsConfig:
        if not re.match(AGENT_ID, self._settings.thinker_agent_id):
            raise ConfigMistake(
                "THINKER_AGENT_ID is not valid: use up to 40 lower case letters, digits, - and _.",
                field="THINKER_AGENT_ID",
            )
        return default_config(self._settings)

    def _last_good(self) -> AgentsConfig | None:
        try:
            return parse_config(AgentsConfig, self._good_path.read_text(encoding="utf-8"), str(self._good_path))
        except (OSError, UnicodeDecodeError):
            return None
        except ConfigMistake as mistake:
            _log.warning("The last good copy is not usable either: %s", mistake.message)
            return None
