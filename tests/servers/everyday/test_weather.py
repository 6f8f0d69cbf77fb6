"""The weather, against a local service that checks what it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound, Unavailable
from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.server import build
from servers.everyday.conftest import HandClock
from servers.everyday.counterparts import Outside
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


async def test_the_weather_now_is_told_with_other_places_of_the_name(ask: CallTool, outside: Outside) -> None:
    result = await ask("get_weather", place="Paris")
    assert (result.now.temperature, result.now.sky, result.now.wind_from) == (10.0, "overcast", "S")
    assert result.day.sky == "light rain"
    assert result.place.startswith("Paris, Île-de-France, France")
    assert [place.split(" (")[0] for place in result.other_places] == ["Paris, Texas, United States"]
    assert "Now 10 °C (feels like 8), overcast" in result.to_text()
    asked = outside.asked[-1][1]
    assert (asked["latitude"], asked["longitude"], asked["forecast_days"]) == ("48.8534", "2.3488", "1")


async def test_a_country_or_region_tells_places_apart(ask: CallTool, outside: Outside) -> None:
    for place in ("Paris, Texas", "paris, us", "Paris, TEXAS, United States"):
        assert (await ask("get_weather", place=place)).place.startswith("Paris, Texas")
    assert [query["longitude"] for path, query, _ in outside.asked if path == "/v1/forecast"] == ["-95.5555"]


async def test_coordinates_need_no_place(ask: CallTool, outside: Outside) -> None:
    await ask("get_weather", place="-33.9, 18.4")
    assert outside.paths() == ["/v1/forecast"]


async def test_one_day_ahead_is_that_day_there(ask: CallTool, outside: Outside, clock: HandClock) -> None:
    clock.go(hours=8)  # evening here, and already Monday in Tokyo
    result = await ask("get_weather", place="Tokyo", when="tomorrow")
    assert result.now is None
    assert result.day.date == "2026-11-17"
    assert outside.asked[-1][1]["start_date"] == "2026-11-17"


async def test_days_out_of_reach_are_refused(ask: CallTool) -> None:
    for when in ("2026-12-24", "2026-11-01"):
        with pytest.raises(InvalidArguments, match="out of reach"):
            await ask("get_weather", place="Paris", when=when)


async def test_a_forecast_has_its_days_and_the_hours_of_two(ask: CallTool) -> None:
    result = await ask("get_forecast", place="Paris", days=16, hourly=True)
    assert [len(result.days), len(result.hours)] == [16, 48]
    assert result.days[15].date == "2026-11-30"
    assert result.hours[5].temperature == 5
    assert "2026-11-16: light rain, 4 to 12.5 °C, 3.2 mm (80 %)" in result.to_text()
    assert (await ask("get_forecast", place="Paris", days=2)).hours == []


async def test_imperial_units_are_asked_for_at_the_source(ask: CallTool, outside: Outside) -> None:
    result = await ask("get_weather", place="Paris, Texas", units="imperial")
    assert result.now.temperature == 50
    assert "°F" in result.to_text()
    assert outside.asked[-1][1]["wind_speed_unit"] == "mph"


async def test_the_same_question_is_not_asked_again_within_ten_minutes(
    ask: CallTool, outside: Outside, clock: HandClock
) -> None:
    await ask("get_weather", place="Paris")
    clock.go(minutes=9)
    await ask("get_weather", place="Paris")
    assert len(outside.asked) == 2
    clock.go(minutes=2)
    await ask("get_weather", place="Paris")
    assert len(outside.asked) == 4


async def test_places_are_found_with_their_coordinates_and_zone(ask: CallTool) -> None:
    places = (await ask("find_place", query="paris")).places
    assert [(place.country_code, place.timezone) for place in places] == [
        ("FR", "Europe/Paris"),
        ("US", "America/Chicago"),
    ]
    assert (await ask("find_place", query="nowhere")).to_text() == "No place of that name was found."


async def test_an_unknown_place_and_a_silent_source_are_clear_sentences(ask: CallTool, outside: Outside) -> None:
    with pytest.raises(NotFound, match="No place called 'Atlantis'"):
        await ask("get_weather", place="Atlantis")
    outside.status = 400
    with pytest.raises(Unavailable, match="Something is wrong"):
        await ask("get_weather", place="10,10")
    outside.down = True
    with pytest.raises(Unavailable, match="broke off"):
        await ask("get_weather", place="11,11")


@pytest.mark.incident("I-15")
async def test_a_source_can_not_lead_elsewhere_into_the_own_network(
    outside: Outside, everyday_config: EverydayConfig
) -> None:
    """The configured host itself may be private; where it redirects to may not."""
    outside.redirects["/v1/forecast"] = "http://127.0.0.1:9/secrets"
    alone = build(replace(everyday_config, private_hosts=""))
    with pytest.raises(NotAllowed, match="private or local network"):
        await alone.tools["get_weather"].call({"place": "1,1"})
    assert outside.paths() == ["/v1/forecast"]
