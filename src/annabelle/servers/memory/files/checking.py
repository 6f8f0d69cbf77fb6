"""What is wrong with a row, in one sentence that never repeats what was in it."""

from __future__ import annotations

from pydantic import ValidationError


def problem_of(error: ValidationError) -> str:
    """The first problem, with the field it is in."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{field} is missing"
    said = first["msg"].removeprefix("Value error, ")
    return f"{field}: {said}" if field else said
