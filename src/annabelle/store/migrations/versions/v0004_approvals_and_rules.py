"""Approvals, parked turns, rules, and labels of results."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tool_calls", sa.Column("labels", JsonText(), nullable=True))
    op.create_table(
        "approvals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", JsonText(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("reasons", JsonText(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("expires_at", UtcTimestamp(), nullable=False),
        sa.Column("decided_at", UtcTimestamp(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("edited", JsonText(), nullable=True),
        sa.Column("note", SafeText(), nullable=True),
        sa.Column("used_by", sa.Text(), nullable=True),
        sa.Column("resumed_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_approvals"),
        sa.UniqueConstraint("call_id", name="uq_approvals_call_id"),
    )
    op.create_index("ix_approvals_message_id", "approvals", ["message_id"], unique=False)
    op.create_index("ix_approvals_root_id", "approvals", ["root_id"], unique=False)
    op.create_index("ix_approvals_user_id_created_at", "approvals", ["user_id", "created_at"], unique=False)
    op.create_index(
        "ix_approvals_pending",
        "approvals",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "parked_turns",
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("turn", JsonText(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", name="pk_parked_turns"),
    )
    op.create_table(
        "rules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("words", SafeText(), nullable=False),
        sa.Column("match", JsonText(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("confirmed_at", UtcTimestamp(), nullable=True),
        sa.Column("revoked_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_rules"),
    )
    op.create_index("ix_rules_user_id_state", "rules", ["user_id", "state"], unique=False)
