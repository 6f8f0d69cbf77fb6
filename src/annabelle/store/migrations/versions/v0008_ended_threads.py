"""A chat may have ended threads beside its open one."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import UtcTimestamp

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("threads") as threads:
        threads.add_column(sa.Column("ended_at", UtcTimestamp(), nullable=True))
        threads.drop_constraint("uq_threads_channel_chat_id_user_id_agent_id", type_="unique")
    op.create_index(
        "uq_threads_open",
        "threads",
        ["channel", "chat_id", "user_id", "agent_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
