"""What a file of cached vectors looks like: a header that says whose they are, then records of one length.

magic (8) · length of the rest of the header (4) · its checksum (4) · JSON: generation, provider, model, dimension
record: key (32) · vector (4 times dimension) · checksum of both (4)
"""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO, cast

from annabelle.core.tools import JsonObject
from annabelle.embeddings.embedder import ModelName
from annabelle.embeddings.prefixes import prefixes_of

KEY_BYTES = 32
_MAGIC = b"ANNAVEC1"
_FIXED = struct.Struct("<8sII")
_CHECKSUM = struct.Struct("<I")
_LONGEST_HEADER = 4096
_LARGEST_DIMENSION = 1 << 16


@dataclass(frozen=True, slots=True)
class Header:
    """Whose vectors a file holds. A file that is written anew gets another generation."""

    model: ModelName
    dimension: int
    generation: str

    @classmethod
    def new(cls, model: ModelName, dimension: int) -> Header:
        return cls(model, dimension, secrets.token_hex(8))

    @property
    def record_bytes(self) -> int:
        return KEY_BYTES + 4 * self.dimension + _CHECKSUM.size

    def packed(self) -> bytes:
        values = {
            "generation": self.generation,
            "provider": self.model.provider,
            "model": self.model.name,
            "dimension": self.dimension,
        }
        body = json.dumps(values).encode()
        return _FIXED.pack(_MAGIC, len(body), zlib.crc32(body)) + body


def read_header(file: BinaryIO) -> Header | None:
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


def _header_from(values: JsonObject) -> Header | None:
    model = ModelName(str(values["provider"]), str(values["model"]))
    header = Header(model, int(str(values["dimension"])), str(values["generation"]))
    return header if 0 < header.dimension <= _LARGEST_DIMENSION else None


def packed_record(key: bytes, vector: bytes) -> bytes:
    return key + vector + _CHECKSUM.pack(zlib.crc32(vector, zlib.crc32(key)))


def is_whole(record: bytes | memoryview) -> bool:
    """Whether a record is as it was written."""
    return _CHECKSUM.pack(zlib.crc32(record[: -_CHECKSUM.size])) == record[-_CHECKSUM.size :]


def vector_in(record: bytes) -> bytes:
    return record[KEY_BYTES : -_CHECKSUM.size]


def key_of(model: ModelName, text: str) -> bytes:
    """The key of a text, other for each model and for what the model is told before the text."""
    whole = f"{model.provider}\0{model.name}\0{prefixes_of(model).document}{text}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()
