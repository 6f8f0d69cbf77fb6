"""Turns a typed async function into a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import Audience, JsonObject, ToolAnnotations
from annabelle.servers.kit.schema import input_schema, output_schema

Function = Callable[..., Awaitable[BaseModel]]
F = TypeVar("F", bound=Function)

_MARK = "__annabelle_tool__"


def tool(
    *, read_only: bool, destructive: bool, idempotent: bool, open_world: bool, audience: Audience = "everyone"
) -> Callable[[F], F]:
    """Declare an async function as a tool. All four answers are required: guessing them is how data gets lost.

    `audience="people"` keeps it from agents, `"hub"` from everyone but the hub itself; the toolbox sees to it.
    """
    if read_only and destructive:
        raise TypeError("A tool that only reads can not be destructive.")
    annotations = ToolAnnotations(
        read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
    )

    def mark(function: F) -> F:
        setattr(function, _MARK, _Mark(annotations, audience))
        return function

    return mark


@dataclass(frozen=True, slots=True)
class _Mark:
    annotations: ToolAnnotations
    audience: Audience


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool ready to be listed and called."""

    name: str
    description: str
    annotations: ToolAnnotations
    audience: Audience
    arguments: type[BaseModel]
    result: type[BaseModel]
    function: Function

    def input_schema(self) -> JsonObject:
        return input_schema(self.arguments)

    def output_schema(self) -> JsonObject:
        return output_schema(self.result)

    async def call(self, arguments: JsonObject) -> BaseModel:
        """Validate and run. A wrong argument is named before anything happens."""
        try:
            parsed = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise _invalid(self.name, error) from error
        return await self.function(**{name: getattr(parsed, name) for name in self.arguments.model_fields})


def collect(sources: Iterable[object]) -> dict[str, DeclaredTool]:
    """Every tool of the given functions and objects, by name. A tool without annotations or types is refused."""
    found: dict[str, DeclaredTool] = {}
    for source in sources:
        functions = [source] if inspect.isfunction(source) else _marked_methods(source)
        if not functions:
            raise TypeError(f"{source!r} declares no tool.")
        for function in functions:
            declared = _declare(cast("Function", function))
            if declared.name in found:
                raise TypeError(f"Two tools are called {declared.name}.")
            found[declared.name] = declared
    return found


def _marked_methods(source: object) -> list[object]:
    """In the order they are written, which is the order a reader of the tool list sees."""
    names = [name for kind in reversed(type(source).__mro__) for name in vars(kind)]
    return [getattr(source, name) for name in names if hasattr(getattr(type(source), name, None), _MARK)]


def _declare(function: Function) -> DeclaredTool:
    name = getattr(function, "__name__", repr(function))
    mark = getattr(function, _MARK, None)
    if not isinstance(mark, _Mark):
        raise TypeError(f"{name} has no annotations: declare it with @tool(read_only=…, destructive=…, …).")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{name} must be an async function.")
    description = inspect.getdoc(function)
    if not description:
        raise TypeError(f"{name} needs a docstring: it is what the model reads.")
    hints = get_type_hints(function, include_extras=True)
    result = hints.get("return")
    if not (isinstance(result, type) and issubclass(result, BaseModel)):
        raise TypeError(f"{name} must return a pydantic model.")
    fields: dict[str, tuple[object, object]] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in hints or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise TypeError(f"{name}: the parameter {parameter.name} needs a type.")
        default: object = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    maker = cast("Callable[..., type[BaseModel]]", create_model)
    arguments = maker(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    undescribed = [field for field, info in arguments.model_fields.items() if not _described(info)]
    if undescribed:
        raise TypeError(f"{name}: describe {', '.join(undescribed)} with Field(description=…).")
    return DeclaredTool(name, description, mark.annotations, mark.audience, arguments, result, function)


def _described(info: FieldInfo) -> bool:
    return bool(info.description)


def _invalid(tool_name: str, error: ValidationError) -> InvalidArguments:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or None
    problem = {"missing": "is missing", "extra_forbidden": "is not a parameter of this tool"}.get(
        first["type"], f"is not valid: {first['msg']}"
    )
    return InvalidArguments(f"{field or 'The arguments'} {problem} ({tool_name}).", field=field)
