"""Units as people write them, and units that are none."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.units import UnitConverter
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


@pytest.fixture(scope="module")
def measures() -> UnitConverter:
    return UnitConverter()


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (72, "°F", "C", 22.2222222222),
        (-40, "degrees fahrenheit", "celsius", -40),
        (60, "mph", "km/h", 96.56064),
        (2, "cups", "ml", 473.176473),
        (5, "sq ft", "m^2", 0.4645152),
        (1, "m²", "ft²", 10.7639104167),
        (1, "cubic meter", "L", 1000),
        (1, "m3", "liters", 1000),
        (1, "km2", "sq m", 1e6),
        (1, "fl. oz.", "ml", 29.5735295625),
        (100, "Mbps", "MB/s", 12.5),
        (1, "KB", "bytes", 1000),
        (8, "Mb", "mb", 1),
        (1, "MWh", "kWh", 1000),
        (30, "mpg", "l/100km", 7.84048611111),
        (1, "metre per second", "km per hour", 3.6),
        (3, "lbs", "kg", 1.36077711),
        (1, "kg m/s^2", "newton", 1),
    ],
)
def test_units_are_read_as_people_write_them(
    measures: UnitConverter, value: float, source: str, target: str, result: float
) -> None:
    assert measures.convert(value, source, target).value == pytest.approx(result, rel=1e-9)


async def test_a_conversion_reads_as_a_sentence(ask: CallTool) -> None:
    result = await ask("convert_units", value=5, from_unit="mile", to_unit="km")
    assert result.result == 8.04672
    assert result.to_text() == "5 mile = 8.04672 kilometer."
    speed = await ask("convert_units", value=65, from_unit="mph", to_unit="km/h")
    assert speed.to_text() == "65 mph = 104.60736 kph."


def test_what_does_not_fit_names_what_would(measures: UnitConverter) -> None:
    with pytest.raises(InvalidArguments, match="do not measure the same") as caught:
        measures.convert(1, "kg", "meter")
    assert "pound" in str(caught.value.hint)


def test_money_and_misspellings_are_pointed_elsewhere(measures: UnitConverter) -> None:
    with pytest.raises(InvalidArguments, match="is money"):
        measures.convert(1, "usd", "eur")
    with pytest.raises(InvalidArguments) as caught:
        measures.convert(1, "kilometr", "m")
    assert "kilometer" in str(caught.value.hint)


@pytest.mark.parametrize(
    "unit",
    [
        "2**10**10", "9**9**9**9", "m**9**9", "m^99", "__import__('os')", "m" * 60, "((((((", "\x00", "m\u202em",
        "1e999", "*/*", "a/b/c/d/e/f/g/h/i/j", "lambda: 0", "m.real", "%", "m**-", "\ud800",
    ],
)  # fmt: skip
def test_a_hostile_unit_is_refused_and_never_reckoned(measures: UnitConverter, unit: str) -> None:
    with pytest.raises(InvalidArguments):
        measures.convert(1, unit, "meter")


async def test_numbers_without_an_end_are_refused(ask: CallTool, measures: UnitConverter) -> None:
    for value in (float("inf"), float("nan"), 1e301):
        with pytest.raises(InvalidArguments):
            await ask("convert_units", value=value, from_unit="m", to_unit="km")
    with pytest.raises(InvalidArguments, match="too large"):
        measures.convert(1e300, "light_year", "nm")
    with pytest.raises(InvalidArguments, match="no reciprocal"):
        measures.convert(0, "mpg", "l/100km")
    with pytest.raises(InvalidArguments):
        await ask("convert_units", value=1, from_unit="m" * 61, to_unit="km")
