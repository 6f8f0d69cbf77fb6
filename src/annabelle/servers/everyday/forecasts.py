"""Forecasts as the source gives them, turned from columns into days and hours."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.everyday.places import Place
from annabelle.servers.everyday.source import JsonObject, Source
from annabelle.servers.everyday.weather_words import sky, wind_from

UnitSystem = Literal["metric", "imperial"]

_CURRENT = (
    "temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,cloud_cover,wind_speed_10m,"
    "wind_direction_10m,wind_gusts_10m"
)
_DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,"
    "wind_speed_10m_max,wind_direction_10m_dominant,sunrise,sunset,uv_index_max"
)
_HOURLY = "temperature_2m,precipitation_probability,precipitation,weather_code,wind_speed_10m"
_IMPERIAL = {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"}


class Now(BaseModel):
    """The weather at this moment."""

    model_config = ConfigDict(frozen=True)

    time: str
    sky: str
    temperature: float | None
    feels_like: float | None
    humidity: float | None = Field(description="Per cent")
    precipitation: float | None
    cloud_cover: float | None = Field(description="Per cent")
    wind: float | None
    wind_from: str | None
    gusts: float | None


class DayForecast(BaseModel):
    """One day."""

    model_config = ConfigDict(frozen=True)

    date: str
    sky: str
    high: float | None
    low: float | None
    precipitation: float | None
    precipitation_chance: float | None = Field(description="Per cent")
    wind: float | None
    wind_from: str | None
    sunrise: str | None
    sunset: str | None
    uv_index: float | None


class HourForecast(BaseModel):
    """One hour."""

    model_config = ConfigDict(frozen=True)

    time: str
    sky: str
    temperature: float | None
    precipitation: float | None
    precipitation_chance: float | None
    wind: float | None


class Forecasts:
    """Asks for the weather of a place, in its own time zone."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def now(self, place: Place, units: UnitSystem) -> tuple[Now, DayForecast | None]:
        answer = await self._ask(place, units, {"current": _CURRENT, "daily": _DAILY, "forecast_days": "1"})
        said = answer.get("current")
        current = cast("JsonObject", said) if isinstance(said, dict) else {}
        days = _days(answer)
        return (
            Now(
                time=str(current.get("time", "")),
                sky=sky(_number(current.get("weather_code"))),
                temperature=_number(current.get("temperature_2m")),
                feels_like=_number(current.get("apparent_temperature")),
                humidity=_number(current.get("relative_humidity_2m")),
                precipitation=_number(current.get("precipitation")),
                cloud_cover=_number(current.get("cloud_cover")),
                wind=_number(current.get("wind_speed_10m")),
                wind_from=wind_from(_number(current.get("wind_direction_10m"))),
                gusts=_number(current.get("wind_gusts_10m")),
            ),
            days[0] if days else None,
        )

    async def day(self, place: Place, units: UnitSystem, day: date) -> list[DayForecast]:
        span = {"start_date": day.isoformat(), "end_date": day.isoformat()}
        return _days(await self._ask(place, units, {"daily": _DAILY, **span}))

    async def days(
        self, place: Place, units: UnitSystem, count: int, *, hourly: bool
    ) -> tuple[list[DayForecast], list[HourForecast]]:
        wanted = {"daily": _DAILY, "forecast_days": str(count), **({"hourly": _HOURLY} if hourly else {})}
        answer = await self._ask(place, units, wanted)
        return _days(answer), _hours(answer)

    async def _ask(self, place: Place, units: UnitSystem, wanted: dict[str, str]) -> JsonObject:
        where = {"latitude": f"{place.latitude:.4f}", "longitude": f"{place.longitude:.4f}", "timezone": "auto"}
        return await self._source.ask("/v1/forecast", {**where, **(_IMPERIAL if units == "imperial" else {}), **wanted})


def _days(answer: JsonObject) -> list[DayForecast]:
    return [
        DayForecast(
            date=str(row.get("time")),
            sky=sky(_number(row.get("weather_code"))),
            high=_number(row.get("temperature_2m_max")),
            low=_number(row.get("temperature_2m_min")),
            precipitation=_number(row.get("precipitation_sum")),
            precipitation_chance=_number(row.get("precipitation_probability_max")),
            wind=_number(row.get("wind_speed_10m_max")),
            wind_from=wind_from(_number(row.get("wind_direction_10m_dominant"))),
            sunrise=_text(row.get("sunrise")),
            sunset=_text(row.get("sunset")),
            uv_index=_number(row.get("uv_index_max")),
        )
        for row in _rows(answer.get("daily"), 16)
    ]


def _hours(answer: JsonObject) -> list[HourForecast]:
    return [
        HourForecast(
            time=str(row.get("time")),
            sky=sky(_number(row.get("weather_code"))),
            temperature=_number(row.get("temperature_2m")),
            precipitation=_number(row.get("precipitation")),
            precipitation_chance=_number(row.get("precipitation_probability")),
            wind=_number(row.get("wind_speed_10m")),
        )
        for row in _rows(answer.get("hourly"), 16 * 24)
    ]


def _rows(table: object, most: int) -> list[JsonObject]:
    """Columns of equal length as rows; a column that is missing or short is left out of a row."""
    if not isinstance(table, dict):
        return []
    columns = {
        name: cast("list[object]", values)
        for name, values in cast("JsonObject", table).items()
        if isinstance(values, list)
    }
    length = min(len(columns.get("time", [])), most)
    return [{name: values[index] for name, values in columns.items() if index < len(values)} for index in range(length)]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value[:40] if isinstance(value, str) else None
