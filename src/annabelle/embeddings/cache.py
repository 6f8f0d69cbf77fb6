"""Stores a provider's vectors on disk so that no text is paid or waited for twice. File: magic (8), header length (4),
header checksum (4), JSON header, then records of key (32), vector (4 × dimension) and checksum (4).
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import struct
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from annabelle.core.errors import StorageTrouble
from annabelle.core.tools import JsonObject
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName, find_prefixes, is_blank

KEY_BYTES = 32
_MAGIC = b"ANNAVEC1"
_FIXED = struct.Struct("<8sII")
_CHECKSUM = struct.Struct("<I")
_LONGEST_HEADER = 4096
_LARGEST_DIMENSION = 1 << 16


@dataclass(frozen=True, slots=True)
class CacheHeader:
    """Whose vectors a file holds. A file that is written anew gets another generation."""

    model: ModelName
    dimension: int
    generation: str

    @classmethod
    def create(cls, model: ModelName, dimension: int) -> CacheHeader:
        return cls(model, dimension, secrets.token_hex(8))

    @property
    def record_bytes(self) -> int:
        return KEY_BYTES + 4 * self.dimension + _CHECKSUM.size

    def pack(self) -> bytes:
        values = {
            "generation": self.generation,
            "provider": self.model.provider,
            "model": self.model.name,
            "dimension": self.dimension,
        }
        body = json.dumps(values).encode()
        return _FIXED.pack(_MAGIC, len(body), zlib.crc32(body)) + body


def read_header(file: BinaryIO) -> CacheHeader | None:
    """The header, with the file behind it; None when this is no such file, or a damaged one."""
    fixed = file.read(_FIXED.size)
    if len(fixed) < _FIXED.size:
        return None
    magic, length, checksum = cast("tuple[bytes, int, int]", _FIXED.unpack(fixed))
    if magic != _MAGIC or length > _LONGEST_HEADER:
        return None
    body = file.read(length)
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    try:
        return _header_from(cast("JsonObject", json.loads(body)))
    except (ValueError, KeyError, TypeError):
        return None


def _header_from(values: JsonObject) -> CacheHeader | None:
    model = ModelName(str(values["provider"]), str(values["model"]))
    header = CacheHeader(model, int(str(values["dimension"])), str(values["generation"]))
    return header if 0 < header.dimension <= _LARGEST_DIMENSION else None


def pack_record(key: bytes, vector: bytes) -> bytes:
    return key + vector + _CHECKSUM.pack(zlib.crc32(vector, zlib.crc32(key)))


def is_whole(record: bytes | memoryview) -> bool:
    """Whether a record is as it was written."""
    return _CHECKSUM.pack(zlib.crc32(record[: -_CHECKSUM.size])) == record[-_CHECKSUM.size :]


def unpack_vector(record: bytes) -> bytes:
    return record[KEY_BYTES : -_CHECKSUM.size]


def make_cache_key(model: ModelName, text: str) -> bytes:
    """The key of a text, other for each model and for what the model is told before the text."""
    whole = f"{model.provider}\0{model.name}\0{find_prefixes(model).document}{text}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()


LOCK_SECONDS = 5.0
_LOOK_SECONDS = 0.005


@contextmanager
def lock_folder(folder: Path) -> Generator[None]:
    """Hold the folder; OSError when another process does not let go of it in time. Not for the event loop."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        give_up = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                if time.monotonic() > give_up:
                    raise OSError(errno.EBUSY, "Another process does not let go of it", str(folder)) from error
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


LARGEST_FILE = 200 << 20
SUFFIX = ".vectors"
_READ_BYTES = 4 << 20

Vectors = dict[bytes, NDArray[np.float32]]


class VectorCacheFile:
    """Records are only ever appended, under a lock; who reads needs none, as every record is checked.

    In memory stand the first eight bytes of each key, one whole number per record.
    """

    def __init__(self, path: Path, model: ModelName, largest: int = LARGEST_FILE) -> None:
        self._path, self._model, self._largest = path, model, largest
        self._one_at_a_time = threading.Lock()
        self._generation = ""
        self._starts = np.empty(0, np.uint64)

    def read(self, keys: Sequence[bytes]) -> Vectors:
        """The vectors that are known; none from a file that is missing, damaged or of another model."""
        with self._one_at_a_time:
            return self._read(keys)

    def add(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write vectors down, all of one dimension. A file of another one, or a damaged one, is replaced."""
        dimension = len(next(iter(vectors.values())))
        with self._one_at_a_time, lock_folder(self._path.parent):
            header = self._header()
            if header is None or header.dimension != dimension:
                header = CacheHeader.create(self._model, dimension)
                _replace_file(self._path, header, [])
                for other in self._path.parent.glob(f"*{SUFFIX}"):
                    if other != self._path:
                        other.unlink(missing_ok=True)  # a model that was changed for this one
            known = self._read(list(vectors))
            records = [pack_record(key, row.tobytes()) for key, row in vectors.items() if key not in known]
            if records:
                self._append(header, records)

    def clear(self) -> None:
        """Remove the file."""
        with self._one_at_a_time, lock_folder(self._path.parent):
            self._path.unlink(missing_ok=True)

    def _header(self) -> CacheHeader | None:
        try:
            with self._path.open("rb") as file:
                header = read_header(file)
        except FileNotFoundError:
            return None
        return header if header is not None and header.model == self._model else None

    def _read(self, keys: Sequence[bytes]) -> Vectors:
        found: Vectors = {}
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return found
        with file:
            header = read_header(file)
            if header is None or header.model != self._model:
                return found
            first = file.tell()
            self._read_new_keys(file.fileno(), header, first)
            for key in keys:
                start = np.frombuffer(key[:8], np.uint64)[0]
                for slot in np.flatnonzero(self._starts == start)[::-1].tolist():
                    record = os.pread(file.fileno(), header.record_bytes, first + slot * header.record_bytes)
                    if len(record) == header.record_bytes and record[:KEY_BYTES] == key and is_whole(record):
                        found[key] = np.frombuffer(unpack_vector(record), np.float32)
                        break
        return found

    def _read_new_keys(self, descriptor: int, header: CacheHeader, first: int) -> None:
        """Read the keys that came since the last look, or all of them when the file was written anew."""
        count = (os.fstat(descriptor).st_size - first) // header.record_bytes
        if header.generation != self._generation or count < len(self._starts):
            self._generation = header.generation
            self._starts = np.empty(0, np.uint64)
        parts = [self._starts]
        at_once = max(1, _READ_BYTES // header.record_bytes)
        for slot in range(len(self._starts), count, at_once):
            wanted = min(at_once, count - slot) * header.record_bytes
            block = os.pread(descriptor, wanted, first + slot * header.record_bytes)
            whole = len(block) // header.record_bytes
            rows = np.frombuffer(block, np.uint8, whole * header.record_bytes).reshape(whole, header.record_bytes)
            parts.append(np.ascontiguousarray(rows[:, :8]).view(np.uint64)[:, 0])
            if len(block) < wanted:
                break
        self._starts = np.concatenate(parts)

    def _append(self, header: CacheHeader, records: list[bytes]) -> None:
        first = len(header.pack())
        size = self._path.stat().st_size
        if size + len(records) * header.record_bytes > self._largest:
            header = self._halve(header, (size - first) // header.record_bytes)
            first, size = len(header.pack()), self._path.stat().st_size
        whole = size - (size - first) % header.record_bytes
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.ftruncate(descriptor, whole)  # half a record is what a killed process leaves
            data = memoryview(b"".join(records))
            written = 0
            try:
                while written < len(data):
                    written += os.write(descriptor, data[written:])
            except OSError:
                os.ftruncate(descriptor, whole)
                raise
        finally:
            os.close(descriptor)

    def _halve(self, header: CacheHeader, count: int) -> CacheHeader:
        """Keep the newer half; the oldest vectors are the ones least likely to be asked for again."""
        fresh = CacheHeader.create(header.model, header.dimension)
        _replace_file(self._path, fresh, _iterate_whole_records(self._path, count // 2))
        return fresh


def _iterate_whole_records(path: Path, first: int) -> Iterator[bytes]:
    """The records of a file that are whole, from one on, one by one: all together may be large."""
    with path.open("rb") as file:
        header = read_header(file)
        if header is None:
            return
        file.seek(first * header.record_bytes, os.SEEK_CUR)
        while len(record := file.read(header.record_bytes)) == header.record_bytes:
            if is_whole(record):
                yield record


def _replace_file(path: Path, header: CacheHeader, records: Iterable[bytes]) -> None:
    """Put a new file in the place of the old one, so that a reader or a crash sees one or the other."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(header.pack())
            file.writelines(records)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def cache_path(folder: Path, model: ModelName) -> Path:
    """The file of a model, with a name a person recognises."""
    readable = re.sub(r"[^a-z0-9]+", "-", str(model).lower()).strip("-")[:60]
    return folder / f"{readable}-{hashlib.sha256(str(model).encode()).hexdigest()[:8]}{SUFFIX}"


def clear_cache(folder: Path) -> None:
    """Remove every vector of every model, as when a text is forgotten: texts are known here by their hashes only.

    StorageTrouble when that could not be done. Which model a server was asked for stays known.
    """
    if not folder.is_dir():
        return
    try:
        with lock_folder(folder):
            for path in folder.iterdir():
                if path.name.endswith((SUFFIX, f"{SUFFIX}.new")):  # the latter of a process that was killed
                    path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageTrouble(
            f"Cached vectors in {folder} could not be removed: {error.strerror}.",
            hint="Fix the permissions and try again, or delete the folder: it is only a cache.",
        ) from error


_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_WRITE_BATCH = 256
"""Texts after which what came is written down: a provider that goes away in the middle has not worked in vain."""


class CachedEmbedder:
    """Asks the provider only for what is not on disk. Trouble with the disk costs time, never an answer."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner, self._folder = inner, folder
        self._file: VectorCacheFile | None = None
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
        found: Vectors = await self._use_file(lambda file: file.read(list(keys.values()))) or {}
        return {text: found[key] for text, key in keys.items() if key in found}

    async def _write_cached(self, texts: list[str], rows: NDArray[np.float32]) -> None:
        # Keys are made here once more: the model may have been chosen just now, and it is a part of them.
        new = {make_cache_key(self.model, text): row for text, row in zip(texts, rows, strict=True)}
        await self._use_file(lambda file: file.add(new))

    async def _dimension_of(self, vectors: Mapping[str, NDArray[np.float32]]) -> int:
        for vector in vectors.values():
            await self._check_dimension(len(vector))
            return len(vector)
        return self._dimension or (await self._inner.embed([""])).shape[1]

    async def _check_dimension(self, dimension: int) -> None:
        """Once given out, a dimension never changes while this process lives."""
        if self._dimension not in (None, dimension):
            await self._use_file(VectorCacheFile.clear)
            raise EmbeddingsUnavailable(
                f"The model {self.model} now gives {dimension} numbers instead of {self._dimension}.",
                hint="Restart Annabelle; it then makes all vectors anew.",
            )
        self._dimension = dimension

    async def _embed_again(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The model of this name is another one since the file was written: nothing in it is worth keeping."""
        await self._use_file(VectorCacheFile.clear)
        rows = await self._inner.embed(texts)
        await self._check_dimension(rows.shape[1])
        return rows

    async def _embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Queries are not written down: no one keeps their words, so no one could name them to be forgotten."""
        rows = await self._inner.embed(texts, query=True)
        await self._check_dimension(rows.shape[1])
        return rows

    async def _use_file(self, act: Callable[[VectorCacheFile], _Result]) -> _Result | None:
        """What the file gives; None, and one complaint in the log, when the disk does not."""
        if not self.model.name:
            return None  # not yet known whose vectors these will be
        if self._file is None:
            self._file = VectorCacheFile(cache_path(self._folder, self.model), self.model)
        try:
            result = await asyncio.to_thread(act, self._file)
        except OSError as error:
            if not self._complained:
                _log.warning("Vectors are not cached: %s can not be used (%s).", self._folder, error.strerror)
            self._complained = True
            return None
        return result
