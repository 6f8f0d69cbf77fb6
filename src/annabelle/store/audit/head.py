"""How far the audit has come, in a small file of its own: records cut off the end are missed by it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from annabelle.core.errors import StorageTrouble
from annabelle.store.audit.key import keyed

_WIDTH: Final = 256


@dataclass(frozen=True, slots=True)
class Head:
    """The number and hash of the last record that is surely on disk. Later ones may follow."""

    n: int
    hash: str


class ForgedHead(Exception):
    """The file is there and was not written by whoever has the key."""


def read_head(path: Path, key: bytes) -> Head | None:
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageTrouble(f"{path.name} can not be read: {error.strerror}.") from error
    try:
        found = json.loads(blob)
        head = Head(int(found["n"]), str(found["hash"]))
        genuine = found["mac"] == _mac(head, key)
    except (ValueError, KeyError, TypeError) as error:
        raise ForgedHead from error
    if not genuine:
        raise ForgedHead
    return head


def write_head(path: Path, head: Head, key: bytes) -> None:
    """Over the old one, in one write of one width: it needs no space on a full disk, and a kill leaves it whole."""
    body = json.dumps({"n": head.n, "hash": head.hash, "mac": _mac(head, key)})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, body.ljust(_WIDTH - 1).encode() + b"\n", 0)
    finally:
        os.close(descriptor)


def _mac(head: Head, key: bytes) -> str:
    return keyed(key, f"head:{head.n}:{head.hash}".encode())
