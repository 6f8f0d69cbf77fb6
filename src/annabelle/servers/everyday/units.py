"""The tool that converts units, with its own unit parser and spellings."""

from __future__ import annotations

import difflib
import math
import re
import threading
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, cast

from pydantic import BaseModel, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import Result, deferred_module, in_thread, tool

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


class UnitWords(BaseModel):
    """The contents of `units.toml`."""

    common: tuple[str, ...]
    currencies: frozenset[str]
    definitions: tuple[str, ...]
    spellings: dict[str, str]
    case_sensitive: dict[str, str]


@cache
def load_unit_words() -> UnitWords:
    return UnitWords.model_validate(tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8")))


class PintUnit(Protocol):
    """What is used of the library's units."""

    dimensionality: object

    def __mul__(self, other: PintUnit) -> PintUnit: ...
    def __truediv__(self, other: PintUnit) -> PintUnit: ...
    def __pow__(self, power: int) -> PintUnit: ...


class PintQuantity(Protocol):
    magnitude: float

    def to(self, unit: str) -> PintQuantity: ...


class PintRegistry(Protocol):
    """What is used of the library's table of units."""

    def Unit(self, name: str) -> PintUnit: ...  # the library's own spelling
    def Quantity(self, value: float, unit: str) -> PintQuantity: ...
    def define(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ConvertedValue:
    """A value in its new unit."""

    value: float
    from_unit: str
    to_unit: str
    reciprocal: bool = False


class UnitConverter:
    """Converts units; pint's table is read on first use."""

    def __init__(self) -> None:
        self._registry: PintRegistry | None = None
        self._lock = threading.Lock()

    def convert(self, value: float, from_text: str, to_text: str) -> ConvertedValue:
        """The value in the other unit. Units and their reciprocals (l/100km and miles per gallon) convert into each
        other."""
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
        return ConvertedValue(float(f"{found:.12g}"), _name_unit(source), _name_unit(target), reciprocal)

    def _table(self) -> PintRegistry:
        with self._lock:
            if self._registry is None:
                registry = cast("PintRegistry", pint.UnitRegistry())
                for line in load_unit_words().definitions:
                    registry.define(line)
                self._registry = registry
            return self._registry

    def _read(self, text: str, field: str) -> PintUnit:
        """Parse factors with small powers, multiplied or divided; nothing else, so that no expression is evaluated."""
        plain = " ".join(text.replace(".", " ").translate(_SIGNS).split())
        words = load_unit_words()
        if plain not in words.case_sensitive:
            plain = words.spellings.get(text.strip().lower(), words.spellings.get(plain.lower(), plain))
        plain = re.sub(r"\s*\bper\b\s*|\s*/\s*", "/", plain, flags=re.IGNORECASE)
        unit: PintUnit | None = None
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

    def _name(self, word: str, text: str, field: str) -> PintUnit:
        registry, words = self._table(), load_unit_words()
        known = words.case_sensitive.get(word) or words.spellings.get(word.lower(), word)
        for spelled in (known, word, word.lower()):
            try:
                return registry.Unit(spelled.replace("^", "**"))
            except (pint.PintError, AttributeError, TypeError, ValueError):
                continue
        power = re.fullmatch(r"(\D+)([23])", word)  # m2, ft3
        if power is not None:
            return self._name(power[1], text, field) ** int(power[2])
        raise self._unknown(text, field, word)

    def _unknown(self, text: str, field: str, word: str | None = None) -> InvalidArguments:
        spelled, words = (word or text)[:60], load_unit_words()
        if spelled.strip().lower() in words.currencies:
            return InvalidArguments(f"{spelled} is money.", hint="convert_currency knows rates.", field=field)
        close = difflib.get_close_matches(spelled.lower(), [*words.common, *words.spellings], n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else "Write it like km, lb, °F, sq ft, m/s or kWh."
        return InvalidArguments(f"{spelled!r} is not a unit.", hint=hint, field=field)

    def _mismatch(self, source: PintUnit, target: PintUnit, from_text: str, to_text: str) -> InvalidArguments:
        registry = self._table()
        fitting = [
            name
            for name in load_unit_words().common
            if registry.Unit(name.replace("^", "**")).dimensionality == source.dimensionality
        ]
        return InvalidArguments(
            f"{from_text[:60]!r} ({source.dimensionality}) and {to_text[:60]!r} ({target.dimensionality}) do not "
            "measure the same thing.",
            hint=f"It converts to {', '.join(fitting[:8])}." if fitting else None,
            field="to_unit",
        )


UnitName = Annotated[str, Field(min_length=1, max_length=60)]


def _name_unit(unit: PintUnit) -> str:
    """`mile`, and `mph` rather than `mile_per_hour`; `miles per gallon` has no sign."""
    name = str(unit)
    return name if name.isalpha() else f"{unit:~P}".replace("_", " ")


class ConvertedUnits(Result):
    """A value in another unit."""

    value: float
    from_unit: str
    result: float
    to_unit: str
    note: str | None = None

    def to_text(self) -> str:
        note = f" {self.note}" if self.note else ""
        return f"{self.value:.12g} {self.from_unit} = {self.result:.12g} {self.to_unit}.{note}"


class UnitTools:
    """convert_units."""

    def __init__(self) -> None:
        self._measures = UnitConverter()

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def convert_units(
        self,
        value: Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False, description="How much")],
        from_unit: Annotated[UnitName, Field(description="As in mile, lb, °F, sq ft, km/h, cups, GB")],
        to_unit: Annotated[UnitName, Field(description="As in km, kg, °C, m^2, mph, ml, MiB")],
    ) -> ConvertedUnits:
        """Convert between units of length, weight, volume, temperature, speed, area, energy, data and more. Cups,
        gallons and the like are those of the United States unless called imperial."""
        found = await in_thread(lambda stop: self._measures.convert(value, from_unit, to_unit))
        return ConvertedUnits(
            value=value,
            from_unit=found.from_unit,
            result=found.value,
            to_unit=found.to_unit,
            note="One is the reciprocal of the other." if found.reciprocal else None,
        )
