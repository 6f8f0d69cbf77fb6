"""Exchange rates: asked once a day, kept on disk, and the last known ones when nobody answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import AnnabelleError, NotFound
from annabelle.core.home import write_atomically
from annabelle.servers.everyday.source import JsonObject, Source, SourceRefused
from annabelle.servers.kit import in_thread

_log = logging.getLogger(__name__)

BASE = "EUR"
"""The source reckons in it, so every other pair loses the least by going through it."""
_KEPT_DAYS = 200
_LATEST = "latest"


class KeptRates(BaseModel):
    """The rates of one day, as they were fetched."""

    date: date
    fetched: date
    rates: dict[str, Decimal] = Field(description="How much of each currency one euro is")


class _Kept(BaseModel):
    days: dict[str, KeptRates] = {}
    names: dict[str, str] = {}
    names_fetched: date | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of a day, and whether they are older than wanted because the source did not answer."""

    date: date
    rates: dict[str, Decimal]
    stale: str | None = None


class RateBook:
    """What the source said, by the day asked for."""

    def __init__(self, source: Source, folder: Path, clock: Callable[[], datetime]) -> None:
        self._source, self._file, self._clock = source, folder / "rates.json", clock
        self._lock = asyncio.Lock()

    async def of(self, day: date | None) -> Rates:
        """The rates of a day, or the newest. One request a day; offline, the last ones that are known."""
        key = _LATEST if day is None else day.isoformat()
        today = self._clock().date()
        async with self._lock:
            book = await in_thread(lambda stop: self._read())
            kept = book.days.get(key)
            if kept is not None and (day is not None or kept.fetched == today):
                return Rates(kept.date, kept.rates)
            try:
                fresh = self._parse(await self._source.ask(f"/v1/{key}", {"base": BASE}, fresh=True), today)
            except AnnabelleError as error:
                if day is not None and isinstance(error, SourceRefused) and error.status == 404:
                    raise NotFound(f"There are no rates of {key}.", hint="Rates begin in 1999.") from error
                last = kept or self._nearest(book, day)
                if last is None:
                    raise
                return Rates(last.date, last.rates, error.message)
            book.days[key] = fresh
            await in_thread(lambda stop: self._write(book))
            return Rates(fresh.date, fresh.rates)

    async def names(self) -> tuple[dict[str, str], str | None]:
        """Every currency by its code, and why the list may be old, if it may."""
        today = self._clock().date()
        async with self._lock:
            book = await in_thread(lambda stop: self._read())
            if book.names and book.names_fetched == today:
                return book.names, None
            try:
                answer = await self._source.ask("/v1/currencies", {}, fresh=True)
            except AnnabelleError as error:
                if not book.names:
                    raise
                return book.names, error.message
            book.names = {code.upper()[:8]: str(name)[:80] for code, name in list(answer.items())[:500]}
            book.names_fetched = today
            await in_thread(lambda stop: self._write(book))
            return book.names, None

    def _parse(self, answer: JsonObject, today: date) -> KeptRates:
        rates: dict[str, Decimal] = {BASE: Decimal(1)}
        said = answer.get("rates")
        for code, value in cast("JsonObject", said).items() if isinstance(said, dict) else ():
            try:
                rate = Decimal(str(value))
            except InvalidOperation:
                continue
            if rate.is_finite() and rate > 0:
                rates[code.upper()[:8]] = rate
        try:
            return KeptRates(date=date.fromisoformat(str(answer.get("date"))), fetched=today, rates=rates)
        except ValueError:
            return KeptRates(date=today, fetched=today, rates=rates)

    def _nearest(self, book: _Kept, day: date | None) -> KeptRates | None:
        """Offline: what is known of the days nearest to the one asked for."""
        wanted = day or self._clock().date()
        return min(book.days.values(), key=lambda kept: abs(kept.date - wanted), default=None)

    def _read(self) -> _Kept:
        try:
            return _Kept.model_validate(cast("object", json.loads(self._file.read_bytes())))
        except FileNotFoundError:
            return _Kept()
        except (OSError, ValueError, ValidationError) as error:
            _log.warning("The kept exchange rates can not be read and are fetched anew: %s", type(error).__name__)
            return _Kept()

    def _write(self, book: _Kept) -> None:
        old = sorted((key for key in book.days if key != _LATEST), key=lambda key: book.days[key].fetched)
        for key in old[: max(0, len(old) - _KEPT_DAYS)]:
            del book.days[key]
        try:
            write_atomically(self._file, book.model_dump_json())
        except OSError as error:
            _log.warning("The exchange rates could not be kept: %s", error.strerror)
