"""Tasks, check-ins and the feed of goals, and which messages are work in the background."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("threads", sa.Column("internal", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("messages", sa.Column("background", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE threads SET internal = true WHERE channel = 'skill'")
    op.execute("UPDATE messages SET background = true WHERE channel = 'skill'")
    op.add_column("tasks", sa.Column("goal_id", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("next_try_at", UtcTimestamp(), nullable=True))
    op.add_column("tasks", sa.Column("failures", sa.Integer(), server_default="0", nullable=False))
    op.create_index("ix_tasks_goal_id", "tasks", ["goal_id"])
    op.add_column("skills", sa.Column("goal_id", sa.Text(), nullable=True))
    op.add_column("skills", sa.Column("check_in", sa.Text(), nullable=True))
    op.create_index("ix_skills_goal_id", "skills", ["goal_id"])
    op.add_column("goals", sa.Column("thread_id", sa.Text(), nullable=True))
    op.create_table(
        "feed_items",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("goal_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", SafeText(), nullable=False),
        sa.Column("content", SafeText(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("read_from", JsonText(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_feed_items"),
        sa.UniqueConstraint("user_id", "digest", name="uq_feed_items_user_id_digest"),
    )
    op.create_index("ix_feed_items_user_id_created_at", "feed_items", ["user_id", "created_at"])
