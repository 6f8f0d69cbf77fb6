"""Converts between units. The units are read by a grammar of our own: the library's parser reckons what it reads."""

from __future__ import annotations

import difflib
import math
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.unit_words import CASED, COMMON, CURRENCIES, EXTRA, SPELLINGS
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    import pint
else:
    pint = deferred_module("pint")

_FACTOR = re.compile(r"([^\W\d][\w°]*|°\w+|[°'\"′″%Å])\s*(?:(?:\^|\*\*)?\s*([+-]?[1-9])(?!\d))?")
_SEPARATOR = re.compile(r"\s*([*/])?\s*")
_POWERS = {"sq": 2, "square": 2, "cu": 3, "cubic": 3}
_SIGNS = str.maketrans({"²": "^2", "³": "^3", "·": "*", "×": "*", "⋅": "*", "µ": "u", "μ": "u", "÷": "/"})
_MAX_FACTORS = 8
_TOO_LARGE = 1e300


class Unit(Protocol):
    """What is used of the library's units."""

    dimensionality: object

    def __mul__(self, other: Unit) -> Unit: ...
    def __truediv__(self, other: Unit) -> Unit: ...
    def __pow__(self, power: int) -> Unit: ...


class Quantity(Protocol):
    magnitude: float

    def to(self, unit: str) -> Quantity: ...


class Registry(Protocol):
    """What is used of the library's table of units."""

    def Unit(self, name: str) -> Unit: ...  # the library's own spelling
    def Quantity(self, value: float, unit: str) -> Quantity: ...
    def define(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in its new unit."""

    value: float
    from_unit: str
    to_unit: str
    reciprocal: bool = False


class Measures:
    """The table of units, read at first use."""

    def __init__(self) -> None:
        self._registry: Registry | None = None
        self._lock = threading.Lock()

    def convert(self, value: float, from_text: str, to_text: str) -> Measured:
        """The value in the other unit. Consumption and its inverse (miles per gallon) turn into each other."""
        registry = self._table()
        source, target = self._read(from_text, "from_unit"), self._read(to_text, "to_unit")
        fits = source.dimensionality == target.dimensionality
        reciprocal = not fits and source.dimensionality == (target**-1).dimensionality
        if not fits and not reciprocal:
            raise self._mismatch(source, target, from_text, to_text)
        if reciprocal and value == 0:
            raise InvalidArguments("Zero has no reciprocal, so this can not be converted.", field="value")
        amount = 1 / value if reciprocal else value
        start = source**-1 if reciprocal else source
        try:
            found = float(registry.Quantity(amount, str(start)).to(str(target)).magnitude)
        except (pint.PintError, OverflowError, ZeroDivisionError) as error:
            raise InvalidArguments(
                f"{from_text[:60]!r} can not be converted to {to_text[:60]!r}.",
                hint="Temperatures convert only by themselves, not as a part of another unit.",
                field="from_unit",
            ) from error
        if not math.isfinite(found) or abs(found) > _TOO_LARGE:
            raise InvalidArguments("The result is too large a number.", hint="Use a larger unit.", field="to_unit")
        return Measured(float(f"{found:.12g}"), str(source), str(target), reciprocal)

    def _table(self) -> Registry:
        with self._lock:
            if self._registry is None:
                registry = cast("Registry", pint.UnitRegistry())
                for line in EXTRA:
                    registry.define(line)
                self._registry = registry
            return self._registry

    def _read(self, text: str, field: str) -> Unit:
        """Factors with small powers, times or divided by each other; nothing else, so nothing to reckon."""
        plain = " ".join(text.replace(".", " ").translate(_SIGNS).split())
        if plain not in CASED:
            plain = SPELLINGS.get(text.strip().lower(), SPELLINGS.get(plain.lower(), plain))
        plain = re.sub(r"\s*\bper\b\s*|\s*/\s*", "/", plain, flags=re.IGNORECASE)
        unit: Unit | None = None
        power, divide, position, count = 1, False, 0, 0
        while position < len(plain):
            match = _FACTOR.match(plain, position)
            if match is None or count == _MAX_FACTORS:
                raise self._unknown(text, field)
            position = match.end()
            word = match[1].lower()
            if word in _POWERS and match[2] is None and position < len(plain):
                power = _POWERS[word]
            else:
                factor = self._name(match[1], text, field) ** (power * int(match[2] or 1))
                unit = factor if unit is None else unit / factor if divide else unit * factor
                power, divide, count = 1, False, count + 1
            separator = _SEPARATOR.match(plain, position)
            if separator is not None:
                divide, position = separator[1] == "/" or (divide and separator[1] is None), separator.end()
        if unit is None:
            raise self._unknown(text, field)
        return unit

    def _name(self, word: str, text: str, field: str) -> Unit:
        registry = self._table()
        for spelled in (CASED.get(word) or SPELLINGS.get(word.lower(), word), word, word.lower()):
            try:
                return registry.Unit(spelled.replace("^", "**"))
            except (pint.PintError, AttributeError, TypeError, ValueError):
                continue
        power = re.fullmatch(r"(\D+)([23])", word)  # m2, ft3
        if power is not None:
            return self._name(power[1], text, field) ** int(power[2])
        raise self._unknown(text, field, word)

    def _unknown(self, text: str, field: str, word: str | None = None) -> InvalidArguments:
        spelled = (word or text)[:60]
        if spelled.strip().lower() in CURRENCIES:
            return InvalidArguments(f"{spelled} is money.", hint="convert_currency knows rates.", field=field)
        names = [*COMMON, *SPELLINGS]
        close = difflib.get_close_matches(spelled.lower(), names, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else "Write it like km, lb, °F, sq ft, m/s or kWh."
        return InvalidArguments(f"{spelled!r} is not a unit.", hint=hint, field=field)

    def _mismatch(self, source: Unit, target: Unit, from_text: str, to_text: str) -> InvalidArguments:
        registry = self._table()
        fitting = [
            name for name in COMMON if registry.Unit(name.replace("^", "**")).dimensionality == source.dimensionality
        ]
        return InvalidArguments(
            f"{from_text[:60]!r} ({source.dimensionality}) and {to_text[:60]!r} ({target.dimensionality}) do not "
            "measure the same thing.",
            hint=f"It converts to {', '.join(fitting[:8])}." if fitting else None,
            field="to_unit",
        )
