"""As much of Gmail's search as the tests ask for."""

from __future__ import annotations

import re
import time
from typing import Any

_WORD = re.compile(r'(-)?(?:(\w+):)?(?:"([^"]*)"|(\S+))')
_PLACES = {"inbox": "INBOX", "sent": "SENT", "trash": "TRASH", "spam": "SPAM", "drafts": "DRAFT"}


def fits(mail: Any, query: str, box: Any) -> bool:
    """Whether a mail is what a query asks for."""
    for minus, key, quoted, word in _WORD.findall(query):
        if _one(mail, key, (quoted or word), box) is bool(minus):
            return False
    return True


def _one(mail: Any, key: str, value: str, box: Any) -> bool:
    parsed, low = mail.parsed, value.lower()
    if key in ("from", "to", "subject"):
        return low in str(parsed[key] or "").lower()
    if key in ("in", "label"):
        names = {name.lower(): one for one, name in box.labels.items()}
        return low == "anywhere" or _PLACES.get(low, names.get(low, value)) in mail.labels
    if key == "is":
        return {"unread": "UNREAD", "starred": "STARRED"}[low] in mail.labels
    if key == "has":
        return any(True for _ in parsed.iter_attachments())
    if key == "newer_than":
        days = int(low[:-1]) * {"d": 1, "m": 30, "y": 365}[low[-1]]
        return mail.at > time.time() - days * 86_400
    if key == "larger":
        return len(mail.data) > int(value)
    if key == "rfc822msgid":
        return mail.message_id.strip("<>") == value.strip("<>")
    assert not key, f"the double does not know {key}:"
    return low in mail.data.decode(errors="replace").lower()
