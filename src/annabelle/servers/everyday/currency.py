"""Tools that convert money, and the exchange rates kept on disk."""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, date as Day, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, cast

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotFound
from annabelle.core.home import write_atomically
from annabelle.core.tools import JsonObject
from annabelle.servers.everyday.web_source import JsonSource, SourceRefused
from annabelle.servers.kit import Result, in_thread, tool

_log = logging.getLogger(__name__)

BASE = "EUR"
"""The source's own base currency: converting through it loses the least precision."""
_KEPT_DAYS = 200
_LATEST = "latest"


class StoredRates(BaseModel):
    """The rates of one day, as they were fetched."""

    date: date
    fetched: date
    rates: dict[str, Decimal] = Field(description="How much of each currency one euro is")


class _RatesFile(BaseModel):
    days: dict[str, StoredRates] = {}
    names: dict[str, str] = {}
    names_fetched: date | None = None


@dataclass(frozen=True, slots=True)
class DayRates:
    """Rates of a day, and whether they are older than wanted because the source did not answer."""

    date: date
    rates: dict[str, Decimal]
    stale: str | None = None


class RateStore:
    """Exchange rates by day, kept in a file."""

    def __init__(self, source: JsonSource, folder: Path, clock: Callable[[], datetime]) -> None:
        self._source, self._file, self._clock = source, folder / "rates.json", clock
        self._lock = asyncio.Lock()

    async def get_rates(self, day: date | None) -> DayRates:
        """The rates of a day, or the newest. One request a day; offline, the last ones that are known."""
        key = _LATEST if day is None else day.isoformat()
        today = self._clock().date()
        async with self._lock:
            rates_file = await in_thread(lambda stop: self._read())
            kept = rates_file.days.get(key)
            if kept is not None and (day is not None or kept.fetched == today):
                return DayRates(kept.date, kept.rates)
            try:
                fresh = self._parse(await self._source.fetch(f"/v1/{key}", {"base": BASE}, fresh=True), today)
            except AnnabelleError as error:
                if day is not None and isinstance(error, SourceRefused) and error.status == 404:
                    raise NotFound(f"There are no rates of {key}.", hint="Rates begin in 1999.") from error
                last = kept or self._nearest(rates_file, day)
                if last is None:
                    raise
                return DayRates(last.date, last.rates, error.message)
            rates_file.days[key] = fresh
            await in_thread(lambda stop: self._write(rates_file))
            return DayRates(fresh.date, fresh.rates)

    async def get_names(self) -> tuple[dict[str, str], str | None]:
        """Every currency by its code, and a note if the list may be outdated."""
        today = self._clock().date()
        async with self._lock:
            rates_file = await in_thread(lambda stop: self._read())
            if rates_file.names and rates_file.names_fetched == today:
                return rates_file.names, None
            try:
                answer = await self._source.fetch("/v1/currencies", {}, fresh=True)
            except AnnabelleError as error:
                if not rates_file.names:
                    raise
                return rates_file.names, error.message
            rates_file.names = {code.upper()[:8]: str(name)[:80] for code, name in list(answer.items())[:500]}
            rates_file.names_fetched = today
            await in_thread(lambda stop: self._write(rates_file))
            return rates_file.names, None

    def _parse(self, answer: JsonObject, today: date) -> StoredRates:
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
            return StoredRates(date=date.fromisoformat(str(answer.get("date"))), fetched=today, rates=rates)
        except ValueError:
            return StoredRates(date=today, fetched=today, rates=rates)

    def _nearest(self, rates_file: _RatesFile, day: date | None) -> StoredRates | None:
        """The stored rates of the nearest day, for when the source cannot be reached."""
        wanted = day or self._clock().date()
        return min(rates_file.days.values(), key=lambda kept: abs(kept.date - wanted), default=None)

    def _read(self) -> _RatesFile:
        try:
            return _RatesFile.model_validate(cast("object", json.loads(self._file.read_bytes())))
        except FileNotFoundError:
            return _RatesFile()
        except (OSError, ValueError, ValidationError) as error:
            _log.warning("The kept exchange rates can not be read and are fetched anew: %s", type(error).__name__)
            return _RatesFile()

    def _write(self, rates_file: _RatesFile) -> None:
        old = sorted((key for key in rates_file.days if key != _LATEST), key=lambda key: rates_file.days[key].fetched)
        for key in old[: max(0, len(old) - _KEPT_DAYS)]:
            del rates_file.days[key]
        try:
            write_atomically(self._file, rates_file.model_dump_json())
        except OSError as error:
            _log.warning("The exchange rates could not be kept: %s", error.strerror)


_FIRST = Day(1999, 1, 4)
_SIGNS = {
    "$": "USD", "us$": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "pound": "GBP", "pounds": "GBP", "sterling": "GBP", "¥": "JPY", "yen": "JPY", "zł": "PLN",
    "zloty": "PLN", "złoty": "PLN", "franc": "CHF", "francs": "CHF", "yuan": "CNY", "rmb": "CNY", "₹": "INR",
    "rupee": "INR", "rupees": "INR", "krona": "SEK", "₩": "KRW", "won": "KRW", "₺": "TRY", "lira": "TRY",
}  # fmt: skip

Currency = Annotated[str, Field(min_length=1, max_length=20, description="Code or sign, as in USD, EUR or £")]


class ConvertedMoney(Result):
    """An amount in another currency."""

    amount: str
    from_currency: str
    result: str
    to_currency: str
    rate: str = Field(description="How much of the second one unit of the first is")
    date: Day = Field(description="Of which day the rate is")
    note: str | None = None

    def to_text(self) -> str:
        note = f" {self.note}" if self.note else ""
        said = f"{self.amount} {self.from_currency} = {self.result} {self.to_currency}"
        return f"{said} (rate {self.rate} of {self.date}).{note}"


class CurrencyList(Result):
    """Currencies with known rates, by code."""

    currencies: dict[str, str]
    note: str | None = None

    def to_text(self) -> str:
        lines = [f"{code}: {name}" for code, name in sorted(self.currencies.items())]
        return "\n".join([*lines, *([self.note] if self.note else [])])


class CurrencyTools:
    """convert_currency and list_currencies."""

    def __init__(self, rates_file: RateStore, clock: Callable[[], datetime]) -> None:
        self._rates, self._clock = rates_file, clock

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def convert_currency(
        self,
        amount: Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False, description="How much")],
        from_currency: Currency,
        to_currency: Currency,
        date: Annotated[Day | None, Field(description="Day of the rate, as in 2026-03-15; leave out for today")] = None,
    ) -> ConvertedMoney:
        """Convert an amount of money with the reference rates of a day. They are published on working days and are not
        what a bank charges."""
        if date is not None and not _FIRST <= date <= self._clock().date():
            raise InvalidArguments(f"Rates are known from {_FIRST} until today.", field="date")
        source, target = _resolve_code(from_currency), _resolve_code(to_currency)
        found = await self._rates.get_rates(date)
        for code, field in ((source, "from_currency"), (target, "to_currency")):
            if code not in found.rates:
                close = difflib.get_close_matches(code, found.rates, n=3)
                hint = f"Did you mean {' or '.join(close)}? " if close else ""
                raise InvalidArguments(
                    f"There is no rate for {code[:20]!r}.", hint=f"{hint}list_currencies shows them all.", field=field
                )
        exact = Decimal(repr(amount))
        rate = found.rates[target] / found.rates[source]
        notes: list[str] = []
        if found.stale:
            notes.append(f"{found.stale} These are the last known rates, of {found.date}.")
        elif date is not None and found.date != date:
            notes.append(f"No rates were published on {date}; these are of {found.date}.")
        return ConvertedMoney(
            amount=_plain(exact),
            from_currency=source,
            result=_rounded(exact * rate),
            to_currency=target,
            rate=_plain(Decimal(f"{rate:.8g}")),
            date=found.date,
            note=" ".join(notes) or None,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_currencies(self) -> CurrencyList:
        """List the currencies convert_currency knows, by code."""
        names, stale = await self._rates.get_names()
        return CurrencyList(currencies=names, note=f"{stale} This is the last known list." if stale else None)


def _resolve_code(text: str) -> str:
    return _SIGNS.get(text.strip().lower(), text.strip().upper())


def _rounded(amount: Decimal) -> str:
    """Rounded to cents; an amount that would round to zero keeps its first digits."""
    cents = amount.quantize(Decimal("0.01"))
    return f"{cents:f}" if cents or not amount else _plain(Decimal(f"{amount:.4g}"))


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
