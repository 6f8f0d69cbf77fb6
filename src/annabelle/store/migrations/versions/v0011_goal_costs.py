"""Which goal a model call was made for: the tasks that would say so are cleared away after a while."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_calls", sa.Column("goal_id", sa.Text(), nullable=True))
    op.create_index("ix_model_calls_goal_id", "model_calls", ["goal_id"])
    op.execute(
        "UPDATE model_calls SET goal_id = (SELECT coalesce(tasks.goal_id,"
        " CASE messages.channel WHEN 'goal' THEN messages.chat_id END) FROM messages"
        " LEFT JOIN tasks ON messages.channel = 'task' AND tasks.id = messages.chat_id"
        " WHERE messages.id = model_calls.message_id)"
    )
