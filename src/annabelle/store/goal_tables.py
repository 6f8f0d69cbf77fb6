"""Tables of goals, their notes and learnings, and of the feed. A change here needs a migration."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp
from annabelle.store.schema import metadata

goals = Table(
    "goals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("title", SafeText, nullable=False),
    Column("description", SafeText, nullable=False),
    Column("instructions", SafeText, nullable=False),
    Column("tools", JsonText, nullable=False),  # besides those that every goal has
    Column("state", Text, nullable=False),  # working | waiting | archived
    Column("position", Integer, nullable=False),  # in the person's own order
    Column("thread_id", Text),  # the chat it was made in, where the person hears of it
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Index(None, "user_id", "position"),
)

goal_notes = Table(
    "goal_notes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("goal_id", Text, ForeignKey("goals.id")),  # none: it belongs to no goal yet
    Column("title", SafeText, nullable=False),
    Column("content", SafeText, nullable=False),
    Column("written_by", Text, nullable=False),  # user | agent
    Column("read_from", JsonText),  # foreign content that was read before it was written
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Index(None, "goal_id", "created_at"),
    Index(None, "user_id", "created_at"),
)

goal_learnings = Table(
    "goal_learnings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("goal_id", Text, ForeignKey("goals.id"), nullable=False),
    Column("content", SafeText, nullable=False),
    Column("read_from", JsonText),
    Column("created_at", UtcTimestamp, nullable=False),
    Index(None, "goal_id", "created_at"),
)

feed_items = Table(
    "feed_items",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("goal_id", Text),
    Column("kind", Text, nullable=False),  # discovery | reflection
    Column("title", SafeText, nullable=False),
    Column("content", SafeText, nullable=False),
    Column("digest", Text, nullable=False),  # of its words: the same is never told twice
    Column("read_from", JsonText),
    Column("message_id", Text),  # of the run that brought it
    Column("created_at", UtcTimestamp, nullable=False),
    UniqueConstraint("user_id", "digest"),
    Index(None, "user_id", "created_at"),
)
