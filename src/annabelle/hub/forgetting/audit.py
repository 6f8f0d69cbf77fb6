"""Remembers that something was forgotten, without remembering what: a keyed hash, a time, places and numbers."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.needle import fold
from annabelle.hub.forgetting.marker import Pending


def record(home: Home, pending: Pending, counts: Mapping[str, int]) -> None:
    """One line. Whoever knows the text and has the key can tell that it was this one; nobody else can."""
    key = _key(home.audit_key_file)
    entry: dict[str, object] = {
        "at": now().isoformat(timespec="seconds"),
        "by": pending.user_id,
        "hashes": [hmac.new(key, fold(text).encode(), hashlib.sha256).hexdigest() for text in pending.texts],
        "places": dict(counts),
    }
    jsonl.append(home.forgotten_file, [entry])


def _key(path: Path) -> bytes:
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(32).encode())
        return path.read_bytes()
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be used: {error.strerror}.") from error
