"""What runs of skills by a model need."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, UtcTimestamp

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("skills", sa.Column("token_budget", sa.Integer(), nullable=True))
    op.add_column("skills", sa.Column("preflight", JsonText(), nullable=True))
    op.add_column("skills", sa.Column("made_after", JsonText(), nullable=True))
    op.add_column("skills", sa.Column("webhook_hash", sa.Text(), nullable=True))
    op.add_column("skills", sa.Column("confirmed_at", UtcTimestamp(), nullable=True))
    op.execute("UPDATE skills SET confirmed_at = created_at")
    op.add_column("fires", sa.Column("payload", JsonText(), nullable=True))
