"""The HTTP contract between hub and thinker. Every request is idempotent by the id it carries.

hub → thinker   POST /process-message (TurnBrief) → 202 TurnAccepted, or with ?wait=S → 200 TurnState
                POST /process-task (TurnBrief)      the same for proactive work
                GET  /turns/{message_id}            → TurnState           (?wait=S blocks up to S seconds)
                GET  /turns/{message_id}/events     → NDJSON of StreamedEvent until the turn is over (?after=N&stream=S)
                POST /turns/{message_id}/cancel     → TurnState
                POST /extract-facts (ExtractBrief) → ExtractResult        facts in a conversation; stores nothing
                POST /tidy-facts (TidyBrief)        → TidyFactsResult      proposed merges; changes nothing
                POST /read-order (OrderBrief)       → OrderVerdict         whether a person's words order an act
                POST /summarise (SummaryBrief)      → SummaryResult        what a text says, in a few sentences
                POST /read-history (HistoryRequest) → SessionHistories    archived sessions of a thread, or one whole
                GET  /health · GET /cost-status · POST /cost-resume · POST /clear-session (ClearSession)
thinker → hub   GET  /tools/list                    → ToolList
                POST /tools/call (ToolCall)         → ToolResult
                POST /internal/ledger/reserve (Reserve) → Reservation
                POST /internal/ledger/settle (ModelCall) → 204
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from annabelle.core.errors import ErrorBody
from annabelle.core.messages import OWNER, TurnEvent, now
from annabelle.core.models import FrozenModel
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trust import FactCategory, Trust

TOKEN_HEADER = "X-Annabelle-Token"  # noqa: S105  the header's name, not a token
TRACE_HEADER = "X-Trace-Id"
USER_HEADER = "X-Annabelle-User"
CLIENT_HEADER = "X-Annabelle-Client"
TERMINAL = "cli"
TERMINAL_CHAT = "terminal"
"""The usual chat there. `cli/options.py` names it, too, because it must load fast."""
TOOLS_VERSION_HEADER = "X-Tools-Version"


class TurnLimits(FrozenModel):
    """What bounds one turn (LOOP-02, LOOP-10). Reaching one returns what was gathered, with a clear sentence."""

    max_steps: int = Field(default=8, ge=1, le=50)
    max_tool_calls: int | None = Field(default=None, ge=1, le=500)
    wall_clock_seconds: float = Field(default=600, gt=0)
    same_tool_in_a_row: int = Field(default=5, ge=2)
    same_tool_with_news: int = Field(default=10, ge=2)
    consecutive_mistakes: int = Field(default=3, ge=1)
    history_messages: int = Field(default=20, ge=0)


ThinkingStrategy = Literal["adaptive", "sliding-window", "semantic", "token-budget"]


class ThinkingSettings(FrozenModel):
    """What an agent does about a long history before it asks the model (CMP-09)."""

    enabled: bool = True
    strategy: ThinkingStrategy = "adaptive"
    threshold_tokens: int = Field(default=12_000, ge=500)
    model: str = Field(default="", description="Empty: rules alone, which cost no call")
    note_in_history: bool = False
    workspace: bool = Field(default=False, description="Whether conversations have a workspace too; tasks always do")
    tool_hints: bool = Field(default=True, description="Whether calls that worked before are offered as a hint")


class AgentProfile(FrozenModel):
    """How one agent thinks: fixed for the life of its thinker process."""

    agent_id: str
    provider: str | None = None
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    system_prompt: str = ""
    limits: TurnLimits = TurnLimits()
    thinking: ThinkingSettings = ThinkingSettings()
    temporary: bool = Field(default=False, description="All it keeps is in its folder, and goes with it (AGT-04)")


class ParkedCall(FrozenModel):
    """A call that was not made yet. With an `approval_id` it waits for the person, without one behind such a call."""

    model_id: str
    name: str
    arguments: JsonObject
    approval_id: str | None = None


class ParkedTurn(FrozenModel):
    """All a turn needs to go on after the person has answered; no process waits meanwhile (POL-03).

    `messages` are the turn's own, from its first response to the one whose calls wait; `answered` are the results of
    those of its calls that were made. The rest are counters, so that limits count on.
    """

    text: str
    messages: tuple[JsonObject, ...] = ()
    answered: JsonObject | None = None
    pending: tuple[ParkedCall, ...] = Field(min_length=1)
    progress: JsonObject = Field(default_factory=dict)


class AnsweredApproval(FrozenModel):
    """What the person said to one question."""

    approval_id: str
    verdict: Literal["approved", "denied", "expired"]
    arguments: JsonObject | None = Field(default=None, description="The arguments as the person changed them")
    note: str = ""


class Resumption(FrozenModel):
    """A parked turn and the answers it waited for."""

    message_id: str = Field(description="The message whose turn was parked first")
    parked: ParkedTurn
    answers: tuple[AnsweredApproval, ...]


class BriefSection(FrozenModel):
    """What an agent works with, such as its notes: data, shown piece by piece as far as there is room."""

    name: str
    pieces: tuple[str, ...]
    max_tokens: int = Field(default=500, ge=1)
    trust: Trust = "trusted"


class TurnBrief(FrozenModel):
    """Everything a thinker needs to answer one message. It never learns which kind of agent asked (ROADMAP)."""

    message_id: str
    thread_id: str
    trace_id: str
    user_id: str = OWNER
    channel: str
    chat_id: str
    sender_id: str
    text: str
    sent_at: datetime = Field(default_factory=now)
    instructions: str = Field(default="", description="What this agent is there for, after the persona")
    sections: tuple[BriefSection, ...] = ()
    conversational: bool = Field(default=True, description="Stops after send_message (LOOP-06)")
    may_be_silent: bool = Field(default=False, description="An empty answer means that there is nothing to tell")
    unasked: tuple[str, ...] = Field(
        default=(), description="What was said in this chat lately without being an answer, oldest first"
    )
    required_tools: tuple[str, ...] | None = Field(
        default=None, description="Exactly these tools, nothing else (SEL-01)"
    )
    limits: TurnLimits | None = Field(default=None, description="Overrides the agent's own")
    token_budget: int | None = Field(default=None, ge=1, description="Tokens all model calls of the turn may use")
    tools_version: str | None = Field(default=None, description="The hub's list as it is now; another one is outdated")
    archive_as: Literal["feed_complete"] | None = Field(default=None, description="Archived so after the turn")
    resume: Resumption | None = Field(default=None, description="Go on with this parked turn instead of a new one")

    @property
    def has_own_task(self) -> bool:
        """Whether instructions are to be followed, as those of a goal or a skill, beyond what a person says."""
        return bool(self.instructions) or not self.conversational


class TurnAccepted(FrozenModel):
    message_id: str
    state: Literal["running", "done", "failed"]


class TokenUsage(FrozenModel):
    """Tokens of one or several model calls, and what they cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: TokenUsage) -> TokenUsage:
        costs = [c for c in (self.cost_usd, other.cost_usd) if c is not None]
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(costs) if costs else None,
        )


class TurnResult(FrozenModel):
    """How a turn ended. `sent_by_tool` means the answer already went out through send_message (RTR-07)."""

    message_id: str
    success: bool
    text: str = ""
    tools_used: tuple[str, ...] = ()
    steps: int = 0
    usage: TokenUsage = TokenUsage()
    sent_by_tool: bool = False
    limit: str | None = Field(default=None, description="The limit that ended the turn, if one did")
    error: ErrorBody | None = None
    unknown_outcomes: tuple[str, ...] = Field(default=(), description="Call ids whose effect is not known (DUR-03)")
    parked: ParkedTurn | None = Field(default=None, description="The turn waits for the person; `text` asks them")


class TurnState(FrozenModel):
    message_id: str
    state: Literal["running", "done", "failed"]
    result: TurnResult | None = None


class StreamedEvent(FrozenModel):
    """One line of the thinker's event stream. A reader that comes back with another `stream` starts at zero."""

    stream: str
    n: int
    event: TurnEvent


class PastTurn(FrozenModel):
    """One remembered exchange, as it is read for facts."""

    conversation_id: int
    message_id: str | None = None
    at: datetime
    user: str
    assistant: str
    tools: tuple[str, ...] = Field(default=(), description="Tools the answer was made with")
    trust: Trust = Field(default="trusted", description="Untrusted when the answer may repeat what others wrote")


class ExtractBrief(FrozenModel):
    """Asks for the facts in a stretch of conversation (MEM-07). The same id again costs no second model call."""

    extraction_id: str = Field(max_length=100, pattern=r"^[\w:.-]+$")
    user_id: str
    trace_id: str
    turns: tuple[PastTurn, ...] = Field(min_length=1, max_length=10)
    known: tuple[str, ...] = Field(default=(), max_length=30, description="Facts that need not be found again")
    max_facts: int = Field(default=5, ge=1, le=5)
    min_confidence: float = Field(default=0.7, ge=0, le=1)


class LearntFact(FrozenModel):
    """A fact with the words it was read from. Trust follows from where those words stand, not from the model."""

    fact: str
    category: FactCategory
    confidence: float = Field(ge=0, le=1)
    conversation_id: int
    quote: str
    trust: Trust


class ExtractResult(FrozenModel):
    facts: tuple[LearntFact, ...] = ()
    refused: str | None = Field(default=None, description="Why nothing was learnt, when the model's answer was no use")
    unfit: bool = Field(default=False, description="The model was not asked: no model that could do it is configured")


class KnownFact(FrozenModel):
    """A current fact as it is given to whoever proposes how to tidy."""

    fact_id: int
    fact: str
    category: FactCategory
    confidence: float
    trust: Trust
    updated_at: datetime


class TidyAction(FrozenModel):
    """One proposed change. Facts are retired, never destroyed: undo brings them back."""

    kind: Literal["merge", "update", "delete"]
    fact_ids: tuple[int, ...] = Field(min_length=1)
    fact: str | None = Field(default=None, description="The text that replaces them; none for delete")
    category: FactCategory | None = None
    reason: str = ""


class TidyBrief(FrozenModel):
    tidy_id: str = Field(max_length=100, pattern=r"^[\w:.-]+$")
    user_id: str
    trace_id: str
    facts: tuple[KnownFact, ...] = Field(min_length=1, max_length=200)


class TidyFactsResult(FrozenModel):
    actions: tuple[TidyAction, ...] = ()
    refused: str | None = None


class OrderBrief(FrozenModel):
    """Asks whether a person's own words order one act (POL-08). Every text in it is a part of those words."""

    user_id: str
    trace_id: str
    message: str = Field(max_length=4_000)
    acts: tuple[str, ...] = Field(min_length=1, max_length=10)
    objects: tuple[str, ...] = Field(max_length=20)
    receivers: tuple[str, ...] = Field(max_length=20)


class OrderVerdict(FrozenModel):
    ordered: bool | None = Field(default=None, description="None if no model could tell")


class SummaryBrief(FrozenModel):
    """Asks what a text says. It may be anybody's words, so it is data for the model, never instructions."""

    summary_id: str = Field(max_length=100, pattern=r"^[\w:.-]+$")
    user_id: str
    trace_id: str
    title: str = Field(max_length=1_000)
    text: str = Field(min_length=1, max_length=30_000)
    goal_id: str | None = Field(default=None, description="Of the goal that the text is read for")


class SummaryResult(FrozenModel):
    summary: str = ""
    refused: str | None = Field(default=None, description="Why there is no summary, when no model could write one")


class ClearSession(FrozenModel):
    """The whole session is archived, or the turns of some messages are removed from it and its archives for good."""

    thread_id: str
    by_model: bool = Field(default=True, description="Whether a model may be asked for the archive's summary")
    removed: tuple[str, ...] | None = Field(default=None, description="Remove the turns of these messages instead")


class HistoryTurn(FrozenModel):
    """One exchange of a session."""

    message_id: str
    at: datetime
    user: str
    assistant: str = ""
    tools: tuple[str, ...] = ()
    error: ErrorBody | None = None


class SessionHistory(FrozenModel):
    """What an agent has in mind of a thread now, or a session that ended (SES-07)."""

    id: str = Field(description="The last message of it; `current` for what is in mind now")
    summary: str = ""
    reason: str | None = Field(default=None, description="Why it ended; none for the current one")
    message_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    turns: tuple[HistoryTurn, ...] = Field(default=(), description="Only where one is asked for whole")


CURRENT_HISTORY = "current"


class HistoryRequest(FrozenModel):
    """Asks for the ended sessions of a thread; with an id, for one of them whole, or for the current one."""

    thread_id: str
    user_id: str
    history_id: str | None = None


class SessionHistories(FrozenModel):
    """Newest first. Of an id that is not there, there is none."""

    histories: tuple[SessionHistory, ...] = ()


class ToolList(FrozenModel):
    """The tools this caller may use. `version` changes whenever the list does (RTR-06)."""

    version: str
    tools: tuple[ToolSpec, ...]


class ToolCall(FrozenModel):
    """A call of one tool. `call_id` (agents only) makes a repeat replay the first result."""

    name: str = Field(min_length=1, max_length=200)
    arguments: JsonObject = Field(default_factory=dict)
    call_id: str | None = Field(default=None, max_length=200, pattern=r"^[\w:.-]+$")
    message_id: str | None = Field(default=None, max_length=60)


class Reserve(FrozenModel):
    """Asked before every model call, so that a cap can say no before money is spent (CST-09)."""

    call_id: str
    agent_id: str
    user_id: str
    message_id: str | None
    goal_id: str | None = Field(default=None, description="Of work for a goal that belongs to no message")
    purpose: str
    provider: str
    model: str
    estimated_input_tokens: int
    max_output_tokens: int | None = None
    reserved_usd: float = Field(default=0.0, ge=0, description="The most the call can cost")
    price_known: bool = Field(default=True, description="False when the dearest known price stands in for this one's")


class Reservation(FrozenModel):
    call_id: str
    allowed: bool
    reason: str | None = None
    hint: str | None = None


class ModelCall(FrozenModel):
    """The record of one finished model call (LLM-07)."""

    call_id: str
    agent_id: str
    user_id: str
    message_id: str | None
    goal_id: str | None = None
    trace_id: str | None
    purpose: str
    provider: str
    model: str
    usage: TokenUsage
    duration_ms: float
    outcome: Literal["ok", "error", "cancelled"] = "ok"
    error_code: str | None = None

    @classmethod
    def from_reservation(
        cls, asked: Reserve, usage: TokenUsage, seconds: float, outcome: Literal["ok", "error"] = "ok"
    ) -> ModelCall:
        """Record of a reserved call made outside any turn's trace."""
        same = asked.model_dump(include=set(cls.model_fields))
        ended = {"usage": usage, "duration_ms": round(seconds * 1000, 1), "outcome": outcome}
        return cls.model_validate({**same, "trace_id": None, **ended})


class ThinkerBoot(FrozenModel):
    """What an adopted thinker process reads from its standard input: its identity, and no more than it needs."""

    agent: AgentProfile
    hub_url: str
    secret: str = Field(repr=False)
    port: int = Field(ge=0, le=65535)
    environment: dict[str, str] = Field(default_factory=dict, repr=False)
