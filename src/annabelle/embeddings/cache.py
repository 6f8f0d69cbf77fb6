"""Caches a provider's vectors in a SQLite file, so that no text is embedded twice (SEL-07)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from annabelle.core.errors import StorageTrouble
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName, find_prefixes, is_blank

if TYPE_CHECKING:
    import sqlite3 as driver
else:
    import sqlean.dbapi2 as driver  # as in store.engine, without loading SQLAlchemy

FILE_NAME: Final = "vectors.db"
LARGEST_FILE: Final = 200 << 20
LOCK_SECONDS = 5.0
_TROUBLE: Final = re.compile("locked|full|readonly|unable to open|disk I/O")
"""SQLite errors after which the file may still be intact. All others mean that it is damaged."""
_OLD_FILES: Final = (".vectors", ".vectors.new", ".lock")
"""Name suffixes of files that earlier versions wrote."""
_TABLE: Final = """CREATE TABLE IF NOT EXISTS vectors (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, model TEXT NOT NULL, vector BLOB NOT NULL,
    checksum INTEGER NOT NULL
)"""

Vectors = dict[bytes, NDArray[np.float32]]
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


def make_cache_key(model: ModelName, text: str) -> bytes:
    """Returns the key of a text, which depends on the model and its document prefix."""
    whole = f"{model.provider}\0{model.name}\0{find_prefixes(model).document}{text}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()


def clear_cache(folder: Path) -> None:
    """Removes all vectors, because texts are known only by hash and none can be selected. StorageTrouble on failure."""
    if not folder.is_dir():
        return
    try:
        VectorCache(folder).clear()
    except OSError as error:
        raise StorageTrouble(
            f"Cached vectors in {folder} could not be removed: {error.strerror or error}.",
            hint="Fix the permissions and try again, or delete the folder: it is only a cache.",
        ) from error


class VectorCache:
    """Vectors of one model at a time. Several processes may share the file; a damaged one is replaced.

    Opens a connection per call, so that a deleted or replaced file is noticed. Raises only OSError.
    """

    def __init__(self, folder: Path, largest: int = LARGEST_FILE) -> None:
        self._path, self._largest = folder / FILE_NAME, largest

    def read(self, keys: Sequence[bytes]) -> Vectors:
        """Returns the known, intact vectors."""
        found: Vectors = {}
        if not self._path.exists():
            return found
        try:
            with self._transaction("BEGIN") as connection:
                for key in keys:
                    row = connection.execute("SELECT vector, checksum FROM vectors WHERE key = ?", (key,)).fetchone()
                    if row is not None and isinstance(row[0], bytes) and row[1] == _checksum(key, row[0]):
                        found[key] = np.frombuffer(row[0], np.float32)
        except driver.Error as error:
            self._discard_damaged(error)
        return found

    def add(self, model: ModelName, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Stores vectors of one dimension. Removes those of another model or dimension."""
        size = 4 * len(next(iter(vectors.values())))
        rows = [(key, str(model), data := row.tobytes(), _checksum(key, data)) for key, row in vectors.items()]

        def insert(connection: driver.Connection) -> None:
            held = connection.execute("SELECT model, length(vector) FROM vectors LIMIT 1").fetchone()
            if held not in (None, (str(model), size)):
                connection.execute("DELETE FROM vectors")
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (key, model, vector, checksum) VALUES (?, ?, ?, ?)", rows
            )
            pages, free, page_bytes = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            if (pages - free) * page_bytes > self._largest:
                # The oldest vectors are least likely to be needed again. SQLite reuses their pages.
                connection.execute("DELETE FROM vectors WHERE id <= (SELECT (min(id) + max(id)) / 2 FROM vectors)")

        if not self._path.exists():
            self._remove_old_files()
        self._write(insert)

    def clear(self) -> None:
        self._remove_old_files()
        if self._path.exists():
            self._write(lambda connection: connection.execute("DELETE FROM vectors"))

    def _write(self, act: Callable[[driver.Connection], object]) -> None:
        """Runs a transaction; if the file is damaged, once more with a new one."""
        try:
            self._write_once(act)
        except driver.Error as damage:
            self._discard_damaged(damage)
            try:
                self._write_once(act)
            except driver.Error as error:
                raise OSError(str(error)) from error

    def _write_once(self, act: Callable[[driver.Connection], object]) -> None:
        with self._transaction("BEGIN IMMEDIATE") as connection:
            connection.execute(_TABLE)
            act(connection)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[driver.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._path.exists():  # opening and closing an existing file would drop SQLite's locks on it
            self._path.touch(mode=0o600)
        connection = driver.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA secure_delete = ON")  # forgotten data must leave no bytes behind
            connection.execute("PRAGMA synchronous = OFF")  # a cache may be lost in a power cut
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _discard_damaged(self, error: driver.Error) -> None:
        """Deletes the file, or raises OSError if it may be intact."""
        if _TROUBLE.search(str(error)):
            raise OSError(str(error)) from error
        for path in (self._path, self._path.with_name(f"{FILE_NAME}-journal")):
            path.unlink(missing_ok=True)

    def _remove_old_files(self) -> None:
        for path in self._path.parent.glob("*"):
            if path.name.endswith(_OLD_FILES):
                path.unlink(missing_ok=True)


def _checksum(key: bytes, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(key))


_WRITE_BATCH = 256
"""Vectors are written after so many texts, so that a later failure does not waste them."""


class CachedEmbedder:
    """Asks the provider only for vectors that are not cached. Disk errors cost time, never an answer."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner, self._cache = inner, VectorCache(folder)
        self._folder = folder
        self._dimension: int | None = None
        self._complained = False

    @property
    def model(self) -> ModelName:
        return self._inner.model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self._dimension or 0), np.float32)
        if query:
            return await self._embed_queries(texts)
        wanted = list(dict.fromkeys(text for text in texts if not is_blank(text)))
        vectors = await self._read_cached(wanted)
        missing = [text for text in wanted if text not in vectors]
        for start in range(0, len(missing), _WRITE_BATCH):
            part = missing[start : start + _WRITE_BATCH]
            fresh = await self._inner.embed(part)
            if vectors and fresh.shape[1] != len(next(iter(vectors.values()))):
                return await self._embed_again(texts)
            vectors.update(zip(part, fresh, strict=True))
            await self._write_cached(part, fresh)
        rows = np.zeros((len(texts), await self._dimension_of(vectors)), np.float32)
        for place, text in enumerate(texts):
            if text in vectors:
                rows[place] = vectors[text]
        return rows

    async def close(self) -> None:
        await self._inner.close()

    async def _read_cached(self, texts: list[str]) -> dict[str, NDArray[np.float32]]:
        keys = {text: make_cache_key(self.model, text) for text in texts}
        found: Vectors = await self._use_cache(lambda cache: cache.read(list(keys.values()))) or {}
        return {text: found[key] for text, key in keys.items() if key in found}

    async def _write_cached(self, texts: list[str], rows: NDArray[np.float32]) -> None:
        # The keys include the model, which may have been chosen only after reading.
        new = {make_cache_key(self.model, text): row for text, row in zip(texts, rows, strict=True)}
        await self._use_cache(lambda cache: cache.add(self.model, new))

    async def _dimension_of(self, vectors: Mapping[str, NDArray[np.float32]]) -> int:
        for vector in vectors.values():
            await self._check_dimension(len(vector))
            return len(vector)
        return self._dimension or (await self._inner.embed([""])).shape[1]

    async def _check_dimension(self, dimension: int) -> None:
        """Raises if the dimension changed while this process runs."""
        if self._dimension not in (None, dimension):
            await self._use_cache(VectorCache.clear)
            raise EmbeddingsUnavailable(
                f"The model {self.model} now gives {dimension} numbers instead of {self._dimension}.",
                hint="Restart Annabelle; it then makes all vectors anew.",
            )
        self._dimension = dimension

    async def _embed_again(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Starts over: the cached vectors come from a different model of this name."""
        await self._use_cache(VectorCache.clear)
        rows = await self._inner.embed(texts)
        await self._check_dimension(rows.shape[1])
        return rows

    async def _embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Does not cache queries: their text is stored nowhere, so it could not be found to be forgotten."""
        rows = await self._inner.embed(texts, query=True)
        await self._check_dimension(rows.shape[1])
        return rows

    async def _use_cache(self, act: Callable[[VectorCache], _Result]) -> _Result | None:
        """Uses the cache; returns None, with one warning in the log, if the disk fails."""
        if not self.model.name:
            return None  # the model is not known yet
        try:
            return await asyncio.to_thread(act, self._cache)
        except OSError as error:
            if not self._complained:
                _log.warning("Vectors are not cached: %s can not be used (%s).", self._folder, error.strerror or error)
            self._complained = True
            return None
