"""The tool that converts units."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.everyday.measuring import Measures
from annabelle.servers.kit import Result, in_thread, tool

UnitName = Annotated[str, Field(min_length=1, max_length=60)]


class Converted(Result):
    """A value in another unit."""

    value: float
    from_unit: str
    result: float
    to_unit: str
    note: str | None = None

    def text(self) -> str:
        note = f" {self.note}" if self.note else ""
        return f"{self.value:.12g} {self.from_unit} = {self.result:.12g} {self.to_unit}.{note}"


class Units:
    """convert_units."""

    def __init__(self) -> None:
        self._measures = Measures()

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def convert_units(
        self,
        value: Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False, description="How much")],
        from_unit: Annotated[UnitName, Field(description="As in mile, lb, °F, sq ft, km/h, cups, GB")],
        to_unit: Annotated[UnitName, Field(description="As in km, kg, °C, m^2, mph, ml, MiB")],
    ) -> Converted:
        """Convert between units of length, weight, volume, temperature, speed, area, energy, data and more. Cups,
        gallons and the like are those of the United States unless called imperial."""
        found = await in_thread(lambda stop: self._measures.convert(value, from_unit, to_unit))
        return Converted(
            value=value,
            from_unit=found.from_unit,
            result=found.value,
            to_unit=found.to_unit,
            note="One is the reciprocal of the other." if found.reciprocal else None,
        )
