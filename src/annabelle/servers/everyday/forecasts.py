"""Weather forecasts and place search from the configured services."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from annabelle.core.errors import NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.everyday.web_source import JsonSource
from annabelle.servers.everyday.zones import fold_name
from annabelle.servers.kit import Result
from annabelle.servers.kit.json_access import get_object, get_objects

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

_IMPERIAL = {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


Value = Annotated[float | None, BeforeValidator(_number)]
Sky = Annotated[str, BeforeValidator(lambda value: describe_sky(_number(value)))]
WindDirection = Annotated[str | None, BeforeValidator(lambda value: describe_wind(_number(value)))]
When = Annotated[str, BeforeValidator(lambda value: str(value or ""))]
SunTime = Annotated[str | None, BeforeValidator(lambda value: value[:40] if isinstance(value, str) else None)]


class WeatherReading(Result):
    """Weather at a time. The alias of each field is the service's name of the variable."""

    @classmethod
    def variables(cls) -> str:
        """What to ask the service for."""
        return ",".join(name for name in cls._aliases() if name != "time")

    @classmethod
    def parse(cls, said: JsonObject) -> Self:
        """Variables that are missing or of another type are None."""
        return cls.model_validate({name: said.get(name) for name in cls._aliases()})

    @classmethod
    def _aliases(cls) -> list[str]:
        return [str(field.validation_alias) for field in cls.model_fields.values()]


class CurrentWeather(WeatherReading):
    """The weather at this moment."""

    time: When = Field(validation_alias="time")
    sky: Sky = Field(validation_alias="weather_code")
    temperature: Value = Field(validation_alias="temperature_2m")
    feels_like: Value = Field(validation_alias="apparent_temperature")
    humidity: Value = Field(validation_alias="relative_humidity_2m", description="Per cent")
    precipitation: Value = Field(validation_alias="precipitation")
    cloud_cover: Value = Field(validation_alias="cloud_cover", description="Per cent")
    wind: Value = Field(validation_alias="wind_speed_10m")
    wind_from: WindDirection = Field(validation_alias="wind_direction_10m")
    gusts: Value = Field(validation_alias="wind_gusts_10m")


class DayForecast(WeatherReading):
    """One day."""

    date: When = Field(validation_alias="time")
    sky: Sky = Field(validation_alias="weather_code")
    high: Value = Field(validation_alias="temperature_2m_max")
    low: Value = Field(validation_alias="temperature_2m_min")
    precipitation: Value = Field(validation_alias="precipitation_sum")
    precipitation_chance: Value = Field(validation_alias="precipitation_probability_max", description="Per cent")
    wind: Value = Field(validation_alias="wind_speed_10m_max")
    wind_from: WindDirection = Field(validation_alias="wind_direction_10m_dominant")
    sunrise: SunTime = Field(validation_alias="sunrise")
    sunset: SunTime = Field(validation_alias="sunset")
    uv_index: Value = Field(validation_alias="uv_index_max")


class HourForecast(WeatherReading):
    """One hour."""

    time: When = Field(validation_alias="time")
    sky: Sky = Field(validation_alias="weather_code")
    temperature: Value = Field(validation_alias="temperature_2m")
    precipitation: Value = Field(validation_alias="precipitation")
    precipitation_chance: Value = Field(validation_alias="precipitation_probability")
    wind: Value = Field(validation_alias="wind_speed_10m")


class ForecastSource:
    """Fetches the weather of a place in its own time zone."""

    def __init__(self, source: JsonSource) -> None:
        self._source = source

    async def fetch_current(self, place: GeoPlace, units: UnitSystem) -> tuple[CurrentWeather, DayForecast | None]:
        wanted = {"current": CurrentWeather.variables(), "daily": DayForecast.variables(), "forecast_days": "1"}
        answer = await self._ask(place, units, wanted)
        days = _parse_days(answer)
        return CurrentWeather.parse(get_object(answer, "current")), days[0] if days else None

    async def fetch_day(self, place: GeoPlace, units: UnitSystem, day: date) -> list[DayForecast]:
        span = {"start_date": day.isoformat(), "end_date": day.isoformat()}
        return _parse_days(await self._ask(place, units, {"daily": DayForecast.variables(), **span}))

    async def fetch_days(
        self, place: GeoPlace, units: UnitSystem, count: int, *, hourly: bool
    ) -> tuple[list[DayForecast], list[HourForecast]]:
        wanted = {"daily": DayForecast.variables(), "forecast_days": str(count)}
        answer = await self._ask(place, units, wanted | ({"hourly": HourForecast.variables()} if hourly else {}))
        return _parse_days(answer), [HourForecast.parse(row) for row in _rows(get_object(answer, "hourly"), 16 * 24)]

    async def _ask(self, place: GeoPlace, units: UnitSystem, wanted: dict[str, str]) -> JsonObject:
        where = {"latitude": f"{place.latitude:.4f}", "longitude": f"{place.longitude:.4f}", "timezone": "auto"}
        return await self._source.fetch(
            "/v1/forecast", {**where, **(_IMPERIAL if units == "imperial" else {}), **wanted}
        )


def _parse_days(answer: JsonObject) -> list[DayForecast]:
    return [DayForecast.parse(row) for row in _rows(get_object(answer, "daily"), 16)]


def _rows(table: JsonObject, most: int) -> list[JsonObject]:
    """Columns as rows; a row lacks the columns that are missing or too short."""
    columns = {name: cast("list[object]", values) for name, values in table.items() if isinstance(values, list)}
    length = min(len(columns.get("time", [])), most)
    return [{name: values[index] for name, values in columns.items() if index < len(values)} for index in range(length)]
