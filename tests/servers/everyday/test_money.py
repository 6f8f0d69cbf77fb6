"""Money: right to the cent, asked once a day, and the last known rates when nobody answers."""

from __future__ import annotations

import asyncio
import json

import pytest

from annabelle.core.errors import ConfigMistake, InvalidArguments, NotFound, TooManyRequests, Unavailable
from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.server import build
from annabelle.servers.everyday.web_source import JsonSource
from servers.everyday.conftest import HandClock
from servers.everyday.counterparts import Outside
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")

PAIR = {"amount": 100, "from_currency": "USD", "to_currency": "PLN"}


async def test_money_is_converted_with_the_rates_of_the_source(ask: CallTool, outside: Outside) -> None:
    result = await ask("convert_currency", **PAIR)
    assert (result.result, result.rate, str(result.date)) == ("386.36", "3.8636364", "2026-11-13")
    assert outside.asked[0][:2] == ("/v1/latest", {"base": "EUR"})
    assert (await ask("convert_currency", amount=0.1, from_currency="€", to_currency="euro")).result == "0.10"
    assert (
        await ask("convert_currency", amount=0.0001, from_currency="jpy", to_currency="usd")
    ).result == "0.0000006854"


async def test_the_source_is_asked_once_a_day(
    ask: CallTool, outside: Outside, clock: HandClock, everyday_config: EverydayConfig
) -> None:
    await asyncio.gather(*(ask("convert_currency", **PAIR) for _ in range(5)))
    await build(everyday_config).tools["convert_currency"].call(PAIR)
    assert outside.paths() == ["/v1/latest"]
    clock.go(days=1)
    await ask("convert_currency", **PAIR)
    assert outside.paths() == ["/v1/latest"] * 2


async def test_offline_the_last_known_rates_are_used_and_said(
    ask: CallTool, outside: Outside, clock: HandClock, everyday_config: EverydayConfig
) -> None:
    await ask("convert_currency", **PAIR)
    clock.go(days=3)
    outside.down = True
    result = await build(everyday_config).tools["convert_currency"].call(PAIR)
    assert result.result == "386.36"
    assert "last known rates, of 2026-11-13" in result.note
    for status in (403, 429, 500):
        outside.down, outside.status = False, status
        assert (await ask("convert_currency", **PAIR)).result == "386.36"
    outside.status = None
    outside.down, outside.rates = False, {"USD": "1", "PLN": "5"}
    outside.today = clock.now.date()
    assert (await ask("convert_currency", **PAIR)).result == "500.00"


async def test_offline_with_nothing_known_is_one_clear_sentence(ask: CallTool, outside: Outside) -> None:
    outside.down = True
    with pytest.raises(Unavailable, match="broke off"):
        await ask("convert_currency", **PAIR)


async def test_the_rate_of_an_older_day_is_kept_for_good(ask: CallTool, outside: Outside, clock: HandClock) -> None:
    result = await ask("convert_currency", **PAIR, date="2026-03-15")
    assert str(result.date) == "2026-03-13"
    assert "No rates were published on 2026-03-15" in result.note
    clock.go(days=40)
    await ask("convert_currency", **PAIR, date="2026-03-15")
    assert outside.paths() == ["/v1/2026-03-15"]


async def test_days_without_rates_are_refused(ask: CallTool, outside: Outside) -> None:
    for day in ("1990-01-01", "2027-01-01"):
        with pytest.raises(InvalidArguments, match="Rates are known from"):
            await ask("convert_currency", **PAIR, date=day)
    outside.status = 404
    with pytest.raises(NotFound, match="no rates of 2020-01-01"):
        await ask("convert_currency", **PAIR, date="2020-01-01")


async def test_an_unknown_currency_names_near_ones(ask: CallTool) -> None:
    with pytest.raises(InvalidArguments, match="no rate for 'PLM'") as caught:
        await ask("convert_currency", amount=1, from_currency="plm", to_currency="EUR")
    assert "PLN" in str(caught.value.hint)


async def test_currencies_are_listed_and_known_offline(ask: CallTool, outside: Outside, clock: HandClock) -> None:
    assert (await ask("list_currencies")).currencies["PLN"] == "Polish Złoty"
    clock.go(days=1)
    outside.down = True
    again = await ask("list_currencies")
    assert again.currencies["PLN"] == "Polish Złoty"
    assert "last known list" in again.note


async def test_broken_kept_rates_are_fetched_anew(ask: CallTool, everyday_config: EverydayConfig) -> None:
    everyday_config.folder.mkdir(parents=True)
    (everyday_config.folder / "rates.json").write_text('{"days": {"latest": ')
    assert (await ask("convert_currency", **PAIR)).result == "386.36"
    assert json.loads((everyday_config.folder / "rates.json").read_text())["days"]["latest"]


async def test_senseless_rates_are_left_out(ask: CallTool, outside: Outside) -> None:
    outside.rates = {"USD": "0", "PLN": "-1", "GBP": "nan", "JPY": "160"}
    with pytest.raises(InvalidArguments, match="no rate for 'USD'"):
        await ask("convert_currency", **PAIR)
    assert (await ask("convert_currency", amount=1, from_currency="EUR", to_currency="JPY")).result == "160.00"


async def test_a_source_that_has_enough_is_said(ask: CallTool, outside: Outside) -> None:
    outside.status = 429
    with pytest.raises(TooManyRequests):
        await ask("list_currencies")
    outside.status = 500
    with pytest.raises(Unavailable, match="no usable answer"):
        await ask("list_currencies")


@pytest.mark.parametrize("url", ["ftp://rates.example", "rates.example", "http://", "http://a:99999"])
def test_an_address_that_is_none_is_named_by_its_setting(url: str, clock: HandClock) -> None:
    with pytest.raises(ConfigMistake, match="CURRENCY_URL"):
        JsonSource("CURRENCY_URL", url, "", clock)
