"""The vectors of one model on disk, shared by all processes of one home."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.cache_format import KEY_BYTES, Header, is_whole, packed_record, read_header, vector_in
from annabelle.embeddings.cache_lock import locked
from annabelle.embeddings.embedder import ModelName

LARGEST = 200 << 20
SUFFIX = ".vectors"
_READ_BYTES = 4 << 20

Vectors = dict[bytes, NDArray[np.float32]]


class CacheFile:
    """Records are only ever appended, under a lock; who reads needs none, as every record is checked.

    In memory stand the first eight bytes of each key, one whole number per record.
    """

    def __init__(self, path: Path, model: ModelName, largest: int = LARGEST) -> None:
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
        with self._one_at_a_time, locked(self._path.parent):
            header = self._header()
            if header is None or header.dimension != dimension:
                header = Header.new(self._model, dimension)
                _replace(self._path, header, [])
                for other in self._path.parent.glob(f"*{SUFFIX}"):
                    if other != self._path:
                        other.unlink(missing_ok=True)  # a model that was changed for this one
            known = self._read(list(vectors))
            records = [packed_record(key, row.tobytes()) for key, row in vectors.items() if key not in known]
            if records:
                self._append(header, records)

    def clear(self) -> None:
        """Remove the file."""
        with self._one_at_a_time, locked(self._path.parent):
            self._path.unlink(missing_ok=True)

    def _header(self) -> Header | None:
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
            self._notice_new(file.fileno(), header, first)
            for key in keys:
                start = np.frombuffer(key[:8], np.uint64)[0]
                for slot in np.flatnonzero(self._starts == start)[::-1].tolist():
                    record = os.pread(file.fileno(), header.record_bytes, first + slot * header.record_bytes)
                    if len(record) == header.record_bytes and record[:KEY_BYTES] == key and is_whole(record):
                        found[key] = np.frombuffer(vector_in(record), np.float32)
                        break
        return found

    def _notice_new(self, descriptor: int, header: Header, first: int) -> None:
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

    def _append(self, header: Header, records: list[bytes]) -> None:
        first = len(header.packed())
        size = self._path.stat().st_size
        if size + len(records) * header.record_bytes > self._largest:
            header = self._halve(header, (size - first) // header.record_bytes)
            first, size = len(header.packed()), self._path.stat().st_size
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

    def _halve(self, header: Header, count: int) -> Header:
        """Keep the newer half; the oldest vectors are the ones least likely to be asked for again."""
        fresh = Header.new(header.model, header.dimension)
        _replace(self._path, fresh, _whole_from(self._path, count // 2))
        return fresh


def _whole_from(path: Path, first: int) -> Iterator[bytes]:
    """The records of a file that are whole, from one on, one by one: all together may be large."""
    with path.open("rb") as file:
        header = read_header(file)
        if header is None:
            return
        file.seek(first * header.record_bytes, os.SEEK_CUR)
        while len(record := file.read(header.record_bytes)) == header.record_bytes:
            if is_whole(record):
                yield record


def _replace(path: Path, header: Header, records: Iterable[bytes]) -> None:
    """Put a new file in the place of the old one, so that a reader or a crash sees one or the other."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(header.packed())
            file.writelines(records)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
