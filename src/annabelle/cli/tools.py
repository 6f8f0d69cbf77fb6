"""`annabelle tools`: lists the tools and calls one."""

from __future__ import annotations

import json as json_text
from typing import Annotated, cast

import typer

from annabelle.cli.hub_client import CliHubClient, ask_hub, call_tool, get_json, raise_if_failed
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_table
from annabelle.core.contract import ToolList
from annabelle.core.errors import CallerMistake
from annabelle.core.tools import JsonObject, ToolResult, ToolSpec, first_sentence

app = command_app("List the tools, or call one.")


@run_by_default(app)
@app.command("list")
def list_tools(
    words: Annotated[str, typer.Argument(help="Only tools whose name or description has this in it.")] = "",
    json: Json = False,
) -> None:
    """List the tools that can be called now."""
    listing = ToolList.model_validate(get_json("/tools/list"))
    found = [tool for tool in listing.tools if words.lower() in f"{tool.name} {tool.description}".lower()]
    if json:
        print_json({"version": listing.version, "tools": found})
        return
    print_table(
        ("TOOL", "SERVER", "KIND", "DESCRIPTION"),
        [(tool.name, tool.server, _kind(tool), first_sentence(clean(tool.description))) for tool in found],
    )


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="Name of the tool, as `tools list` shows it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="key=value pairs, or one JSON object with all arguments.")
    ] = None,
    json: Json = False,
) -> None:
    """Call a tool and print its result."""
    result = ask_hub(lambda client: _call(client, name, arguments or []))
    if json:
        print_json(result)
    raise_if_failed(result)
    if not json:
        print_line(result.for_person)


def _kind(tool: ToolSpec) -> str:
    if tool.annotations.read_only:
        return "reads"
    return "destroys" if tool.annotations.destructive else "writes"


async def _call(client: CliHubClient, name: str, given: list[str]) -> ToolResult:
    listing = ToolList.model_validate(await client.get("/tools/list"))
    # The hub refuses unknown names and suggests close ones.
    schema = next((tool.input_schema for tool in listing.tools if tool.name == name), JsonObject())
    return await call_tool(client, name, parse_arguments(given, schema))


def parse_arguments(given: list[str], schema: JsonObject) -> JsonObject:
    """Parse one JSON object, or key=value pairs according to the tool's schema."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            value = json_text.loads(given[0])
        except json_text.JSONDecodeError as error:
            raise CallerMistake(f"The arguments are not valid JSON: {error.msg} at position {error.pos}.") from error
        return cast("JsonObject", value)
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    arguments: JsonObject = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise CallerMistake(
                f"{pair!r} is not of the form key=value.", hint="Or give one JSON object with all arguments."
            )
        arguments[key] = _parse_value(text, properties.get(key, {}))
    return arguments


def _parse_value(text: str, schema: JsonObject) -> object:
    """Keep text where the schema wants a string; otherwise parse it as JSON if possible."""
    if schema.get("type") == "string":
        return text
    try:
        return cast("object", json_text.loads(text))
    except json_text.JSONDecodeError:
        return text
