"""Turns for the memory to store, idle threads, and the trust of tool results."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import UtcTimestamp

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "to_remember",
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", name="pk_to_remember"),
    )
    op.create_index("ix_to_remember_thread_id", "to_remember", ["thread_id"], unique=False)
    op.create_table(
        "idle_threads",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("last_message_id", sa.Text(), nullable=False),
        sa.Column("due_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", name="pk_idle_threads"),
    )
    op.add_column("tool_calls", sa.Column("trust", sa.Text(), nullable=True))
    # Results from before labels: only those of the hub's own tools are trusted.
    op.execute(
        "UPDATE tool_calls SET trust = CASE WHEN tool IN "
        "('get_status', 'get_tool_catalog', 'send_message', 'send_telegram') THEN 'trusted' ELSE 'untrusted' END "
        "WHERE result IS NOT NULL"
    )
