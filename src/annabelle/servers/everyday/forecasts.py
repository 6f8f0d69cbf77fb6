"""Weather forecasts and place search from the configured services."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.everyday.web_source import JsonSource
from annabelle.servers.everyday.zones import fold_name
from annabelle.servers.kit.json_access import get_objects

_COORDINATES = re.compile(r"\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*")


class GeoPlace(BaseModel):
    """A place on the map."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    country: str | None = None
    country_code: str | None = None
    region: str | None = Field(default=None, validation_alias="admin1")
    timezone: str | None = None
    population: int | None = None

    def to_line(self) -> str:
        where = ", ".join(filter(None, (self.name, self.region, self.country)))
        return f"{where} ({self.latitude:.4f}, {self.longitude:.4f})"


class Geocoder:
    """Finds places by name, the most likely first. Words after a comma narrow the search."""

    def __init__(self, source: JsonSource) -> None:
        self._source = source

    async def search(self, query: str, count: int = 10) -> list[GeoPlace]:
        """Places of this name."""
        name, _, rest = (part.strip() for part in query.partition(","))
        parameters = {"name": name or query, "count": "50" if rest else str(count), "language": "en", "format": "json"}
        answer = await self._source.fetch("/v1/search", parameters)
        found: list[GeoPlace] = []
        for entry in get_objects(answer, "results"):
            try:
                found.append(GeoPlace.model_validate(entry))
            except ValidationError:
                continue
        words = [fold_name(word) for word in rest.split(",") if word.strip()]
        return [place for place in found if _matches(place, words)][:count]

    async def find_best(self, query: str) -> tuple[GeoPlace, list[GeoPlace]]:
        """The likeliest place, and the others of that name. Coordinates are used as given."""
        match = _COORDINATES.fullmatch(query)
        if match is not None and abs(float(match[1])) <= 90 and abs(float(match[2])) <= 180:
            return GeoPlace(name=query.strip(), latitude=float(match[1]), longitude=float(match[2])), []
        found = await self.search(query)
        if not found:
            raise NotFound(
                f"No place called {query[:80]!r} was found.",
                hint="Write it as city, country, or as latitude,longitude; find_place lists places.",
                field="place",
            )
        return found[0], found[1:5]


def _matches(place: GeoPlace, words: list[str]) -> bool:
    known = [fold_name(text) for text in (place.region, place.country, place.country_code) if text]
    return all(any(word == text or (len(word) > 2 and word in text) for text in known) for word in words)


_CODES = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "freezing fog",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "light snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with light hail",
    99: "thunderstorm with heavy hail",
}
_WINDS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def describe_sky(code: float | None) -> str:
    return "unknown" if code is None else _CODES.get(int(code), f"weather code {int(code)}")


def describe_wind(degrees: float | None) -> str | None:
    return None if degrees is None else _WINDS[round(degrees / 45) % 8]


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


class CurrentWeather(BaseModel):
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


class ForecastSource:
    """Fetches the weather of a place in its own time zone."""

    def __init__(self, source: JsonSource) -> None:
        self._source = source

    async def fetch_current(self, place: GeoPlace, units: UnitSystem) -> tuple[CurrentWeather, DayForecast | None]:
        answer = await self._ask(place, units, {"current": _CURRENT, "daily": _DAILY, "forecast_days": "1"})
        said = answer.get("current")
        current = cast("JsonObject", said) if isinstance(said, dict) else {}
        days = _parse_days(answer)
        return (
            CurrentWeather(
                time=str(current.get("time", "")),
                sky=describe_sky(_number(current.get("weather_code"))),
                temperature=_number(current.get("temperature_2m")),
                feels_like=_number(current.get("apparent_temperature")),
                humidity=_number(current.get("relative_humidity_2m")),
                precipitation=_number(current.get("precipitation")),
                cloud_cover=_number(current.get("cloud_cover")),
                wind=_number(current.get("wind_speed_10m")),
                wind_from=describe_wind(_number(current.get("wind_direction_10m"))),
                gusts=_number(current.get("wind_gusts_10m")),
            ),
            days[0] if days else None,
        )

    async def fetch_day(self, place: GeoPlace, units: UnitSystem, day: date) -> list[DayForecast]:
        span = {"start_date": day.isoformat(), "end_date": day.isoformat()}
        return _parse_days(await self._ask(place, units, {"daily": _DAILY, **span}))

    async def fetch_days(
        self, place: GeoPlace, units: UnitSystem, count: int, *, hourly: bool
    ) -> tuple[list[DayForecast], list[HourForecast]]:
        wanted = {"daily": _DAILY, "forecast_days": str(count), **({"hourly": _HOURLY} if hourly else {})}
        answer = await self._ask(place, units, wanted)
        return _parse_days(answer), _parse_hours(answer)

    async def _ask(self, place: GeoPlace, units: UnitSystem, wanted: dict[str, str]) -> JsonObject:
        where = {"latitude": f"{place.latitude:.4f}", "longitude": f"{place.longitude:.4f}", "timezone": "auto"}
        return await self._source.fetch(
            "/v1/forecast", {**where, **(_IMPERIAL if units == "imperial" else {}), **wanted}
        )


def _parse_days(answer: JsonObject) -> list[DayForecast]:
    return [
        DayForecast(
            date=str(row.get("time")),
            sky=describe_sky(_number(row.get("weather_code"))),
            high=_number(row.get("temperature_2m_max")),
            low=_number(row.get("temperature_2m_min")),
            precipitation=_number(row.get("precipitation_sum")),
            precipitation_chance=_number(row.get("precipitation_probability_max")),
            wind=_number(row.get("wind_speed_10m_max")),
            wind_from=describe_wind(_number(row.get("wind_direction_10m_dominant"))),
            sunrise=_text(row.get("sunrise")),
            sunset=_text(row.get("sunset")),
            uv_index=_number(row.get("uv_index_max")),
        )
        for row in _rows(answer.get("daily"), 16)
    ]


def _parse_hours(answer: JsonObject) -> list[HourForecast]:
    return [
        HourForecast(
            time=str(row.get("time")),
            sky=describe_sky(_number(row.get("weather_code"))),
            temperature=_number(row.get("temperature_2m")),
            precipitation=_number(row.get("precipitation")),
            precipitation_chance=_number(row.get("precipitation_probability")),
            wind=_number(row.get("wind_speed_10m")),
        )
        for row in _rows(answer.get("hourly"), 16 * 24)
    ]


def _rows(table: object, most: int) -> list[JsonObject]:
    """Columns as rows; a row lacks the columns that are missing or too short."""
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
