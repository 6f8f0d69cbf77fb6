"""Every table of the memory, on both engines. A change here needs a revision beside it.

Each row has an owner, the user and the agent, and each query names them (I-30). What full text needs beside these
tables differs between the engines and is made in `text_index`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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

from annabelle.store.columns import Json, Moment, Words
from annabelle.store.tables import NAMING, Counter

metadata = MetaData(naming_convention=NAMING)


def _owner() -> tuple[Column[str], Column[str]]:
    return Column("user_id", Text, nullable=False), Column("agent_id", Text, nullable=False)


facts = Table(
    "facts",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("fact", Words, nullable=False),
    Column("fact_hash", Text, nullable=False),  # of the normalised text: finds the same fact again
    Column("about", Text),  # "user|home" where a relation is recognised: of such facts one is current
    Column("category", Text, nullable=False),
    Column("source", Words, nullable=False),  # in a person's words: "chat", "import of notes.md"
    Column("confidence", Float, nullable=False),
    Column("trust", Text, nullable=False),  # trusted | untrusted
    Column("origin", Json, nullable=False),  # kind, message_id, thread_id, call_id, tools, quote, conversation_id
    # When it held in the world, and when we knew it: a correction ends the first and keeps the second.
    Column("valid_from", Moment, nullable=False),
    Column("valid_until", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("retired_at", Moment),
    Column("retired_because", Text),  # superseded | merged | deleted
    Column("superseded_by", Counter, ForeignKey("facts.id", ondelete="SET NULL")),
    Column("last_accessed_at", Moment),
    Column("import_key", Text),
    Index(None, "user_id", "agent_id", "category", "retired_at"),
    Index(None, "user_id", "agent_id", "fact_hash"),
    Index(None, "user_id", "agent_id", "about"),
    Index(None, "user_id", "agent_id", "created_at"),
    Index(None, "superseded_by"),
    UniqueConstraint("user_id", "agent_id", "import_key"),
    sqlite_autoincrement=True,
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("session_id", Text, nullable=False),  # the thread; neighbours are looked for within it
    Column("message_id", Text),  # set when the hub stores a delivered turn; one row each (MEM-12)
    Column("speaker", Words, nullable=False),  # who wrote user_message, where a name is known
    Column("user_message", Words, nullable=False),
    Column("agent_response", Words, nullable=False),
    Column("tags", Json, nullable=False),
    Column("tools", Json, nullable=False),
    Column("trust", Text, nullable=False),
    Column("said_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("extracted_at", Moment),  # when facts were read from it
    Column("import_key", Text),
    UniqueConstraint("user_id", "agent_id", "message_id"),
    UniqueConstraint("user_id", "agent_id", "import_key"),
    Index(None, "user_id", "agent_id", "session_id", "id"),
    Index(None, "user_id", "agent_id", "said_at"),
    Index(None, "user_id", "agent_id", "extracted_at"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    Column("kind", Text, primary_key=True),  # fact | conversation
    Column("row_id", BigInteger, primary_key=True, autoincrement=False),
    *_owner(),
    Column("model", Text, nullable=False),  # provider/model: vectors of two models are never compared
    Column("dimension", Integer, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # float32, little endian, unit length
    Index(None, "user_id", "agent_id", "kind"),
    Index(None, "model"),
)

profiles = Table(
    "profiles",
    metadata,
    *(Column(name, Text, primary_key=True) for name in ("user_id", "agent_id")),
    Column("profile", Json, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

profile_history = Table(
    "profile_history",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("version", Integer, nullable=False),
    Column("profile", Json, nullable=False),  # as it was at this version
    Column("reason", Words, nullable=False),
    Column("trust", Text, nullable=False),
    Column("origin", Json, nullable=False),
    Column("changed_at", Moment, nullable=False),
    UniqueConstraint("user_id", "agent_id", "version"),
    sqlite_autoincrement=True,
)

contacts = Table(
    "contacts",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("name", Words, nullable=False),
    Column("email", Words, nullable=False),
    Column("company", Words),
    Column("role", Words),
    Column("type", Text, nullable=False),  # work | personal | ignored
    Column("notes", Words),
    Column("trust", Text, nullable=False),
    Column("origin", Json, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("user_id", "agent_id", "email"),
    sqlite_autoincrement=True,
)

projects = Table(
    "projects",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("name", Words, nullable=False),
    Column("status", Text, nullable=False),  # active | paused | completed
    Column("type", Text, nullable=False),  # work | personal
    Column("description", Words),
    Column("primary_contact_id", Counter, ForeignKey("contacts.id", ondelete="SET NULL")),
    Column("participants", Json, nullable=False),  # contact ids
    Column("company", Words),
    Column("priority", Text),  # high | medium | low
    Column("trust", Text, nullable=False),
    Column("origin", Json, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("user_id", "agent_id", "name"),
    Index(None, "primary_contact_id"),
    sqlite_autoincrement=True,
)

project_sources = Table(
    "project_sources",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("project_id", Counter, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("mcp_name", Text, nullable=False),
    Column("external_project_id", Words),
    Column("external_project_name", Words),
    Column("source_type", Text, nullable=False),  # auto | manual
    Column("last_status", Text, nullable=False),  # ok | warning | error | unknown
    Column("last_checked_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("project_id", "mcp_name"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("kind", Text, nullable=False),  # tidy
    Column("summary", Words, nullable=False),
    Column("actions", Json, nullable=False),  # what was done: ids retired, ids made
    Column("made_at", Moment, nullable=False),
    Column("undone_at", Moment),
    Index(None, "user_id", "agent_id", "made_at"),
    sqlite_autoincrement=True,
)

imports = Table(
    "imports",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    *_owner(),
    Column("digest", Text, nullable=False),  # of the file: the same file goes on where it stopped
    Column("name", Words, nullable=False),
    Column("total", Integer, nullable=False),
    Column("begun_at", Moment, nullable=False),
    Column("finished", Boolean, nullable=False),
    UniqueConstraint("user_id", "agent_id", "digest"),
    sqlite_autoincrement=True,
)

import_rows = Table(
    "import_rows",
    metadata,
    Column("import_id", Counter, ForeignKey("imports.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("row", Json, nullable=False),  # staged: nothing of an import is visible before all of it is
)
