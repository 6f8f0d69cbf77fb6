"""Finds where a place is."""

from __future__ import annotations

import re
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import NotFound
from annabelle.servers.everyday.source import JsonObject, Source
from annabelle.servers.everyday.zones import fold

_COORDINATES = re.compile(r"\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*")


class Place(BaseModel):
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

    def line(self) -> str:
        where = ", ".join(filter(None, (self.name, self.region, self.country)))
        return f"{where} ({self.latitude:.4f}, {self.longitude:.4f})"


class Geocoder:
    """Places by name, the most likely one first. What follows a comma narrows them down."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def search(self, query: str, count: int = 10) -> list[Place]:
        """Places that carry this name."""
        name, _, rest = (part.strip() for part in query.partition(","))
        parameters = {"name": name or query, "count": "50" if rest else str(count), "language": "en", "format": "json"}
        answer = await self._source.ask("/v1/search", parameters)
        results = answer.get("results")
        found: list[Place] = []
        for entry in cast("list[JsonObject]", results) if isinstance(results, list) else []:
            try:
                found.append(Place.model_validate(entry))
            except ValidationError:
                continue
        words = [fold(word) for word in rest.split(",") if word.strip()]
        return [place for place in found if _fits(place, words)][:count]

    async def one(self, query: str) -> tuple[Place, list[Place]]:
        """The likeliest place, and the others of that name; coordinates are taken as they are."""
        match = _COORDINATES.fullmatch(query)
        if match is not None and abs(float(match[1])) <= 90 and abs(float(match[2])) <= 180:
            return Place(name=query.strip(), latitude=float(match[1]), longitude=float(match[2])), []
        found = await self.search(query)
        if not found:
            raise NotFound(
                f"No place called {query[:80]!r} was found.",
                hint="Write it as city, country, or as latitude,longitude; find_place lists places.",
                field="place",
            )
        return found[0], found[1:5]


def _fits(place: Place, words: list[str]) -> bool:
    known = [fold(text) for text in (place.region, place.country, place.country_code) if text]
    return all(any(word == text or (len(word) > 2 and word in text) for text in known) for word in words)
