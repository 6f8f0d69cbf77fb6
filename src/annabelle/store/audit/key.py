"""The key of a home's audit: made once, readable by its owner only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Final

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically

SHORT: Final = 16


def read_key(path: Path) -> bytes | None:
    """The key, or None when this home has none yet."""
    try:
        return path.read_bytes() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be read: {error.strerror}.") from error


def make_key(path: Path) -> bytes:
    """The key of this home; the first call makes it."""
    return read_key(path) or keep_key(path, new_key())


def new_key() -> bytes:
    return secrets.token_hex(32).encode()


def keep_key(path: Path, key: bytes) -> bytes:
    try:
        write_atomically(path, key.decode())
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be used: {error.strerror}.") from error
    return key


def keyed(key: bytes, blob: bytes) -> str:
    """A fingerprint that tells nothing to whoever lacks the key: a guess can not be tried."""
    return hmac.digest(key, blob, hashlib.sha256).hex()
