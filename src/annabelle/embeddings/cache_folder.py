"""All cached vectors of one home: where those of a model are, and how a text is forgotten in all of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from annabelle.core.errors import StorageTrouble
from annabelle.embeddings.cache_file import SUFFIX, kept, replace
from annabelle.embeddings.cache_format import Header, key_of, read_header
from annabelle.embeddings.cache_lock import locked
from annabelle.embeddings.embedder import ModelName


def path_for(folder: Path, model: ModelName) -> Path:
    """The file of a model, with a name a person recognises."""
    readable = re.sub(r"[^a-z0-9]+", "-", str(model).lower()).strip("-")[:60]
    return folder / f"{readable}-{hashlib.sha256(str(model).encode()).hexdigest()[:8]}{SUFFIX}"


def forget(folder: Path, texts: Sequence[str]) -> None:
    """Write every file without the vectors of these texts; StorageTrouble when that could not be done."""
    if not texts or not folder.is_dir():
        return
    try:
        with locked(folder):
            for left_over in folder.glob(f".*{SUFFIX}.new"):
                left_over.unlink()  # of a process that was killed
            for path in folder.glob(f"*{SUFFIX}"):
                _forget_in(path, texts)
    except OSError as error:
        raise StorageTrouble(
            f"Cached vectors in {folder} could not be removed: {error.strerror}.",
            hint="Free space or fix the permissions and try again, or delete the folder: it is only a cache.",
        ) from error


def _forget_in(path: Path, texts: Sequence[str]) -> None:
    with path.open("rb") as file:
        header = read_header(file)
        first = file.tell()
    if header is None:
        path.unlink()  # nobody can tell what is in it
        return
    unwanted = {key_of(header.model, text) for text in texts}

    def wanted(_slot: int, key: bytes) -> bool:
        return key not in unwanted

    remaining = sum(1 for _ in kept(path, wanted))
    if first + remaining * header.record_bytes != path.stat().st_size:
        replace(path, Header.new(header.model, header.dimension), kept(path, wanted))
