"""Tools that tell the weather and find places."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.date_parser import parse_date
from annabelle.servers.everyday.forecasts import (
    CurrentWeather,
    DayForecast,
    ForecastSource,
    Geocoder,
    GeoPlace,
    HourForecast,
    UnitSystem,
)
from annabelle.servers.everyday.zones import Zones
from annabelle.servers.kit import Result, tool

_AHEAD = 15
_HOURS = 48

Where = Annotated[
    str, Field(min_length=1, max_length=120, description='City, or "city, country", or "latitude,longitude"')
]
In = Annotated[UnitSystem, Field(description="metric: °C, km/h, mm; imperial: °F, mph, inch")]


class WeatherResult(Result):
    """The weather of one place, now or on one day."""

    place: str
    now: CurrentWeather | None = None
    day: DayForecast | None = None
    units: UnitSystem
    other_places: list[str] = Field(default_factory=list, description="Other places of that name")

    def to_text(self) -> str:
        lines = [f"{self.place}:"]
        if self.now is not None:
            now, degrees, speed = self.now, *_unit_signs(self.units)[:2]
            wind = f", wind {_format_number(now.wind)} {speed} from {now.wind_from}" if now.wind is not None else ""
            felt = f" (feels like {_format_number(now.feels_like)})" if now.feels_like is not None else ""
            lines.append(
                f"Now {_format_number(now.temperature)} {degrees}{felt}, {now.sky}{wind}, humidity "
                f"{_format_number(now.humidity)} %."
            )
        lines += [_day_line(self.day, self.units)] if self.day is not None else []
        return "\n".join([*lines, *_format_others(self.other_places)])


class ForecastResult(Result):
    """The days to come, and the hours of the first two if asked for."""

    place: str
    days: list[DayForecast]
    hours: list[HourForecast] = Field(default_factory=list[HourForecast])
    units: UnitSystem
    other_places: list[str] = Field(default_factory=list, description="Other places of that name")

    def to_text(self) -> str:
        degrees = _unit_signs(self.units)[0]
        hours = [
            f"{hour.time}: {_format_number(hour.temperature)} {degrees}, {hour.sky}, "
            f"{_format_number(hour.precipitation_chance)} %"
            for hour in self.hours
        ]
        days = [_day_line(day, self.units) for day in self.days]
        return "\n".join([f"{self.place}:", *days, *hours, *_format_others(self.other_places)])


class PlaceList(Result):
    """Places of a name, the likeliest first."""

    places: list[GeoPlace]

    def to_text(self) -> str:
        return "\n".join(place.to_line() for place in self.places) or "No place of that name was found."


class WeatherTools:
    """get_weather, get_forecast and find_place."""

    def __init__(
        self, forecasts: ForecastSource, geocoder: Geocoder, zones: Zones, clock: Callable[[], datetime]
    ) -> None:
        self._forecasts, self._geocoder, self._zones, self._clock = forecasts, geocoder, zones, clock

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_weather(
        self,
        place: Where,
        when: Annotated[
            str, Field(min_length=1, max_length=100, description="now, today, tomorrow, saturday, 2026-03-15, …")
        ] = "now",
        units: In = "metric",
    ) -> WeatherResult:
        """Tell the weather of a place, now or on a day up to 15 days ahead."""
        found, others = await self._geocoder.find_best(place)
        names = [other.to_line() for other in others]
        if when.strip().lower() in ("now", "today", "currently", "right now"):
            now, today = await self._forecasts.fetch_current(found, units)
            return WeatherResult(place=found.to_line(), now=now, day=today, units=units, other_places=names)
        zone = self._zones.find(found.timezone)
        day = (await parse_date(when, zone, self._clock(), "when")).moment.at.astimezone(zone.info).date()
        today = self._clock().astimezone(zone.info).date()
        if not today <= day <= today + timedelta(days=_AHEAD):
            raise InvalidArguments(
                f"{day} is out of reach.", hint=f"Forecasts go from today to {_AHEAD} days ahead.", field="when"
            )
        days = await self._forecasts.fetch_day(found, units, day)
        return WeatherResult(place=found.to_line(), day=days[0] if days else None, units=units, other_places=names)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_forecast(
        self,
        place: Where,
        days: Annotated[int, Field(ge=1, le=16, description="How many days, with today")] = 7,
        hourly: Annotated[bool, Field(description="Also the hours of the first two days")] = False,
        units: In = "metric",
    ) -> ForecastResult:
        """Tell the weather of a place for the days to come."""
        found, others = await self._geocoder.find_best(place)
        each, hours = await self._forecasts.fetch_days(found, units, days, hourly=hourly)
        names = [other.to_line() for other in others]
        return ForecastResult(place=found.to_line(), days=each, hours=hours[:_HOURS], units=units, other_places=names)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def find_place(
        self,
        query: Annotated[str, Field(min_length=2, max_length=120, description='A name, or "name, region or country"')],
        limit: Annotated[int, Field(ge=1, le=20, description="How many at most")] = 10,
    ) -> PlaceList:
        """Find places by name: country, coordinates, time zone and population."""
        return PlaceList(places=await self._geocoder.search(query, limit))


def _unit_signs(units: UnitSystem) -> tuple[str, str, str]:
    return ("°F", "mph", "inch") if units == "imperial" else ("°C", "km/h", "mm")


def _format_number(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _day_line(day: DayForecast, units: UnitSystem) -> str:
    degrees, speed, depth = _unit_signs(units)
    return (
        f"{day.date}: {day.sky}, {_format_number(day.low)} to {_format_number(day.high)} "
        f"{degrees}, {_format_number(day.precipitation)} {depth} "
        f"({_format_number(day.precipitation_chance)} %), wind up to {_format_number(day.wind)} {speed}"
    )


def _format_others(places: list[str]) -> list[str]:
    return [f"Other places of that name: {'; '.join(places)}."] if places else []
