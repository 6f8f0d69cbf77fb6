"""Column types that mean the same on both engines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sqlalchemy import TIMESTAMP, Dialect, Text, TypeDecorator
from sqlalchemy.types import TypeEngine


class Moment(TypeDecorator[datetime]):
    """An aware point in time: ISO-8601 text on SQLite, timestamptz on PostgreSQL."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A time without a zone can not be stored.")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.isoformat(timespec="microseconds")

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text of people and models. What no engine can hold (NUL, lone surrogates) becomes the replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value.replace("\x00", "\ufffd") if "\x00" in value else value


class Json(TypeDecorator[object]):
    """Any JSON value. Kept as escaped text, so that every string comes back exactly as it went in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else json.loads(value)
