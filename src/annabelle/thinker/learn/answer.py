"""Reads what a model answered as a JSON array, or says what is wrong with it. Nothing is guessed or repaired."""

from __future__ import annotations

import json
import re
from typing import NoReturn, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

_MAX_CHARS = 50_000
# Only when the whole answer is one fence: text around it means that the model did something else than it was asked.
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)

M = TypeVar("M", bound=BaseModel)


class Malformed(ValueError):
    """The answer is no use. Its sentence says why, and repeats nothing of it."""


class Strict(BaseModel):
    """One element of the array: exactly these fields, each of exactly its type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def array_of(element: type[M], text: str) -> list[M]:
    """The elements of the array, all of them right; one wrong element makes the whole answer wrong."""
    text = text.strip()
    if not text:
        raise Malformed("The model's answer is empty.")
    if len(text) > _MAX_CHARS:
        raise Malformed(f"The model's answer is longer than {_MAX_CHARS} characters.")
    fence = _FENCED.fullmatch(text)
    try:
        content = cast("object", json.loads(fence.group(1) if fence else text, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise Malformed("The model's answer is not a JSON array.") from error
    if not isinstance(content, list):
        raise Malformed("The model's answer is not a JSON array.")
    elements: list[M] = []
    for number, item in enumerate(cast("list[object]", content), start=1):
        try:
            # Through JSON once more: strict types of JSON (a number is no text), lists where tuples are wanted.
            elements.append(element.model_validate_json(json.dumps(item)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "element"
            raise Malformed(
                f"Element {number} of the model's answer is wrong at {place[:60]!r}: {first['type']}."
            ) from error
    return elements


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
