"""Checks what the tools are given: texts without secrets (MEM-05), dates, and whose memory a call is about (I-30)."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated
from unicodedata import category
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from annabelle.core.errors import ConfigMistake, InvalidArguments, NotAllowed
from annabelle.core.messages import OWNER
from annabelle.core.secrets.redactor import MASK
from annabelle.core.text import fold_with_positions
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.kit import Call, deferred_module
from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from annabelle.core.secrets import id_numbers, in_prose, patterns
else:
    id_numbers = deferred_module("annabelle.core.secrets.id_numbers")
    in_prose = deferred_module("annabelle.core.secrets.in_prose")
    patterns = deferred_module("annabelle.core.secrets.patterns")


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class SecretSpan:
    """Where a text holds a secret, and of which kind."""

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> list[SecretSpan]:
    """Every secret in the text, in order. Full-width digits, zero-width characters and the like hide none."""
    # What was masked before is no secret any more; commas of the same length end a value and keep the places.
    folded = fold_with_positions(text.replace(MASK, "," * len(MASK)))
    found = [
        *patterns.find_patterns(folded.text),
        *id_numbers.find_id_numbers(folded.text),
        *in_prose.find_in_prose(folded.text),
    ]
    return sorted(SecretSpan(*folded.original_span(start, end), kind) for kind, start, end in found)


def find_secret_kind(text: str) -> str | None:
    """The kind of the first secret in the text, or None. Never the value: it is in nobody's log."""
    found = find_secrets(text)
    return found[0].kind if found else None


def refuse_secret(text: str, *, what: str = "fact", field: str | None = None) -> None:
    """Raise NotAllowed for a text with a secret in it. The sentence and the log name the kind only."""
    kind = find_secret_kind(text)
    if kind is None:
        return
    _log.warning("refused a %s: it looks like it holds a %s", what, kind)
    raise NotAllowed(
        f"This {what} looks like it holds a {kind}, and memory keeps no secrets. Nothing was stored.",
        hint="Say it without the secret itself, for example where the secret is kept.",
        field=field,
    )


def mask_secrets(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret masked, and the kinds that were found."""
    found = find_secrets(text)
    kept: list[str] = []
    position = 0
    for secret in found:
        if secret.end > position:
            kept.append(text[position : max(position, secret.start)])
            if secret.start >= position:
                kept.append(MASK)
            position = secret.end
    return "".join(kept) + text[position:], tuple(dict.fromkeys(secret.kind for secret in found))


def clean_text(text: str) -> str:
    """Text without control characters and lone surrogates; line breaks stay."""
    if text.isprintable():  # most are
        return text.strip()
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\r\n", "\n")
    return "".join(one for one in whole if one in "\n\t" or category(one) != "Cc").strip()


def one_line(text: str) -> str:
    """Text with every white space made one space."""
    return " ".join(clean_text(text).split())


def shorten(text: str, most: int) -> str:
    """Text of at most so many characters; what was cut off shows as …"""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _require_text(text: str) -> str:
    if not text:
        raise ValueError("it has no letters in it")
    return text


def refuse_secrets(what: str, values: JsonObject) -> None:
    """None of these fields may hold a secret; the first that does is named."""
    for field, text in values.items():
        if isinstance(text, str) and text:
            refuse_secret(text, what=what, field=field)


def drop_missing(**values: object) -> JsonObject:
    """The arguments that were given; an empty text removes what was there."""
    return {name: value if value != "" else None for name, value in values.items() if value is not None}


def lowest_trust(*labels: str) -> Trust:
    """The trust of combined content: that of its least trusted part."""
    return "untrusted" if "untrusted" in labels else "trusted"


Name = Annotated[str, Field(max_length=200), AfterValidator(one_line), AfterValidator(_require_text)]
Label = Annotated[str, Field(max_length=200), AfterValidator(one_line)]
Notes = Annotated[str, Field(max_length=4000), AfterValidator(clean_text)]
RowId = Annotated[int, Field(ge=1, le=2**53)]
Agent = Annotated[str | None, Field(description="The agent whose memory is meant; leave it out for your own")]


_OWN = ("", "main")
"""What an agent may write for itself; skills made elsewhere say main."""

_AGENT_ID = re.compile(r"[\w.-]{1,64}")


def resolve_owner(call: Call, asked: str | None = None) -> Owner:
    """The owner a call works for. People may name another agent of theirs; an agent has no memory but its own."""
    if not call.user_id or not call.agent_id:
        raise NotAllowed("This call does not say whose memory it is about.", hint="Ask through the hub.")
    if asked is None or asked in _OWN or asked == call.agent_id:
        return Owner(call.user_id, call.agent_id)
    if call.caller not in ("api", "cli", "hub"):
        raise NotAllowed(
            "An agent works on its own memory, not on that of another.", hint="Leave agent_id out.", field="agent_id"
        )
    if not _AGENT_ID.fullmatch(asked):
        raise InvalidArguments("agent_id is not the id of an agent.", field="agent_id")
    return Owner(call.user_id, asked)


def resolve_origin(call: Call) -> tuple[Trust, JsonObject]:
    """How far the content of this call may be trusted, and what is kept about where it came from (MEM-09).

    What an agent brings is untrusted unless the hub vouches for it; people speak for themselves.
    """
    trust = call.trust or ("trusted" if call.caller in ("api", "cli", "hub") else "untrusted")
    facts: JsonObject = {
        "kind": call.caller or "agent",
        "message_id": call.message_id,
        "thread_id": call.thread_id,
        "channel": call.channel,
        "call_id": call.call_id,
        "tools": list(call.origins) or None,
    }
    return trust, {name: value for name, value in facts.items() if value is not None}


def require_home_owner(call: Call) -> None:
    """Backups hold everyone's rows, so only the owner of the home may see or restore them."""
    if call.user_id != OWNER:
        raise NotAllowed("Only the owner of this home may do that.")


_HOW = "Write it as in 2026-01-31 or 2026-01-31T08:00."


def load_zone(name: str) -> ZoneInfo:
    """The user's time zone by its name, as in Europe/Berlin."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise ConfigMistake(f"USER_TIMEZONE is not a time zone: {name!r}.", field="USER_TIMEZONE") from error


def start_of(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The moment a date begins, or the given time; without an offset it is the user's own."""
    return _parse_date(text, zone, field, days=0)


def end_of(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The first moment that is no longer meant: the next day's for a date, the next microsecond's for a time."""
    return _parse_date(text, zone, field, days=1)


def _parse_date(text: str, zone: ZoneInfo, field: str, days: int) -> datetime:
    wanted = text.strip()
    try:
        if len(wanted) <= len("2026-01-31"):
            day = date.fromisoformat(wanted) + timedelta(days=days)
            return datetime.combine(day, time(), zone).astimezone(UTC)
        moment = datetime.fromisoformat(wanted)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return aware.astimezone(UTC) + timedelta(microseconds=days)
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(f"{field} is not a date: {wanted[:40]!r}.", hint=_HOW, field=field) from error


def read_date_range(
    date_from: str | None, date_to: str | None, zone: ZoneInfo
) -> tuple[datetime | None, datetime | None]:
    """The moments between two dates, both included; one that ends before it begins is refused."""
    since = None if date_from is None else start_of(date_from, zone, "date_from")
    until = None if date_to is None else end_of(date_to, zone, "date_to")
    if since is not None and until is not None and until <= since:
        raise InvalidArguments(
            f"date_to ({date_to}) is before date_from ({date_from}).", hint="Swap them.", field="date_to"
        )
    return since, until
