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
_BEGUN: Final = b"\nbegun\n"
"""Stands behind a key that an audit was begun with; forgetting needs a key too, and may have come first."""


def read_key(path: Path) -> bytes | None:
    """The key, or None when this home has none yet."""
    try:
        return path.read_bytes().removesuffix(_BEGUN) or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be read: {error.strerror}.") from error


def has_begun(path: Path) -> bool:
    """Whether the key says that an audit was begun with it: who has a head then and finds none was robbed of it."""
    try:
        return path.read_bytes().endswith(_BEGUN)
    except FileNotFoundError:
        return False


def make_key(path: Path) -> bytes:
    """The key of this home; the first call makes it."""
    return read_key(path) or keep_key(path, new_key())


def new_key() -> bytes:
    return secrets.token_hex(32).encode()


def keep_key(path: Path, key: bytes, *, begun: bool = False) -> bytes:
    try:
        write_atomically(path, (key + _BEGUN if begun else key).decode())
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be used: {error.strerror}.") from error
    return key


def keyed(key: bytes, blob: bytes) -> str:
    """A fingerprint that tells nothing to whoever lacks the key: a guess can not be tried."""
    return hmac.digest(key, blob, hashlib.sha256).hex()
