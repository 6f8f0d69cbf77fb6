"""Finds a time zone by name, city, country, abbreviation or offset."""

from __future__ import annotations

import difflib
import importlib.resources
import re
import unicodedata
import zoneinfo
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from functools import cached_property

from annabelle.core.errors import ConfigMistake, InvalidArguments

CITIES = {
    "abu dhabi": "Asia/Dubai",
    "atlanta": "America/New_York",
    "austin": "America/Chicago",
    "bangalore": "Asia/Kolkata",
    "barcelona": "Europe/Madrid",
    "beijing": "Asia/Shanghai",
    "bengaluru": "Asia/Kolkata",
    "birmingham": "Europe/London",
    "bombay": "Asia/Kolkata",
    "bonn": "Europe/Berlin",
    "bordeaux": "Europe/Paris",
    "boston": "America/New_York",
    "brasilia": "America/Sao_Paulo",
    "calgary": "America/Edmonton",
    "canberra": "Australia/Sydney",
    "cape town": "Africa/Johannesburg",
    "chennai": "Asia/Kolkata",
    "cologne": "Europe/Berlin",
    "dallas": "America/Chicago",
    "delhi": "Asia/Kolkata",
    "dusseldorf": "Europe/Berlin",
    "edinburgh": "Europe/London",
    "florence": "Europe/Rome",
    "frankfurt": "Europe/Berlin",
    "gdansk": "Europe/Warsaw",
    "geneva": "Europe/Zurich",
    "glasgow": "Europe/London",
    "guangzhou": "Asia/Shanghai",
    "hamburg": "Europe/Berlin",
    "hanoi": "Asia/Bangkok",
    "houston": "America/Chicago",
    "hyderabad": "Asia/Kolkata",
    "islamabad": "Asia/Karachi",
    "krakow": "Europe/Warsaw",
    "kyoto": "Asia/Tokyo",
    "las vegas": "America/Los_Angeles",
    "lyon": "Europe/Paris",
    "manchester": "Europe/London",
    "marseille": "Europe/Paris",
    "mecca": "Asia/Riyadh",
    "miami": "America/New_York",
    "milan": "Europe/Rome",
    "minneapolis": "America/Chicago",
    "montreal": "America/Toronto",
    "mumbai": "Asia/Kolkata",
    "munich": "Europe/Berlin",
    "naples": "Europe/Rome",
    "new delhi": "Asia/Kolkata",
    "nyc": "America/New_York",
    "osaka": "Asia/Tokyo",
    "ottawa": "America/Toronto",
    "philadelphia": "America/New_York",
    "portland": "America/Los_Angeles",
    "porto": "Europe/Lisbon",
    "pune": "Asia/Kolkata",
    "quebec": "America/Toronto",
    "rio de janeiro": "America/Sao_Paulo",
    "saint petersburg": "Europe/Moscow",
    "salt lake city": "America/Denver",
    "san diego": "America/Los_Angeles",
    "san francisco": "America/Los_Angeles",
    "san jose": "America/Los_Angeles",
    "seattle": "America/Los_Angeles",
    "shenzhen": "Asia/Shanghai",
    "silicon valley": "America/Los_Angeles",
    "st petersburg": "Europe/Moscow",
    "stuttgart": "Europe/Berlin",
    "tel aviv": "Asia/Jerusalem",
    "venice": "Europe/Rome",
    "washington": "America/New_York",
    "washington dc": "America/New_York",
    "wellington": "Pacific/Auckland",
    "wroclaw": "Europe/Warsaw",
}

ABBREVIATIONS = {
    "PT": "America/Los_Angeles",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "MT": "America/Denver",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CT": "America/Chicago",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "ET": "America/New_York",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "AKST": "America/Anchorage",
    "AKDT": "America/Anchorage",
    "HST": "Pacific/Honolulu",
    "BST": "Europe/London",
    "WET": "Europe/Lisbon",
    "WEST": "Europe/Lisbon",
    "CET": "Europe/Berlin",
    "CEST": "Europe/Berlin",
    "EET": "Europe/Athens",
    "EEST": "Europe/Athens",
    "MSK": "Europe/Moscow",
    "TRT": "Europe/Istanbul",
    "SAST": "Africa/Johannesburg",
    "GST": "Asia/Dubai",
    "PKT": "Asia/Karachi",
    "IST": "Asia/Kolkata",
    "ICT": "Asia/Bangkok",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "AWST": "Australia/Perth",
    "ACST": "Australia/Adelaide",
    "AEST": "Australia/Sydney",
    "AEDT": "Australia/Sydney",
    "NZST": "Pacific/Auckland",
    "NZDT": "Pacific/Auckland",
    "BRT": "America/Sao_Paulo",
}

AMBIGUOUS = {
    "CST": "CST also means China Standard Time (Asia/Shanghai) and Cuba's time.",
    "IST": "IST also means Irish (Europe/Dublin) and Israel time (Asia/Jerusalem).",
    "BST": "BST also means Bangladesh time (Asia/Dhaka).",
    "GST": "GST also means the time of South Georgia.",
}


_OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
_MAX_OFFSET = timedelta(hours=18)


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone, how to call it, and what to know about the way it was found."""

    name: str
    info: tzinfo
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ListedZone:
    """A zone of the world's list, with the countries that use it."""

    name: str
    countries: tuple[str, ...]


class Zones:
    """The world's time zones. The lists are read at first use."""

    def __init__(self, default: str) -> None:
        self._default = default

    def find(self, text: str | None, field: str = "zone") -> Zone:
        """The zone somebody means; without a text the user's own."""
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
        """Zones whose name, city, country or abbreviation has the words of the query in it."""
        words = fold_name(query)
        hinted = {zone for city, zone in CITIES.items() if words and words in city}
        abbreviated = ABBREVIATIONS.get(query.strip().upper())
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
        name = ABBREVIATIONS.get(text.upper())
        if name is None:
            return None
        note = f"{text.upper()} is read as the local time of {name}. {AMBIGUOUS.get(text.upper(), '')}".strip()
        return Zone(name, zoneinfo.ZoneInfo(name), note)

    def _named(self, text: str) -> Zone | None:
        city = fold_name(text.partition(",")[0])
        name = self._spellings.get(fold_name(text)) or CITIES.get(city) or self._spellings.get(city)
        return None if name is None else Zone(name, zoneinfo.ZoneInfo(name))

    def _of_country(self, text: str, field: str) -> Zone | None:
        """A country with one zone names it; one with several does not. The first country of a zone is its own."""
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
        """Every folded spelling: the whole name, and the city at its end."""
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
    """Without case, accents, underscores and points, as people type names."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(letters.replace("_", " ").replace(".", "").replace("ł", "l").split())


def _load_table(name: str) -> list[list[str]]:
    """A table of the time zone data; empty where this system has none."""
    try:
        text = importlib.resources.files("tzdata").joinpath("zoneinfo", name).read_text(encoding="utf-8")
    except (OSError, ModuleNotFoundError):
        return []
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
