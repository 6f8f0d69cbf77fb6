"""Checks a call's arguments against the tool's JSON Schema before any server is touched (RTR-03)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, cast

import jsonschema.exceptions
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from annabelle.core.errors import InvalidArguments
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec

_log = logging.getLogger(__name__)
_MESSAGE_LIMIT = 300
_COUNTED = {"maxLength": "characters", "maxItems": "entries"}


class SchemaValidator(Protocol):
    """The part of a schema validator we use."""

    def iter_errors(self, instance: object) -> Iterable[ValidationError]: ...


_best_match = cast(
    "Callable[[Iterable[ValidationError]], ValidationError | None]",
    jsonschema.exceptions.best_match,  # pyright: ignore[reportUnknownMemberType]
)


class ArgumentChecker:
    """Caches one validator per tool, as long as its spec is the same object."""

    def __init__(self) -> None:
        self._validators: dict[str, tuple[ToolSpec, SchemaValidator | None]] = {}

    def check(self, tool: ToolSpec, arguments: JsonObject) -> None:
        """Raise InvalidArguments that names the field, or return."""
        known, validator = self._validators.get(tool.name, (None, None))
        if known is not tool:
            validator = _make(tool)
            self._validators[tool.name] = (tool, validator)
        if validator is None:
            return
        try:
            error = _best_match(validator.iter_errors(arguments))
        except (Unresolvable, RecursionError) as trouble:
            _log.warning("the schema of %s cannot be resolved: %s", tool.name, trouble)
            return
        if error is not None:
            raise _to_invalid_arguments(tool.name, error)


def _make(tool: ToolSpec) -> SchemaValidator | None:
    kind = validator_for(tool.input_schema, default=Draft202012Validator)
    try:
        kind.check_schema(tool.input_schema)
    except SchemaError as error:
        _log.warning("the schema of %s is not valid and is not used: %s", tool.name, error.message[:_MESSAGE_LIMIT])
        return None
    # The default registry would fetch a remote $ref from the network.
    return cast("SchemaValidator", kind(tool.input_schema, registry=Registry()))


def _to_invalid_arguments(tool: str, error: ValidationError) -> InvalidArguments:
    path = [str(part) for part in error.absolute_path]
    problem = f"is not valid: {_shorten(error.message)}"
    if error.validator == "required":
        path.append(_missing(error))
        problem = "is missing"
    elif error.validator == "additionalProperties":
        path.append(_surplus(error))
        problem = "is not a parameter of this tool"
    elif error.validator in _COUNTED:
        problem = f"is too long: it may have at most {error.validator_value} {_COUNTED[str(error.validator)]}"
    field = ".".join(path)
    return InvalidArguments(f"{field or 'The arguments'} {problem} ({tool}).", field=field or None)


def _shorten(message: str) -> str:
    """Keep both ends: a message starts with the value, which may be long, and ends with the problem."""
    if len(message) <= _MESSAGE_LIMIT:
        return message
    half = _MESSAGE_LIMIT // 2
    return f"{message[:half]} … {message[-half:]}"


def _missing(error: ValidationError) -> str:
    given = cast("JsonObject", error.instance)
    return next((name for name in cast("list[str]", error.validator_value) if name not in given), "")


def _surplus(error: ValidationError) -> str:
    known = cast("JsonObject", cast("JsonObject", error.schema).get("properties", {}))
    return next((name for name in cast("JsonObject", error.instance) if name not in known), "")


@dataclass(frozen=True, slots=True)
class CheckArguments:
    inner: ToolClient
    checker: ArgumentChecker

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.checker.check(tool, arguments)
        return await self.inner.call(tool, arguments, context)
