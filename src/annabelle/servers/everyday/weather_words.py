"""The weather in words: the codes of the World Meteorological Organization, and where the wind comes from."""

from __future__ import annotations

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


def sky(code: float | None) -> str:
    return "unknown" if code is None else _CODES.get(int(code), f"weather code {int(code)}")


def wind_from(degrees: float | None) -> str | None:
    return None if degrees is None else _WINDS[round(degrees / 45) % 8]
