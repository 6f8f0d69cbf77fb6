"""Skills and their fires."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "skills",
        sa.Column("id", _counter, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("description", SafeText(), nullable=False),
        sa.Column("instructions", SafeText(), nullable=False),
        sa.Column("trigger_type", sa.Text(), nullable=False),
        sa.Column("trigger", JsonText(), nullable=False),
        sa.Column("plan", JsonText(), nullable=True),
        sa.Column("required_tools", JsonText(), nullable=False),
        sa.Column("max_steps", sa.Integer(), nullable=False),
        sa.Column("notify", sa.Boolean(), nullable=False),
        sa.Column("notify_interval_minutes", sa.Integer(), nullable=False),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_why", SafeText(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_due", UtcTimestamp(), nullable=True),
        sa.Column("last_notified_at", UtcTimestamp(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_skills_thread_id"),
        sa.PrimaryKeyConstraint("id", name="pk_skills"),
        sa.UniqueConstraint("user_id", "name", name="uq_skills_user_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_skills_due",
        "skills",
        ["next_due"],
        unique=False,
        sqlite_where=sa.text("enabled AND next_due IS NOT NULL"),
        postgresql_where=sa.text("enabled AND next_due IS NOT NULL"),
    )
    op.create_table(
        "fires",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("skill_id", _counter, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("due_at", UtcTimestamp(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", UtcTimestamp(), nullable=True),
        sa.Column("finished_at", UtcTimestamp(), nullable=True),
        sa.Column("result", JsonText(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_fires"),
        sa.UniqueConstraint("skill_id", "due_at", name="uq_fires_skill_id_due_at"),
    )
    op.create_index("ix_fires_user_id_due_at", "fires", ["user_id", "due_at"], unique=False)
    op.create_index(
        "ix_fires_open",
        "fires",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('due', 'started', 'waiting')"),
        postgresql_where=sa.text("state IN ('due', 'started', 'waiting')"),
    )
