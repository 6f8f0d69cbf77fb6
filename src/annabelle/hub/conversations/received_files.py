"""Where files go that people send: a folder of the workspace, each under a name of its own."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from annabelle.hub.security.users_file import hash_token

RECEIVED: Final = "received"
_NAME_BYTES: Final = 100


def make_received_name(name: str, sent_at: datetime, key: str) -> str:
    """The path of a file within the workspace. `key` tells apart what has the same second and the same name."""
    mark = hash_token(key.encode())[:4]
    return f"{RECEIVED}/{sent_at:%Y-%m-%d-%H%M%S}-{mark}-{_safe_name(name)}"


def mention_file(path: str) -> str:
    """What a message says of a file that came with it."""
    return f"(I sent you the file {path})"


def _safe_name(name: str) -> str:
    kept = "".join(sign if sign.isalnum() or sign in "._- " else "_" for sign in Path(name).name).strip(". ")
    # File systems count bytes. The end is kept, since it says what kind of file it is.
    return kept.encode()[-_NAME_BYTES:].decode(errors="ignore") or "file"
