"""First tables: facts, conversations, vectors, profiles, contacts, projects, changes, imports, full text."""

import sqlalchemy as sa
from alembic import op

from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


FTS5 = "USING fts5(text, around, tokenize = 'porter unicode61 remove_diacritics 2')"
TEXT_ON_SQLITE = (
    "CREATE TABLE text_owners (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, agent_id TEXT NOT NULL,"
    " UNIQUE (user_id, agent_id))",
    f"CREATE VIRTUAL TABLE fact_text {FTS5}",
    "INSERT INTO fact_text (fact_text, rank) VALUES ('secure-delete', 1)",
    "CREATE VIRTUAL TABLE fact_terms USING fts5vocab('fact_text', 'row')",
    f"CREATE VIRTUAL TABLE conversation_text {FTS5}",
    "INSERT INTO conversation_text (conversation_text, rank) VALUES ('secure-delete', 1)",
    "CREATE VIRTUAL TABLE conversation_terms USING fts5vocab('conversation_text', 'row')",
)
TEXT_ON_POSTGRESQL = (
    "CREATE TABLE text_index (kind text NOT NULL, row_id bigint NOT NULL, user_id text NOT NULL,"
    " agent_id text NOT NULL, text text NOT NULL, found tsvector NOT NULL,"
    " CONSTRAINT pk_text_index PRIMARY KEY (kind, row_id))",
    "CREATE INDEX ix_text_index_user_id_agent_id ON text_index (user_id, agent_id, kind)",
    "CREATE INDEX ix_text_index_found ON text_index USING gin (found)",
)


def create_owned_table(name: str, *columns: sa.schema.SchemaItem) -> None:
    """Creates a table whose rows have an id that is never used again, and an owner."""
    op.create_table(
        name,
        sa.Column("id", COUNTER, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sqlite_autoincrement=True,
    )


def create_index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns), unique=False)


def upgrade() -> None:
    create_owned_table(
        "changes",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("summary", SafeText(), nullable=False),
        sa.Column("actions", JsonText(), nullable=False),
        sa.Column("made_at", UtcTimestamp(), nullable=False),
        sa.Column("undone_at", UtcTimestamp(), nullable=True),
    )
    create_index("changes", "user_id", "agent_id", "made_at")
    create_owned_table(
        "contacts",
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("email", SafeText(), nullable=False),
        sa.Column("company", SafeText(), nullable=True),
        sa.Column("role", SafeText(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("notes", SafeText(), nullable=True),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("origin", JsonText(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.UniqueConstraint("user_id", "agent_id", "email", name="uq_contacts_user_id_agent_id_email"),
    )
    create_owned_table(
        "conversations",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("speaker", SafeText(), nullable=False),
        sa.Column("user_message", SafeText(), nullable=False),
        sa.Column("agent_response", SafeText(), nullable=False),
        sa.Column("tags", JsonText(), nullable=False),
        sa.Column("tools", JsonText(), nullable=False),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("said_at", UtcTimestamp(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("extracted_at", UtcTimestamp(), nullable=True),
        sa.Column("import_key", sa.Text(), nullable=True),
        sa.UniqueConstraint("user_id", "agent_id", "import_key", name="uq_conversations_user_id_agent_id_import_key"),
        sa.UniqueConstraint("user_id", "agent_id", "message_id", name="uq_conversations_user_id_agent_id_message_id"),
    )
    create_index("conversations", "user_id", "agent_id", "extracted_at")
    create_index("conversations", "user_id", "agent_id", "said_at")
    create_index("conversations", "user_id", "agent_id", "session_id", "id")
    create_owned_table(
        "facts",
        sa.Column("fact", SafeText(), nullable=False),
        sa.Column("fact_hash", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("source", SafeText(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("origin", JsonText(), nullable=False),
        sa.Column("valid_from", UtcTimestamp(), nullable=False),
        sa.Column("valid_until", UtcTimestamp(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.Column("retired_at", UtcTimestamp(), nullable=True),
        sa.Column("retired_because", sa.Text(), nullable=True),
        sa.Column("superseded_by", COUNTER, nullable=True),
        sa.Column("last_accessed_at", UtcTimestamp(), nullable=True),
        sa.Column("import_key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["superseded_by"], ["facts.id"], name="fk_facts_superseded_by", ondelete="SET NULL"),
        sa.UniqueConstraint("user_id", "agent_id", "import_key", name="uq_facts_user_id_agent_id_import_key"),
    )
    create_index("facts", "user_id", "agent_id", "about")
    create_index("facts", "superseded_by")
    create_index("facts", "user_id", "agent_id", "category", "retired_at")
    create_index("facts", "user_id", "agent_id", "created_at")
    create_index("facts", "user_id", "agent_id", "fact_hash")
    create_owned_table(
        "imports",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("begun_at", UtcTimestamp(), nullable=False),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("user_id", "agent_id", "digest", name="uq_imports_user_id_agent_id_digest"),
    )
    create_owned_table(
        "profile_history",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("profile", JsonText(), nullable=False),
        sa.Column("reason", SafeText(), nullable=False),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("origin", JsonText(), nullable=False),
        sa.Column("changed_at", UtcTimestamp(), nullable=False),
        sa.UniqueConstraint("user_id", "agent_id", "version", name="uq_profile_history_user_id_agent_id_version"),
    )
    op.create_table(
        "profiles",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("profile", JsonText(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "agent_id", name="pk_profiles"),
    )
    op.create_table(
        "vectors",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "row_id", name="pk_vectors"),
    )
    create_index("vectors", "model")
    create_index("vectors", "user_id", "agent_id", "kind")
    op.create_table(
        "import_rows",
        sa.Column("import_id", COUNTER, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("row", JsonText(), nullable=False),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_import_rows_import_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("import_id", "number", name="pk_import_rows"),
    )
    create_owned_table(
        "projects",
        sa.Column("name", SafeText(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("description", SafeText(), nullable=True),
        sa.Column("primary_contact_id", COUNTER, nullable=True),
        sa.Column("participants", JsonText(), nullable=False),
        sa.Column("company", SafeText(), nullable=True),
        sa.Column("priority", sa.Text(), nullable=True),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("origin", JsonText(), nullable=False),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["primary_contact_id"], ["contacts.id"], name="fk_projects_primary_contact_id", ondelete="SET NULL"
        ),
        sa.UniqueConstraint("user_id", "agent_id", "name", name="uq_projects_user_id_agent_id_name"),
    )
    create_index("projects", "primary_contact_id")
    create_owned_table(
        "project_sources",
        sa.Column("project_id", COUNTER, nullable=False),
        sa.Column("mcp_name", sa.Text(), nullable=False),
        sa.Column("external_project_id", SafeText(), nullable=True),
        sa.Column("external_project_name", SafeText(), nullable=True),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("last_status", sa.Text(), nullable=False),
        sa.Column("last_checked_at", UtcTimestamp(), nullable=True),
        sa.Column("created_at", UtcTimestamp(), nullable=False),
        sa.Column("updated_at", UtcTimestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_sources_project_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("project_id", "mcp_name", name="uq_project_sources_project_id_mcp_name"),
    )
    for statement in TEXT_ON_SQLITE if op.get_bind().dialect.name == "sqlite" else TEXT_ON_POSTGRESQL:
        op.execute(statement)
