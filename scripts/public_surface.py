"""List what people, clients and stored data rely on: commands, API, settings, tools, tables, file and durable names.

`--write` updates tests/project/public_surface.json; without it the list goes to stdout.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin
from unittest.mock import MagicMock

import server_docs
import sqlalchemy as sa
from source_names import SourceNames
from stored_models import MODELS

import annabelle
from annabelle.cli.app import load
from annabelle.cli.commands import COMMANDS
from annabelle.cli.service_manager import ServicePlan
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import HOME_VARIABLE, Home, HomePath
from annabelle.core.messages import EventType
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.hub.app import make_app
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.tools.registry import register_native_tools
from annabelle.servers.kit.tool_list_cache import ToolListing, read_listing
from annabelle.store.engine import make_engine, sqlite_url
from annabelle.store.memory.tables import MEMORY_PLAN as MEMORY
from annabelle.store.schema_migration import HUB_PLAN, MigrationPlan
from annabelle.thinker.compression.workspace import SPEC as UPDATE_WORKSPACE
from annabelle.thinker.session.archive_search import HistoryTool

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "project" / "public_surface.json"
PACKAGE = Path(annabelle.__file__).parent
REQUIRED = "required "

Json = dict[str, Any]


def surface() -> Json:
    """Everything, as nested objects whose leaves are short texts."""
    return {name: part() for name, part in PARTS.items()}


def commands() -> Json:
    """Every command by its full name, with its options and arguments."""
    found: Json = {}
    for command in COMMANDS:
        found |= _command(load(command.name), command.name)
    return found


def _command(command: Any, name: str) -> Json:
    found: Json = {name: {}}
    for parameter in command.params:
        # An argument is known by its place: what it is called is seen in the help only.
        spelling = " ".join([*parameter.opts, *parameter.secondary_opts])
        found[name][spelling if spelling.startswith("-") else f"argument {len(found[name]) + 1}"] = _parameter(
            parameter
        )
    for inner_name, inner in getattr(command, "commands", {}).items():
        found |= _command(inner, f"{name} {inner_name}")
    return found


def _parameter(parameter: Any) -> str:
    wanted = parameter.type_descriptor.annotation
    choices = get_args(wanted) if get_origin(wanted) is Literal else ()
    word = "|".join(choices) if choices else getattr(wanted, "__name__", str(wanted))
    words = [REQUIRED.strip()] if parameter.required else []
    words.append("flag" if getattr(parameter, "is_flag", False) else word)
    if parameter.multiple or parameter.nargs != 1:
        words.append("many")
    if isinstance(parameter.default, str | int | float) and not parameter.required:
        words.append(f"= {parameter.default}")
    return " ".join(words)


def api() -> Json:
    """Every address with its methods, and the fields that go in and come out."""
    # Only what guards the application reads the hub's parts while it is put together.
    guarded = make_app(MagicMock(settings=Settings()))
    app = next(part for part in vars(guarded).values() if hasattr(part, "openapi"))
    document: Json = app.openapi()
    schemas = document["components"]["schemas"]
    return {
        f"{method.upper()} {path}": _operation(operation, schemas)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def _operation(operation: Json, schemas: Json) -> Json:
    found: Json = {"operation": operation["operationId"]}
    if parameters := operation.get("parameters"):
        found["parameters"] = {
            f"{one['in']} {one['name']}": (REQUIRED if one.get("required") else "") + kind(one["schema"], schemas)
            for one in parameters
        }
    for content_type, content in operation.get("requestBody", {}).get("content", {}).items():
        found[f"request {content_type}"] = fields(content.get("schema", {}), schemas)
    found["responses"] = {
        status: {name: fields(body.get("schema", {}), schemas) for name, body in answer.get("content", {}).items()}
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    }
    found["errors"] = sorted(status for status in operation["responses"] if not status.startswith("2"))
    return found


def settings() -> Json:
    schema = Settings.model_json_schema()
    return {
        name.upper(): kind(schema["properties"][name], schema.get("$defs", {}))
        for name in sorted(Settings.model_fields)
    }


def servers() -> Json:
    """What each server's manifest says, but for its label."""
    found: Json = {}
    for name in server_docs.names():
        manifest = tomllib.loads(
            (PACKAGE / "servers" / server_docs.folders()[name] / "manifest.toml").read_text(encoding="utf-8")
        )
        found[name] = {key: value for key, value in manifest.items() if key != "label"}
    return found


def tools() -> Json:
    """Every tool: of the servers, of the hub itself, and those a thinker serves in its own process."""
    found: Json = {}
    for name, tool in _server_tools():
        found[name] = _listed(tool)
    own = HistoryTool.spec.fget(None)  # pyright: ignore[reportOptionalCall]  a constant behind a property
    for spec in [*_native_tools(), own, UPDATE_WORKSPACE]:
        found[spec.name] = _tool(spec)
    return found


def input_schemas() -> dict[str, Json]:
    """The arguments of every tool of the servers and of the hub."""
    found = {name: tool["inputSchema"] for name, tool in _server_tools()}
    return found | {spec.name: spec.input_schema for spec in _native_tools()}


def _server_tools() -> Iterator[tuple[str, Json]]:
    """The tools of every server as it lists them, by the name they are exposed under."""
    for name in server_docs.names():
        package = f"annabelle.servers.{server_docs.folders()[name]}"
        listing = read_listing(package) or ToolListing.from_server(server_docs.build(name))
        for tool in listing.result()["tools"]:
            yield f"{name}_{tool['name']}", tool


def _listed(tool: Json) -> Json:
    found: Json = {
        "parameters": fields(tool["inputSchema"], {}),
        "answers": fields(tool.get("outputSchema", {}), {}),
        "annotations": tool["annotations"],
    }
    return found | {"meta": tool["_meta"]} if tool.get("_meta") else found


def _tool(spec: ToolSpec) -> Json:
    return {
        "parameters": fields(spec.input_schema, {}),
        "annotations": spec.annotations.model_dump(mode="json"),
        "server": spec.server,
        "group": spec.group,
        "audience": spec.audience,
    }


class _Offered:
    """Stands in for the toolbox: notes what the hub offers."""

    def __init__(self) -> None:
        self.specs: list[ToolSpec] = []
        self.changed: list[Callable[[str], None]] = []

    def add_native(self, tools: Any) -> None:
        self.specs += [tool.spec() for tool in tools]

    def on_change(self, tell: Callable[[str], None]) -> None:
        self.changed.append(tell)

    def tools(self, *_policy: object, **_names: object) -> object:
        return SimpleNamespace(tools=[SimpleNamespace(server="memory", name="memory_stats")])


def _native_tools() -> list[ToolSpec]:
    offered = _Offered()
    hub = MagicMock(toolbox=offered)
    hub.services.memory.native_tools.return_value = HubMemory.native_tools(MagicMock())

    async def offer() -> None:
        register_native_tools(hub, MagicMock())
        for tell in offered.changed:
            tell("")
        await asyncio.sleep(0)  # some are offered with the next turn of the loop

    asyncio.run(offer())
    return offered.specs


def tables() -> Json:
    """The tables and columns of both databases, as SQLite has them."""
    return {"hub": _tables(HUB_PLAN), "memory": _tables(MEMORY)}


def _tables(plan: MigrationPlan) -> Json:
    assert plan.create is not None
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(sqlite_url(Path(folder) / "tables.db"))
        try:
            with engine.begin() as connection:
                plan.create(connection)
            with engine.connect() as connection:
                look = sa.inspect(connection)
                found: Json = {name: _columns(look, name) for name in sorted(look.get_table_names())}
        finally:
            engine.dispose()
    return found | {plan.version_table: {"version_num": "version"}}


def _columns(look: Any, table: str) -> Json:
    keys = look.get_pk_constraint(table)["constrained_columns"]
    return {
        column["name"]: f"{column['type']}{'' if column['nullable'] else ' not null'}"
        f"{' key' if column['name'] in keys else ''}"
        for column in look.get_columns(table)
    }


def home_files() -> list[str]:
    """The name of every place in a home."""
    home = Home(Path("/home"))
    places = [
        str(getattr(home, name).relative_to(home.root))
        for name, value in vars(Home).items()
        if isinstance(value, HomePath)
    ]
    return sorted([*places, str(home.agent("ID").relative_to(home.root))])


def stored() -> Json:
    """The fields of what is kept as JSON in files and columns, under the names they are written with."""
    return {name: fields(model.model_json_schema(by_alias=True), {}) for name, model in MODELS.items()}


def entry_points() -> Json:
    """How it is started: by the command, and by what stands in the units of service managers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plan = ServicePlan("python", Path("/home"), "", 1)
    return {
        "scripts": sorted(project["scripts"]),
        "service": " ".join(plan.argv),
        "runs": importlib.util.find_spec(f"{plan.argv[-1]}.__main__") is not None,
        "variable": HOME_VARIABLE,
    }


def events() -> list[str]:
    return sorted(get_args(EventType))


def errors() -> Json:
    """The codes of all errors; those of the tree with the status and exit code they stand for."""
    found: Json = {code: {} for code in sorted(_sources().error_codes())}
    for error in _error_classes(AnnabelleError):
        if error.__module__ == AnnabelleError.__module__:
            found[error.code] = {"http": error.http_status, "exit": error.exit_code, "retry": error.retry}
    return found


def _error_classes(kind: type[AnnabelleError]) -> Iterator[type[AnnabelleError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _error_classes(child)


def durable() -> Json:
    """Names the durable engine stores: a pending workflow is found again by them, and its finished steps."""
    names = _sources()
    return {"workflows": names.workflows(), "steps": names.steps(), "owners": names.durable_owners()}


@cache
def _sources() -> SourceNames:
    return SourceNames.read(PACKAGE)


def fields(schema: Json, schemas: Json, path: str = "", seen: tuple[str, ...] = ()) -> Json:
    """Every field of a JSON schema by its path, with what it may be. Names of Python classes do not get in."""
    schemas = {**schemas, **schema.get("$defs", {})}
    if (name := schema.get("$ref", "").rpartition("/")[2]) != "":
        return {} if name in seen else fields(schemas[name], schemas, path, (*seen, name))
    found: Json = {}
    for option in [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]:
        found |= fields(option, schemas, path, seen)
    if isinstance(schema.get("items"), dict):
        found |= fields(schema["items"], schemas, f"{path}[]", seen)
    if isinstance(schema.get("additionalProperties"), dict):
        found |= fields(schema["additionalProperties"], schemas, f"{path}{{}}", seen)
    for name, about in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        found[inner] = (REQUIRED if name in schema.get("required", []) else "") + kind(about, schemas)
        found |= fields(about, schemas, inner, seen)
    return found


_BOUNDS = (
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def kind(schema: Json, schemas: Json) -> str:
    """What a value may be, in a few words, with its bounds and default."""
    default = f" = {json.dumps(schema['default'], ensure_ascii=False)}" if "default" in schema else ""
    return _kind(schema, schemas) + default


def _kind(schema: Json, schemas: Json) -> str:
    if name := schema.get("$ref", "").rpartition("/")[2]:
        target = schemas.get(name, {})
        return "object" if "properties" in target else _kind(target, schemas)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return "|".join(dict.fromkeys(_kind(option, schemas) for option in schema[key]))
    if "enum" in schema:
        return "|".join(json.dumps(choice) for choice in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    found = schema.get("type", "anything")
    word = "|".join(found) if isinstance(found, list) else str(found)
    if word == "array":
        word = f"[{_kind(schema.get('items', {}), schemas)}]"
    bounds = [f"{bound} {schema[bound]}" for bound in _BOUNDS if bound in schema]
    return f"{word} ({', '.join(bounds)})" if bounds else word


PARTS: dict[str, Callable[[], object]] = {
    "commands": commands,
    "api": api,
    "settings": settings,
    "servers": servers,
    "tools": tools,
    "tables": tables,
    "home": home_files,
    "stored": stored,
    "entry_points": entry_points,
    "durable": durable,
    "events": events,
    "errors": errors,
}


def main(write: bool) -> int:
    text = json.dumps(surface(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if write:
        FILE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
