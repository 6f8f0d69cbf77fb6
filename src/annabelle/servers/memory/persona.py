"""Who an agent is: the fields of a persona, and what may stand in them (CTX-08)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Persona(BaseModel):
    """How an agent presents itself and behaves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)] | None = None
    style: Annotated[str, Field(max_length=2000)] | None = None
    tone: Annotated[str, Field(max_length=2000)] | None = None
    system_prompt: Annotated[str, Field(max_length=20_000)] | None = None
    capabilities: Annotated[list[Line], Field(max_length=50)] | None = None
    proactive_behaviours: Annotated[list[Line], Field(max_length=50)] | None = None


FIELDS = tuple(Persona.model_fields)
LISTS = ("capabilities", "proactive_behaviours")


def check_persona(section: JsonObject) -> JsonObject:
    """A persona with its fields in order; what is wrong with it is one sentence."""
    try:
        return Persona.model_validate(section).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise InvalidArguments(
                f"A persona has no field {field[:60]!r}.",
                hint=f"It has {', '.join(FIELDS)}; whatever else there is to say belongs into system_prompt.",
                field="updates",
            ) from error
        raise InvalidArguments(f"The persona's {field} is not valid: {first['msg']}.", field="updates") from error
