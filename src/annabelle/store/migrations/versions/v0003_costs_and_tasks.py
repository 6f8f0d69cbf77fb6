"""Reserved and spent budgets, ended conversations, and tasks."""

import math
from collections import Counter
from datetime import UTC

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_calls", sa.Column("reserved_usd", sa.Float(), nullable=True))
    op.add_column("model_calls", sa.Column("price_known", sa.Boolean(), nullable=True))
    op.add_column("agent_states", sa.Column("window_from", UtcTimestamp(), nullable=True))
    op.create_index("ix_model_calls_agent_id_reserved_at", "model_calls", ["agent_id", "reserved_at"], unique=False)
    op.create_index(
        "ix_model_calls_open",
        "model_calls",
        ["reserved_at"],
        unique=False,
        sqlite_where=sa.text("state = 'reserved'"),
        postgresql_where=sa.text("state = 'reserved'"),
    )
    op.create_table(
        "spending",
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("settled_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("reserved_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("warned_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("period", name="pk_spending"),
    )
    _count_what_was_spent()
    op.create_table(
        "archives",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("record", JsonText(), nullable=False),
        sa.Column("ended_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_archives"),
    )
    op.create_index(
        "ix_archives_agent_id_thread_id_ended_at", "archives", ["agent_id", "thread_id", "ended_at"], unique=False
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("request", JsonText(), nullable=False),
        sa.Column("result", JsonText(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("finished_at", UtcTimestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    op.create_index("ix_tasks_message_id", "tasks", ["message_id"], unique=False)
    op.create_index("ix_tasks_user_id_created_at", "tasks", ["user_id", "created_at"], unique=False)


def _count_what_was_spent() -> None:
    """Counts what this day and month cost before the upgrade, for budgets set later."""
    at, usd = sa.column("reserved_at", UtcTimestamp()), sa.column("cost_usd", sa.Float())
    spent: Counter[str] = Counter()
    for made, cost in op.get_bind().execute(sa.select(at, usd).select_from(sa.table("model_calls")).where(usd > 0)):
        for period in (f"{made.astimezone(UTC):%Y-%m-%d}", f"{made.astimezone(UTC):%Y-%m}"):
            spent[period] += math.ceil(round(cost * 1_000_000_000, 3))
    table = sa.table(
        "spending",
        sa.column("period", sa.Text()),
        sa.column("settled_nano_usd", sa.BigInteger()),
        sa.column("reserved_nano_usd", sa.BigInteger()),
    )
    for period, nano in spent.items():
        op.execute(sa.insert(table).values(period=period, settled_nano_usd=nano, reserved_nano_usd=0))
