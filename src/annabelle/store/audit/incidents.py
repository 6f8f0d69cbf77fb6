"""What befell an audit that is whole: told by `verify` in a sentence each, because none of it is tampering."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from annabelle.store.audit.record import Record

_JITTER: Final = timedelta(seconds=5)
"""Notes of two threads may stand a moment out of order, and a clock that is kept right takes small steps."""


def incident(record: Record, before: Record | None) -> str | None:
    """What the record says of the audit itself or, by its time, of the clock."""
    if record.kind == "audit":
        return _own_words(record)
    if before is None or before.kind == "audit":
        return None
    back = datetime.fromisoformat(before.at) - datetime.fromisoformat(record.at)
    return f"Before record {record.n} the clock was set back by {_length(back)}." if back > _JITTER else None


def _own_words(record: Record) -> str | None:
    facts = record.facts
    match facts.get("event"):
        case "gap":
            return (
                f"Record {record.n} says that {facts.get('lost')} records could not be written since"
                f" {facts.get('since')} and are lost."
            )
        case "repaired":
            return f"Before record {record.n} a crash tore a line: {facts.get('bytes')} bytes are in audit.torn."
        case _:
            return None


def _length(back: timedelta) -> str:
    minutes, seconds = divmod(int(back.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    told = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")) if count]
    return " ".join(told[:2])
