"""All cached vectors of one home: where those of a model are, and how they all go."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from annabelle.core.errors import StorageTrouble
from annabelle.embeddings.cache_file import SUFFIX
from annabelle.embeddings.cache_lock import locked
from annabelle.embeddings.embedder import ModelName


def path_for(folder: Path, model: ModelName) -> Path:
    """The file of a model, with a name a person recognises."""
    readable = re.sub(r"[^a-z0-9]+", "-", str(model).lower()).strip("-")[:60]
    return folder / f"{readable}-{hashlib.sha256(str(model).encode()).hexdigest()[:8]}{SUFFIX}"


def clear(folder: Path) -> None:
    """Remove every vector of every model, as when a text is forgotten: texts are known here by their hashes only.

    StorageTrouble when that could not be done. Which model a server was asked for stays known.
    """
    if not folder.is_dir():
        return
    try:
        with locked(folder):
            for path in folder.iterdir():
                if path.name.endswith((SUFFIX, f"{SUFFIX}.new")):  # the latter of a process that was killed
                    path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageTrouble(
            f"Cached vectors in {folder} could not be removed: {error.strerror}.",
            hint="Fix the permissions and try again, or delete the folder: it is only a cache.",
        ) from error
