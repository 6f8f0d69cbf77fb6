"""The ledger: every model call, reserved before and settled after, counted once however often it is told (CST-09)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, Text, func, select

from annabelle.core.contract import ModelCall, Reserve, Usage
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.statements import InsertNew, InsertOrUpdate
from annabelle.store.tables import model_calls

_SETTLED = [
    "state",
    "trace_id",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_usd",
    "provider",
    "model",
    "duration_ms",
    "outcome",
    "error_code",
    "settled_at",
]
_insert = InsertNew(model_calls, ["call_id"])
_settle = InsertOrUpdate(model_calls, ["call_id"], _SETTLED, only_if=model_calls.c.state == "reserved")

Grouping = Literal["day", "agent", "model"]


@dataclass(frozen=True, slots=True)
class Total:
    """What one day, agent or model used. `open` calls are reserved and not settled yet."""

    key: str
    calls: int
    open: int
    usage: Usage


def reserve(connection: Connection, request: Reserve) -> bool:
    """Write down a call that is about to be made; whether it was new."""
    values: JsonObject = {
        **request.model_dump(),
        "state": "reserved",
        "input_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "reserved_at": now(),
    }
    return _insert.one(connection, values) is not None


def settle(connection: Connection, call: ModelCall) -> None:
    """Write down how a call ended, reserved or not; the first settlement stays."""
    values: JsonObject = {
        "state": "settled",
        "trace_id": call.trace_id,
        "input_tokens": call.usage.input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cached_tokens": call.usage.cached_tokens,
        "cost_usd": call.usage.cost_usd,
        "provider": call.provider,
        "model": call.model,
        "duration_ms": call.duration_ms,
        "outcome": call.outcome,
        "error_code": call.error_code,
        "settled_at": now(),
        "call_id": call.call_id,
        "agent_id": call.agent_id,
        "user_id": call.user_id,
        "message_id": call.message_id,
        "purpose": call.purpose,
        "estimated_input_tokens": 0,
        "reserved_at": now(),
    }
    _settle(connection, values)


def totals(connection: Connection, user_id: str, by: Grouping = "day") -> list[Total]:
    """What a person's model calls used, grouped; days are UTC."""
    key = _key(connection, by).label("key")
    rows = connection.execute(
        select(
            key,
            func.count().label("calls"),
            func.count().filter(model_calls.c.state == "reserved").label("open"),
            func.sum(model_calls.c.input_tokens).label("input_tokens"),
            func.sum(model_calls.c.output_tokens).label("output_tokens"),
            func.sum(model_calls.c.cached_tokens).label("cached_tokens"),
            func.sum(model_calls.c.cost_usd).label("cost_usd"),
        )
        .where(model_calls.c.user_id == user_id)
        .group_by(key)
        .order_by(key)
    ).mappings()
    return [
        Total(
            key=str(row["key"]),
            calls=int(row["calls"]),
            open=int(row["open"]),
            usage=Usage(
                input_tokens=int(row["input_tokens"]),
                output_tokens=int(row["output_tokens"]),
                cached_tokens=int(row["cached_tokens"]),
                cost_usd=row["cost_usd"],
            ),
        )
        for row in rows
    ]


def _key(connection: Connection, by: Grouping) -> ColumnElement[str]:
    if by == "agent":
        return model_calls.c.agent_id
    if by == "model":
        return model_calls.c.provider + "/" + model_calls.c.model
    if connection.dialect.name == "sqlite":
        return func.substr(model_calls.c.reserved_at, 1, 10, type_=Text)
    return func.to_char(func.timezone("UTC", model_calls.c.reserved_at), "YYYY-MM-DD", type_=Text)
