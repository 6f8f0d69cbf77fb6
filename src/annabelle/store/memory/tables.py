"""Tables of the memory and their migration plan. A change here needs a revision; each row has an owner (I-30)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem

from annabelle.store.memory import text_index
from annabelle.store.memory.migrations import FOLDER, NEWEST
from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp
from annabelle.store.schema import NAMING, Counter
from annabelle.store.schema_migration import MigrationPlan

metadata = MetaData(naming_convention=NAMING)


def _owner_columns() -> tuple[Column[str], Column[str]]:
    return Column("user_id", Text, nullable=False), Column("agent_id", Text, nullable=False)


def _owned_table(name: str, *columns: SchemaItem) -> Table:
    """A table whose rows have an id that is never used again, and an owner."""
    counter = Column("id", Counter, primary_key=True, autoincrement=True)
    return Table(name, metadata, counter, *_owner_columns(), *columns, sqlite_autoincrement=True)


facts = _owned_table(
    "facts",
    Column("fact", SafeText, nullable=False),
    Column("fact_hash", Text, nullable=False),  # of the normalised text, to find duplicates
    Column("about", Text),  # "user|home" for a recognised relation, of which one fact is current
    Column("category", Text, nullable=False),
    Column("source", SafeText, nullable=False),  # in a person's words: "chat", "import of notes.md"
    Column("confidence", Float, nullable=False),
    Column("trust", Text, nullable=False),  # trusted | untrusted
    Column("origin", JsonText, nullable=False),  # kind, message_id, thread_id, call_id, tools, quote, conversation_id
    # When it was true in the world, and when we knew it: a correction ends the first and keeps the second.
    Column("valid_from", UtcTimestamp, nullable=False),
    Column("valid_until", UtcTimestamp),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    Column("retired_at", UtcTimestamp),
    Column("retired_because", Text),  # superseded | merged | deleted
    Column("superseded_by", Counter, ForeignKey("facts.id", ondelete="SET NULL")),
    Column("last_accessed_at", UtcTimestamp),
    Column("import_key", Text),
    Index(None, "user_id", "agent_id", "category", "retired_at"),
    Index(None, "user_id", "agent_id", "fact_hash"),
    Index(None, "user_id", "agent_id", "about"),
    Index(None, "user_id", "agent_id", "created_at"),
    Index(None, "superseded_by"),
    UniqueConstraint("user_id", "agent_id", "import_key"),
)

conversations = _owned_table(
    "conversations",
    Column("session_id", Text, nullable=False),  # the thread; search looks for neighbours in it
    Column("message_id", Text),  # set when the hub stores a delivered turn; one row each (MEM-12)
    Column("speaker", SafeText, nullable=False),  # author of user_message, if known
    Column("user_message", SafeText, nullable=False),
    Column("agent_response", SafeText, nullable=False),
    Column("tags", JsonText, nullable=False),
    Column("tools", JsonText, nullable=False),
    Column("trust", Text, nullable=False),
    Column("said_at", UtcTimestamp, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("extracted_at", UtcTimestamp),  # when facts were read from it
    Column("import_key", Text),
    UniqueConstraint("user_id", "agent_id", "message_id"),
    UniqueConstraint("user_id", "agent_id", "import_key"),
    Index(None, "user_id", "agent_id", "session_id", "id"),
    Index(None, "user_id", "agent_id", "said_at"),
    Index(None, "user_id", "agent_id", "extracted_at"),
)

vectors = Table(
    "vectors",
    metadata,
    Column("kind", Text, primary_key=True),  # fact | conversation
    Column("row_id", BigInteger, primary_key=True, autoincrement=False),
    *_owner_columns(),
    Column("model", Text, nullable=False),  # provider/model: vectors of different models are never compared
    Column("dimension", Integer, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # float32, little endian, unit length
    Index(None, "user_id", "agent_id", "kind"),
    Index(None, "model"),
)

profiles = Table(
    "profiles",
    metadata,
    *(Column(name, Text, primary_key=True) for name in ("user_id", "agent_id")),
    Column("profile", JsonText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
)

profile_history = _owned_table(
    "profile_history",
    Column("version", Integer, nullable=False),
    Column("profile", JsonText, nullable=False),  # as it was at this version
    Column("reason", SafeText, nullable=False),
    Column("trust", Text, nullable=False),
    Column("origin", JsonText, nullable=False),
    Column("changed_at", UtcTimestamp, nullable=False),
    UniqueConstraint("user_id", "agent_id", "version"),
)

contacts = _owned_table(
    "contacts",
    Column("name", SafeText, nullable=False),
    Column("email", SafeText, nullable=False),
    Column("company", SafeText),
    Column("role", SafeText),
    Column("type", Text, nullable=False),  # work | personal | ignored
    Column("notes", SafeText),
    Column("trust", Text, nullable=False),
    Column("origin", JsonText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    UniqueConstraint("user_id", "agent_id", "email"),
)

projects = _owned_table(
    "projects",
    Column("name", SafeText, nullable=False),
    Column("status", Text, nullable=False),  # active | paused | completed
    Column("type", Text, nullable=False),  # work | personal
    Column("description", SafeText),
    Column("primary_contact_id", Counter, ForeignKey("contacts.id", ondelete="SET NULL")),
    Column("participants", JsonText, nullable=False),  # contact ids
    Column("company", SafeText),
    Column("priority", Text),  # high | medium | low
    Column("trust", Text, nullable=False),
    Column("origin", JsonText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    UniqueConstraint("user_id", "agent_id", "name"),
    Index(None, "primary_contact_id"),
)

project_sources = _owned_table(
    "project_sources",
    Column("project_id", Counter, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("mcp_name", Text, nullable=False),
    Column("external_project_id", SafeText),
    Column("external_project_name", SafeText),
    Column("source_type", Text, nullable=False),  # auto | manual
    Column("last_status", Text, nullable=False),  # ok | warning | error | unknown
    Column("last_checked_at", UtcTimestamp),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False),
    UniqueConstraint("project_id", "mcp_name"),
)

changes = _owned_table(
    "changes",
    Column("kind", Text, nullable=False),  # tidy
    Column("summary", SafeText, nullable=False),
    Column("actions", JsonText, nullable=False),  # ids retired, ids made
    Column("made_at", UtcTimestamp, nullable=False),
    Column("undone_at", UtcTimestamp),
    Index(None, "user_id", "agent_id", "made_at"),
)

imports = _owned_table(
    "imports",
    Column("digest", Text, nullable=False),  # of the file, so that importing it again continues
    Column("name", SafeText, nullable=False),
    Column("total", Integer, nullable=False),
    Column("begun_at", UtcTimestamp, nullable=False),
    Column("finished", Boolean, nullable=False),
    UniqueConstraint("user_id", "agent_id", "digest"),
)

import_rows = Table(
    "import_rows",
    metadata,
    Column("import_id", Counter, ForeignKey("imports.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("row", JsonText, nullable=False),  # staged: an import becomes visible only as a whole
)


def create_memory_tables(connection: Connection) -> None:
    """Creates every table, and the full-text index of this engine."""
    metadata.create_all(connection)
    text_index.create_index(connection)


MEMORY_PLAN = MigrationPlan(
    newest=NEWEST,
    folder=FOLDER,
    tables=metadata,
    version_table="memory_version",
    create=create_memory_tables,
    extra_tables=("text_index",),
    snapshot_prefix="memory_backup_",
    restore_command="annabelle memory restore",
)
