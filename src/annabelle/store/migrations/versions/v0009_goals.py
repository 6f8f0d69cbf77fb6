"""Goals with their notes and learnings."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "goals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("title", SafeText(), nullable=False),
        sa.Column("description", SafeText(), nullable=False),
        sa.Column("instructions", SafeText(), nullable=False),
        sa.Column("tools", JsonText(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_goals"),
    )
    op.create_index("ix_goals_user_id_position", "goals", ["user_id", "position"])
    op.create_table(
        "goal_notes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("goal_id", sa.Text(), nullable=True),
        sa.Column("title", SafeText(), nullable=False),
        sa.Column("content", SafeText(), nullable=False),
        sa.Column("written_by", sa.Text(), nullable=False),
        sa.Column("read_from", JsonText(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["goal_id"], ["goals.id"], name="fk_goal_notes_goal_id"),
        sa.PrimaryKeyConstraint("id", name="pk_goal_notes"),
    )
    op.create_index("ix_goal_notes_goal_id_created_at", "goal_notes", ["goal_id", "created_at"])
    op.create_index("ix_goal_notes_user_id_created_at", "goal_notes", ["user_id", "created_at"])
    op.create_table(
        "goal_learnings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("goal_id", sa.Text(), nullable=False),
        sa.Column("content", SafeText(), nullable=False),
        sa.Column("read_from", JsonText(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["goal_id"], ["goals.id"], name="fk_goal_learnings_goal_id"),
        sa.PrimaryKeyConstraint("id", name="pk_goal_learnings"),
    )
    op.create_index("ix_goal_learnings_goal_id_created_at", "goal_learnings", ["goal_id", "created_at"])
