"""Declares tools from typed async functions: schemas, validation, results and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeVar, cast, get_type_hints

from mcp_types import Annotations, CallToolResult, ContentBlock, TextContent
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from annabelle.core.errors import AnnabelleError, InvalidArguments, TooLarge
from annabelle.core.result_text import describe, for_model, render_for_person
from annabelle.core.tools import Audience, JsonObject, ToolAnnotations

_REFERENCE = "#/$defs/"
FOR_MODEL, FOR_PERSON = Annotations(audience=["assistant"]), Annotations(audience=["user"])


def input_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a tool's arguments. Some providers reject `$ref`, so definitions are written out in place."""
    schema: JsonObject = model.model_json_schema(mode="validation")
    definitions = cast("dict[str, object]", schema.pop("$defs", {}))
    return cast("JsonObject", _tidy_schema(schema, definitions))


def output_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a tool's structured result."""
    schema: JsonObject = model.model_json_schema(mode="serialization")
    return cast("JsonObject", _tidy_schema(schema, None))


def _tidy_schema(node: object, definitions: dict[str, object] | None, inside: str = "") -> object:
    if isinstance(node, list):
        return [_tidy_schema(item, definitions) for item in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    entries = cast("dict[str, object]", node)
    reference = entries.get("$ref")
    if definitions is not None and isinstance(reference, str) and reference.startswith(_REFERENCE):
        target = cast("dict[str, object]", definitions[reference.removeprefix(_REFERENCE)])
        beside = {key: value for key, value in entries.items() if key != "$ref"}
        return _tidy_schema({**target, **beside}, definitions)
    # A title only repeats a field's name, but a property may itself be called "title".
    names_properties = inside in ("properties", "$defs")
    return {
        key: _tidy_schema(value, definitions, key)
        for key, value in entries.items()
        if names_properties or not (key == "title" and isinstance(value, str))
    }


Function = Callable[..., Awaitable[BaseModel]]
F = TypeVar("F", bound=Function)

MARK = "__annabelle_tool__"


def tool(
    *, read_only: bool, destructive: bool, idempotent: bool, open_world: bool, audience: Audience = "everyone"
) -> Callable[[F], F]:
    """Declare an async function as a tool. All four answers are required: guessing them is how data gets lost.

    `audience="people"` keeps it from agents, `"hub"` from everyone but the hub itself; the toolbox sees to it.
    """
    if read_only and destructive:
        raise TypeError("A read-only tool cannot be destructive.")
    annotations = ToolAnnotations(
        read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
    )

    def mark_function(function: F) -> F:
        setattr(function, MARK, _ToolMark(annotations, audience))
        return function

    return mark_function


@dataclass(frozen=True, slots=True)
class _ToolMark:
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
            raise _argument_error(self.name, error) from error
        return await self.function(**{name: getattr(parsed, name) for name in self.arguments.model_fields})


def collect_tools(sources: Iterable[object]) -> dict[str, DeclaredTool]:
    """Every tool of the given functions and objects, by name. A tool without annotations or types is refused."""
    found: dict[str, DeclaredTool] = {}
    for source in sources:
        functions = [source] if inspect.isfunction(source) else _marked_methods(source)
        if not functions:
            raise TypeError(f"{source!r} declares no tool.")
        for function in functions:
            declared = _declare_tool(cast("Function", function))
            if declared.name in found:
                raise TypeError(f"Two tools are called {declared.name}.")
            found[declared.name] = declared
    return found


def _marked_methods(source: object) -> list[object]:
    """In source order, which is the order of the tool list."""
    names = [name for kind in reversed(type(source).__mro__) for name in vars(kind)]
    return [getattr(source, name) for name in names if hasattr(getattr(type(source), name, None), MARK)]


def _declare_tool(function: Function) -> DeclaredTool:
    declared = declare_function(getattr(function, "__func__", function), is_method=inspect.ismethod(function))
    return replace(declared, function=function)


@cache
def declare_function(function: Function, *, is_method: bool) -> DeclaredTool:
    """The same for every object of a class, so it is made once."""
    name = getattr(function, "__name__", repr(function))
    mark = getattr(function, MARK, None)
    if not isinstance(mark, _ToolMark):
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
    for parameter in list(inspect.signature(function).parameters.values())[is_method:]:
        if parameter.name not in hints or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise TypeError(f"{name}: the parameter {parameter.name} needs a type.")
        default: object = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    maker = cast("Callable[..., type[BaseModel]]", create_model)
    arguments = maker(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    undescribed = [field for field, info in arguments.model_fields.items() if not _is_described(info)]
    if undescribed:
        raise TypeError(f"{name}: describe {', '.join(undescribed)} with Field(description=…).")
    return DeclaredTool(name, description, mark.annotations, mark.audience, arguments, result, function)


def _is_described(info: FieldInfo) -> bool:
    return bool(info.description)


def _argument_error(tool_name: str, error: ValidationError) -> InvalidArguments:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or None
    problem = {"missing": "is missing", "extra_forbidden": "is not a parameter of this tool"}.get(
        first["type"], f"is not valid: {first['msg']}"
    )
    return InvalidArguments(f"{field or 'The arguments'} {problem} ({tool_name}).", field=field)


class Result(BaseModel):
    """Base of every tool's result. Override `to_text` where a sentence or the content itself reads better; what only a
    model needs of it goes through `for_model`."""

    # Built when the list of tools is first asked for, parts and whole together, instead of each class by itself.
    model_config = ConfigDict(frozen=True, defer_build=True)

    def to_text(self) -> str:
        return for_model(self.model_dump_json(exclude_none=True)) or describe(self.model_dump(mode="json"))


_FILE_NAME: Final = re.compile(r"(?:.*_)?(?:path|name|file|folder|backup|destination)s?")
_LINE_BREAKING: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def _escape_names(value: object, field: str = "") -> object:
    """The value with every file name on one line: one with a line break in it would read like two."""
    if isinstance(value, str):
        named = _FILE_NAME.fullmatch(field) is not None
        return _LINE_BREAKING.sub(lambda sign: repr(sign[0])[1:-1], value) if named else value
    if isinstance(value, list):
        return [_escape_names(item, field) for item in cast("list[object]", value)]
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _escape_names(inner, name) for name, inner in value})
    return value


def _to_text(result: BaseModel) -> str:
    return result.to_text() if isinstance(result, Result) else result.model_dump_json(exclude_none=True)


def success(result: BaseModel, max_bytes: int) -> CallToolResult:
    """The result as it goes over the wire; one that is too large is refused, because half a structure is none."""
    text = _to_text(result)
    display = render_for_person(lambda: _to_text(cast("BaseModel", _escape_names(result))))
    size = max(len(result.model_dump_json().encode()), len(text.encode("utf-8", errors="replace")))
    if size > max_bytes:
        raise TooLarge(
            f"The result is {size} bytes, more than the {max_bytes} a tool may return.",
            hint="Ask for less: a narrower path, a filter or a smaller limit.",
        )
    content: list[ContentBlock] = [TextContent(text=text)]
    if display != text:
        content = [TextContent(text=text, annotations=FOR_MODEL), TextContent(text=display, annotations=FOR_PERSON)]
    return CallToolResult(content=content, structured_content=result.model_dump(mode="json"))


def failure(error: AnnabelleError, trace_id: str | None) -> CallToolResult:
    """An error the model can read and the router can sort: its sentence as text, its code and hint as structure."""
    body = error.body(trace_id)
    return CallToolResult(
        content=[TextContent(text=body.message if body.hint is None else f"{body.message} {body.hint}")],
        structured_content={"error": body.model_dump(mode="json", exclude_none=True)},
        is_error=True,
    )
