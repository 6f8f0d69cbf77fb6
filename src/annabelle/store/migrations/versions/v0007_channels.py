"""Who speaks in which channel, what came in there, and how far each message was sent."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("sent_ids", JsonText(), nullable=True))
    op.create_table(
        "channel_accounts",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "account_id", name="pk_channel_accounts"),
    )
    op.create_table(
        "channel_updates",
        sa.Column("position", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("content", JsonText(), nullable=True),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.Column("received_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_channel_updates"),
        sa.UniqueConstraint("channel", "external_id", name="uq_channel_updates_channel_external_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_channel_updates_open",
        "channel_updates",
        ["position"],
        sqlite_where=sa.text("content IS NOT NULL"),
        postgresql_where=sa.text("content IS NOT NULL"),
    )
    op.create_table(
        "channel_cursors",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel", name="pk_channel_cursors"),
    )
