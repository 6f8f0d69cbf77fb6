"""First tables: threads, messages, claims, events, calls, agents, deliveries, sessions."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "agent_states",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("reason", SafeText(), nullable=True),
        sa.Column("paused_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agent_states"),
    )
    op.create_table(
        "model_calls",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("estimated_input_tokens", sa.Integer(), nullable=False),
        sa.Column("max_output_tokens", sa.Integer(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("duration_ms", sa.Float(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("reserved_at", UtcTimestamp(), nullable=False),
        sa.Column("settled_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("call_id", name="pk_model_calls"),
    )
    op.create_index("ix_model_calls_message_id", "model_calls", ["message_id"], unique=False)
    op.create_index("ix_model_calls_user_id_reserved_at", "model_calls", ["user_id", "reserved_at"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("position", COUNTER, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("record", JsonText(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_sessions"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_sessions_agent_id_thread_id_position", "sessions", ["agent_id", "thread_id", "position"], unique=False
    )
    op.create_table(
        "threads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
        sa.UniqueConstraint(
            "channel", "chat_id", "user_id", "agent_id", name="uq_threads_channel_chat_id_user_id_agent_id"
        ),
    )
    op.create_index("ix_threads_user_id_updated_at", "threads", ["user_id", "updated_at"], unique=False)
    op.create_table(
        "tool_calls",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments_hash", sa.Text(), nullable=False),
        sa.Column("result", JsonText(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("started_at", UtcTimestamp(), nullable=False),
        sa.Column("finished_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("call_id", name="pk_tool_calls"),
    )
    op.create_index("ix_tool_calls_message_id", "tool_calls", ["message_id"], unique=False)
    op.create_table(
        "events",
        sa.Column("seq", COUNTER, autoincrement=True, nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("data", JsonText(), nullable=False),
        sa.Column("at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_events_thread_id"),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("message_id", "key", name="uq_events_message_id_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_thread_id_seq", "events", ["thread_id", "seq"], unique=False)
    op.create_index("ix_events_user_id_seq", "events", ["user_id", "seq"], unique=False)
    op.create_table(
        "messages",
        sa.Column("position", COUNTER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", SafeText(), nullable=False),
        sa.Column("metadata", JsonText(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_messages_thread_id"),
        sa.PrimaryKeyConstraint("position", name="pk_messages"),
        sa.UniqueConstraint("call_id", name="uq_messages_call_id"),
        sa.UniqueConstraint(
            "channel", "chat_id", "user_id", "external_id", name="uq_messages_channel_chat_id_user_id_external_id"
        ),
        sa.UniqueConstraint("id", name="uq_messages_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_queued",
        "messages",
        ["thread_id", "position"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("ix_messages_thread_id_position", "messages", ["thread_id", "position"], unique=False)
    op.create_index(
        "uq_messages_answer",
        "messages",
        ["reply_to"],
        unique=True,
        sqlite_where=sa.text("kind = 'answer'"),
        postgresql_where=sa.text("kind = 'answer'"),
    )
    op.create_table(
        "claims",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("claimed_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_claims_message_id"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_claims_thread_id"),
        sa.PrimaryKeyConstraint("thread_id", name="pk_claims"),
        sa.UniqueConstraint("message_id", name="uq_claims_message_id"),
    )
    op.create_index("ix_claims_owner", "claims", ["owner"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_deliveries_message_id"),
        sa.PrimaryKeyConstraint("message_id", name="pk_deliveries"),
    )
    op.create_index(
        "ix_deliveries_open",
        "deliveries",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state != 'sent'"),
        postgresql_where=sa.text("state != 'sent'"),
    )
