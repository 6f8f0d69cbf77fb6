"""Finds a time zone by name, city, country, abbreviation or offset."""

from __future__ import annotations

import difflib
import importlib.resources
import re
import tomllib
import zoneinfo
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from functools import cache, cached_property
from pathlib import Path

from pydantic import BaseModel

from annabelle.core.errors import ConfigMistake, InvalidArguments
from annabelle.core.text import fold_for_search

_OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
_MAX_OFFSET = timedelta(hours=18)


class ZoneWords(BaseModel):
    """The contents of `zones.toml`."""

    cities: dict[str, str]
    abbreviations: dict[str, str]
    ambiguous: dict[str, str]


@cache
def load_zone_words() -> ZoneWords:
    return ZoneWords.model_validate(tomllib.loads(Path(__file__).with_name("zones.toml").read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone, its name, and a note on how it was found."""

    name: str
    info: tzinfo
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ListedZone:
    """A zone of the IANA list, with the countries that use it."""

    name: str
    countries: tuple[str, ...]


class Zones:
    """Finds time zones; the lists are read on first use."""

    def __init__(self, default: str) -> None:
        self._default = default

    def find(self, text: str | None, field: str = "zone") -> Zone:
        """The zone a text names; the user's own if there is none."""
        wanted = " ".join((text or self._default).split())
        found = (
            self._offset(wanted) or self._abbreviated(wanted) or self._named(wanted) or self._of_country(wanted, field)
        )
        if found is not None:
            return found
        if not text:
            raise ConfigMistake(
                f"The user's time zone, {wanted[:80]!r}, is none.",
                hint="Run: annabelle config set USER_TIMEZONE Europe/Berlin (or another zone).",
                field="USER_TIMEZONE",
            )
        close = difflib.get_close_matches(fold_name(wanted), self._spellings, n=3, cutoff=0.6)
        guess = f"Did you mean {' or '.join(self._spellings[name] for name in close)}? " if close else ""
        raise InvalidArguments(
            f"There is no time zone {wanted[:80]!r}.",
            hint=f"{guess}Use a name like Europe/Berlin, a large city or an offset like UTC+2; list_time_zones helps.",
            field=field,
        )

    def search(self, query: str) -> list[ListedZone]:
        """Zones whose name, city, country or abbreviation contains the query."""
        words, known = fold_name(query), load_zone_words()
        hinted = {zone for city, zone in known.cities.items() if words and words in city}
        abbreviated = known.abbreviations.get(query.strip().upper())
        found = [
            ListedZone(name, countries)
            for name, countries in self._listed.items()
            if not words
            or words in fold_name(name)
            or name in hinted
            or name == abbreviated
            or any(words in fold_name(country) for country in countries)
        ]
        return sorted(found, key=lambda listed: (listed.name != abbreviated, listed.name))

    def _offset(self, text: str) -> Zone | None:
        if text.upper() in ("Z", "UTC", "GMT"):
            return Zone("UTC", zoneinfo.ZoneInfo("UTC"))
        match = _OFFSET.fullmatch(text)
        if match is None:
            return None
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset > _MAX_OFFSET:
            return None
        info = timezone(-offset if match[1] == "-" else offset)
        return Zone(str(info), info)

    def _abbreviated(self, text: str) -> Zone | None:
        words, short = load_zone_words(), text.upper()
        name = words.abbreviations.get(short)
        if name is None:
            return None
        note = f"{short} is read as the local time of {name}. {words.ambiguous.get(short, '')}".strip()
        return Zone(name, zoneinfo.ZoneInfo(name), note)

    def _named(self, text: str) -> Zone | None:
        city = fold_name(text.partition(",")[0])
        name = self._spellings.get(fold_name(text)) or load_zone_words().cities.get(city) or self._spellings.get(city)
        return None if name is None else Zone(name, zoneinfo.ZoneInfo(name))

    def _of_country(self, text: str, field: str) -> Zone | None:
        """The zone of a country with one zone; InvalidArguments if it has several. A zone's first country is its main
        one."""
        wanted = fold_name(text)
        using = [(name, countries) for name, countries in self._listed.items() if wanted in map(fold_name, countries)]
        names = [name for name, countries in using if fold_name(countries[0]) == wanted] or [name for name, _ in using]
        if len(names) > 1:
            raise InvalidArguments(
                f"{text[:80]} has several time zones.", hint=f"Choose one: {', '.join(names[:12])}.", field=field
            )
        # A few old names of zones are countries or abbreviations ("Poland", "EST5EDT").
        old = next((name for name in zoneinfo.available_timezones() if fold_name(name) == wanted), None)
        name = names[0] if names else old
        return None if name is None else Zone(name, zoneinfo.ZoneInfo(name))

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Zones by folded spelling: the whole name, and the city at its end."""
        names = sorted(name for name in zoneinfo.available_timezones() if "/" in name)
        cities: dict[str, str] = {}
        for name in names:
            area, _, city = name.rpartition("/")
            if area and not area.startswith(("Etc", "US", "Canada", "Brazil", "Mexico", "Chile")):
                cities.setdefault(fold_name(city), name)
        return {**cities, **{fold_name(name): name for name in names}}

    @cached_property
    def _listed(self) -> dict[str, tuple[str, ...]]:
        countries = {code: name for code, name, *_ in _load_table("iso3166.tab")}
        rows = {
            zone: tuple(countries.get(code, code) for code in codes.split(","))
            for codes, _, zone, *_ in _load_table("zone1970.tab")
        }
        return rows or {name: () for name in sorted(zoneinfo.available_timezones()) if "/" in name}


def fold_name(text: str) -> str:
    """A name without case, accents, underscores and periods."""
    return " ".join(fold_for_search(text).replace("_", " ").replace(".", "").split())


def _load_table(name: str) -> list[list[str]]:
    """A table of the tzdata package; empty if it is not installed."""
    try:
        text = importlib.resources.files("tzdata").joinpath("zoneinfo", name).read_text(encoding="utf-8")
    except (OSError, ModuleNotFoundError):
        return []
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
