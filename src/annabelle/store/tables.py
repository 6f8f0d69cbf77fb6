"""Tables of the hub on both engines. A change here needs a migration."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from annabelle.store.goal_tables import (
    feed_items as feed_items,
    goal_learnings as goal_learnings,
    goal_notes as goal_notes,
    goals as goals,
)
from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp
from annabelle.store.schema import Counter, metadata, partial_index

threads = Table(
    "threads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Column("ended_at", UtcTimestamp),  # null: the open thread of its chat, which new messages go to
    Column("internal", Boolean, nullable=False, server_default=false(), default=False),  # of work nobody talks to
    Index(None, "user_id", "updated_at"),
    partial_index(
        "uq_threads_open", "channel", "chat_id", "user_id", "agent_id", where="ended_at IS NULL", unique=True
    ),
)

messages = Table(
    "messages",
    metadata,
    Column("position", Counter, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("thread_id", Text, ForeignKey("threads.id"), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("sender_id", Text, nullable=False),
    Column("external_id", Text),
    Column("role", Text, nullable=False),  # user | assistant
    Column("source", Text, nullable=False),  # user | command | agent | error | decision
    Column("kind", Text, nullable=False),  # inbound | answer | said
    Column("content", SafeText, nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("state", Text, nullable=False),  # queued | running | done | failed
    Column("reply_to", Text),
    Column("call_id", Text, unique=True),
    Column("trace_id", Text),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("background", Boolean, nullable=False, server_default=false(), default=False),  # work that nobody waits for
    UniqueConstraint("channel", "chat_id", "user_id", "external_id"),
    Index(None, "thread_id", "position"),
    partial_index("uq_messages_answer", "reply_to", where="kind = 'answer'", unique=True),
    partial_index("ix_messages_queued", "thread_id", "position", where="state = 'queued'"),
    sqlite_autoincrement=True,
)

claims = Table(
    "claims",
    metadata,
    Column("thread_id", Text, ForeignKey("threads.id"), primary_key=True),
    Column("message_id", Text, ForeignKey("messages.id"), nullable=False, unique=True),
    Column("owner", Text, nullable=False, index=True),
    Column("claimed_at", UtcTimestamp, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("thread_id", Text, ForeignKey("threads.id"), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("data", JsonText, nullable=False),
    Column("at", UtcTimestamp, nullable=False),
    UniqueConstraint("message_id", "key"),
    Index(None, "thread_id", "seq"),
    Index(None, "user_id", "seq"),
    sqlite_autoincrement=True,
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("state", Text, nullable=False),  # started | finished | unknown
    Column("tool", Text, nullable=False),
    Column("arguments_hash", Text, nullable=False),
    Column("result", JsonText),
    Column("agent_id", Text),
    Column("user_id", Text, nullable=False),
    Column("message_id", Text, index=True),
    Column("trace_id", Text),
    Column("started_at", UtcTimestamp, nullable=False),
    Column("finished_at", UtcTimestamp),
    Column("trust", Text),  # trusted | untrusted, of the result; null until then
    Column("labels", JsonText),  # private, pried, suspicious, unscanned, vouched
)

model_calls = Table(
    "model_calls",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("state", Text, nullable=False),  # reserved | settled
    Column("agent_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("message_id", Text, index=True),
    Column("goal_id", Text, index=True),  # whose work it is part of: what is said to the goal, and what its tasks do
    Column("trace_id", Text),
    Column("purpose", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("estimated_input_tokens", Integer, nullable=False),
    Column("max_output_tokens", Integer),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("duration_ms", Float),
    Column("outcome", Text),  # ok | error | cancelled
    Column("error_code", Text),
    Column("reserved_at", UtcTimestamp, nullable=False),
    Column("settled_at", UtcTimestamp),
    Column("reserved_usd", Float),  # the most it can cost; reserved in the budgets until settled
    Column("price_known", Boolean),
    Index(None, "user_id", "reserved_at"),
    Index(None, "agent_id", "reserved_at"),
    partial_index("ix_model_calls_open", "reserved_at", where="state = 'reserved'"),
)

spending = Table(
    "spending",
    metadata,
    Column("period", Text, primary_key=True),  # UTC day as 2026-07-03 or month as 2026-07
    Column("settled_nano_usd", BigInteger, nullable=False),  # integers, so that caps do not drift
    Column("reserved_nano_usd", BigInteger, nullable=False),
    Column("warned_at", UtcTimestamp),
)

agent_states = Table(
    "agent_states",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("paused", Boolean, nullable=False),
    Column("reason", SafeText),
    Column("paused_at", UtcTimestamp),
    Column("window_from", UtcTimestamp),  # earlier spending does not count for the next pause
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("message_id", Text, ForeignKey("messages.id"), primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("state", Text, nullable=False),  # pending | sending | sent | unknown | failed
    Column("attempts", Integer, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Column("sent_ids", JsonText, nullable=True),  # the channel's ids of the parts; null for one of unknown outcome
    partial_index("ix_deliveries_open", "state", where="state != 'sent'"),
)

channel_accounts = Table(
    "channel_accounts",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("account_id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("name", SafeText, nullable=False),
    Column("chat_id", Text, nullable=True),  # where it was paired
    Column("created_at", UtcTimestamp, nullable=False),
)

channel_updates = Table(
    "channel_updates",
    metadata,
    Column("position", Counter, primary_key=True, autoincrement=True),
    Column("channel", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("content", JsonText, nullable=True),  # removed once it is a message
    Column("stale", Boolean, nullable=False),
    Column("received_at", UtcTimestamp, nullable=False),
    UniqueConstraint("channel", "external_id"),
    partial_index("ix_channel_updates_open", "position", where="content IS NOT NULL"),
    sqlite_autoincrement=True,
)

channel_cursors = Table(
    "channel_cursors",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("cursor", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("position", Counter, primary_key=True, autoincrement=True),
    Column("agent_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("record", JsonText, nullable=False),
    Index(None, "agent_id", "thread_id", "position"),
    sqlite_autoincrement=True,
)

to_remember = Table(
    "to_remember",
    metadata,
    Column("message_id", Text, primary_key=True),  # a delivered turn not stored in memory yet (MEM-12)
    Column("thread_id", Text, nullable=False, index=True),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("attempts", Integer, nullable=False),
)

idle_threads = Table(
    "idle_threads",
    metadata,
    Column("thread_id", Text, primary_key=True),  # facts are extracted once it is idle (MEM-07)
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("last_message_id", Text, nullable=False),
    Column("due_at", UtcTimestamp, nullable=False),
)

archives = Table(
    "archives",
    metadata,
    Column("id", Text, primary_key=True),  # ended conversations, if sessions are in a shared PostgreSQL
    Column("agent_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("record", JsonText, nullable=False),
    Column("ended_at", UtcTimestamp, nullable=False),
    Index(None, "agent_id", "thread_id", "ended_at"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),  # work an agent delegated: a tool call or a subagent
    Column("kind", Text, nullable=False),  # tool_call | subagent | goal
    Column("state", Text, nullable=False),  # queued | running | done | failed | unknown; of a goal: see store/tasks.py
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text),
    Column("thread_id", Text),
    Column("message_id", Text, index=True),
    Column("name", SafeText, nullable=False),
    Column("request", JsonText, nullable=False),
    Column("result", JsonText),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("finished_at", UtcTimestamp),
    Column("goal_id", Text, index=True),
    Column("next_try_at", UtcTimestamp),  # of one that is paused
    Column("failures", Integer, nullable=False, server_default="0", default=0),
    Index(None, "user_id", "created_at"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("message_id", Text, nullable=False, index=True),  # the message whose turn asked
    Column("root_id", Text, nullable=False, index=True),  # the first message of a chain of parked turns
    Column("call_id", Text, nullable=False, unique=True),
    Column("tool", Text, nullable=False),
    Column("arguments", JsonText, nullable=False),
    Column("digest", Text, nullable=False),  # of tool and exact arguments, as they were approved
    Column("reasons", JsonText, nullable=False),
    Column("state", Text, nullable=False),  # pending | approved | denied | expired | cancelled | used
    Column("created_at", UtcTimestamp, nullable=False),
    Column("expires_at", UtcTimestamp, nullable=False),
    Column("decided_at", UtcTimestamp),
    Column("decided_by", Text),
    Column("edited", JsonText),  # the arguments as the person changed them
    Column("note", SafeText),
    Column("used_by", Text),  # the call id that used the approval
    Column("resumed_by", Text),  # the message that continues the turn
    Index(None, "user_id", "created_at"),
    partial_index("ix_approvals_pending", "expires_at", where="state = 'pending'"),
)

parked_turns = Table(
    "parked_turns",
    metadata,
    Column("message_id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("root_id", Text, nullable=False),
    Column("turn", JsonText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
)

rules = Table(
    "rules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text),  # null: every agent
    Column("kind", Text, nullable=False),  # allow | ask | never
    Column("words", SafeText, nullable=False),  # the person's words, or the text of an allowance
    Column("match", JsonText, nullable=False),  # which calls it covers
    Column("state", Text, nullable=False),  # proposed | stated | active | revoked
    Column("created_at", UtcTimestamp, nullable=False),
    Column("confirmed_at", UtcTimestamp),
    Column("revoked_at", UtcTimestamp),
    Index(None, "user_id", "state"),
)

skills = Table(
    "skills",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("thread_id", Text, ForeignKey("threads.id"), nullable=False),  # where it was made, and reports
    Column("name", SafeText, nullable=False),
    Column("description", SafeText, nullable=False),
    Column("instructions", SafeText, nullable=False),
    Column("trigger_type", Text, nullable=False),  # cron | manual | event
    Column("trigger", JsonText, nullable=False),
    Column("plan", JsonText),  # the one call of a skill that needs no model
    Column("required_tools", JsonText, nullable=False),
    Column("max_steps", Integer, nullable=False),
    Column("notify", Boolean, nullable=False),
    Column("notify_interval_minutes", Integer, nullable=False),
    Column("missed", Text, nullable=False),  # run | skip | list
    Column("enabled", Boolean, nullable=False),
    Column("disabled_why", SafeText),
    Column("failures", Integer, nullable=False),  # in a row
    Column("next_due", UtcTimestamp),
    Column("last_notified_at", UtcTimestamp),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Column("token_budget", Integer),  # the most that one run may use
    Column("preflight", JsonText),  # a call that says whether there is anything to do
    Column("made_after", JsonText),  # foreign content that was read in the conversation it was made in
    Column("webhook_hash", Text),
    Column("confirmed_at", UtcTimestamp),  # when the person said yes to what it does
    Column("goal_id", Text, index=True),  # of a check-in
    Column("check_in", Text),  # recurring | follow_up | note | heartbeat | feed
    UniqueConstraint("user_id", "name"),
    partial_index("ix_skills_due", "next_due", where="enabled AND next_due IS NOT NULL"),
    sqlite_autoincrement=True,
)

fires = Table(
    "fires",
    metadata,
    Column("id", Text, primary_key=True),
    Column("skill_id", Counter, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", SafeText, nullable=False),  # the skill's, which may be gone
    Column("due_at", UtcTimestamp, nullable=False),
    Column("state", Text, nullable=False),  # due | started | finished | failed | waiting | skipped | missed | unknown
    Column("started_at", UtcTimestamp),
    Column("finished_at", UtcTimestamp),
    Column("result", JsonText),
    Column("payload", JsonText),  # what a webhook or an event brought
    UniqueConstraint("skill_id", "due_at"),
    Index(None, "user_id", "due_at"),
    partial_index("ix_fires_open", "due_at", where="state IN ('due', 'started', 'waiting')"),
)
