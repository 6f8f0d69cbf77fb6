"""The memory server's settings, and the points at which a crash test may kill it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.kit.files.config import path_variable


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Where the memory is kept, and how it is searched and saved."""

    file: Path
    backups: Path
    export_folder: Path
    workspace: Path
    embedding_cache: Path
    embedding: EmbeddingConfig
    database_url: str | None = field(default=None, repr=False)
    synchronous: str = "NORMAL"
    vector_weight: float = 0.45
    text_weight: float = 0.55
    backup_hours: float = 24
    timezone: str = "UTC"

    @classmethod
    def from_environment(cls) -> MemoryConfig:
        home = Home.from_environment()
        return cls(
            file=path_variable("MEMORY_DB_PATH", home.memory_file),
            backups=home.backups,
            export_folder=path_variable("MEMORY_EXPORT_PATH", home.memory_export),
            workspace=path_variable("WORKSPACE_PATH", home.workspace),
            embedding_cache=home.embedding_cache,
            embedding=EmbeddingConfig.from_environment(),
            database_url=os.environ.get("DATABASE_URL") or None,
            synchronous=os.environ.get("SQLITE_SYNCHRONOUS") or "NORMAL",
            vector_weight=_number("EMBEDDING_VECTOR_WEIGHT", 0.45, 1),
            text_weight=_number("EMBEDDING_TEXT_WEIGHT", 0.55, 1),
            backup_hours=_number("MEMORY_BACKUP_HOURS", 24, float("inf")),
            timezone=os.environ.get("USER_TIMEZONE") or "UTC",
        )


def _number(variable: str, default: float, most: float) -> float:
    value = os.environ.get(variable)
    if not value:
        return default
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        limit = "0 or more" if most == float("inf") else f"from 0 to {most:g}"
        raise ConfigMistake(f"{variable} must be a number {limit}, not {value!r}.", field=variable)
    return number


FAILPOINTS = ("memory.during_import", "memory.before_import_commit")
TIDYING_FAILPOINTS = ("memory.half_tidied",)
