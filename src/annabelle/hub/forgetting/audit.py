"""Remembers that something was forgotten, without remembering what: a keyed hash, a time, places and numbers."""

from __future__ import annotations

from collections.abc import Mapping

from annabelle.core import jsonl
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.needle import fold
from annabelle.hub.forgetting.marker import Pending
from annabelle.store.audit.key import keyed, make_key


def record(home: Home, pending: Pending, counts: Mapping[str, int]) -> list[str]:
    """One line. Whoever knows the text and has the key can tell that it was this one; nobody else can."""
    key = make_key(home.audit_key_file)
    hashes = [keyed(key, fold(text).encode()) for text in pending.texts]
    entry: dict[str, object] = {
        "at": now().isoformat(timespec="seconds"),
        "by": pending.user_id,
        "hashes": hashes,
        "places": dict(counts),
    }
    jsonl.append(home.forgotten_file, [entry])
    return hashes
