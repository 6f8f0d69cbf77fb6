"""Tools that convert money."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import date as Day
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.rates import RateBook
from annabelle.servers.kit import Result, tool

_FIRST = Day(1999, 1, 4)
_SIGNS = {
    "$": "USD", "us$": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "pound": "GBP", "pounds": "GBP", "sterling": "GBP", "¥": "JPY", "yen": "JPY", "zł": "PLN",
    "zloty": "PLN", "złoty": "PLN", "franc": "CHF", "francs": "CHF", "yuan": "CNY", "rmb": "CNY", "₹": "INR",
    "rupee": "INR", "rupees": "INR", "krona": "SEK", "₩": "KRW", "won": "KRW", "₺": "TRY", "lira": "TRY",
}  # fmt: skip

Currency = Annotated[str, Field(min_length=1, max_length=20, description="Code or sign, as in USD, EUR or £")]


class Money(Result):
    """An amount in another currency."""

    amount: str
    from_currency: str
    result: str
    to_currency: str
    rate: str = Field(description="How much of the second one unit of the first is")
    date: Day = Field(description="Of which day the rate is")
    note: str | None = None

    def text(self) -> str:
        note = f" {self.note}" if self.note else ""
        said = f"{self.amount} {self.from_currency} = {self.result} {self.to_currency}"
        return f"{said} (rate {self.rate} of {self.date}).{note}"


class Currencies(Result):
    """Currencies with known rates, by code."""

    currencies: dict[str, str]
    note: str | None = None

    def text(self) -> str:
        lines = [f"{code}: {name}" for code, name in sorted(self.currencies.items())]
        return "\n".join([*lines, *([self.note] if self.note else [])])


class CurrencyTools:
    """convert_currency and list_currencies."""

    def __init__(self, book: RateBook, clock: Callable[[], datetime]) -> None:
        self._book, self._clock = book, clock

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def convert_currency(
        self,
        amount: Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False, description="How much")],
        from_currency: Currency,
        to_currency: Currency,
        date: Annotated[Day | None, Field(description="Day of the rate, as in 2026-03-15; leave out for today")] = None,
    ) -> Money:
        """Convert an amount of money with the reference rates of a day. They are published on working days and are not
        what a bank charges."""
        if date is not None and not _FIRST <= date <= self._clock().date():
            raise InvalidArguments(f"Rates are known from {_FIRST} until today.", field="date")
        source, target = _code(from_currency), _code(to_currency)
        found = await self._book.of(date)
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
        return Money(
            amount=_plain(exact),
            from_currency=source,
            result=_rounded(exact * rate),
            to_currency=target,
            rate=_plain(Decimal(f"{rate:.8g}")),
            date=found.date,
            note=" ".join(notes) or None,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_currencies(self) -> Currencies:
        """List the currencies convert_currency knows, by code."""
        names, stale = await self._book.names()
        return Currencies(currencies=names, note=f"{stale} This is the last known list." if stale else None)


def _code(text: str) -> str:
    return _SIGNS.get(text.strip().lower(), text.strip().upper())


def _rounded(amount: Decimal) -> str:
    """To the cent; an amount that would vanish keeps its first digits."""
    cents = amount.quantize(Decimal("0.01"))
    return f"{cents:f}" if cents or not amount else _plain(Decimal(f"{amount:.4g}"))


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
