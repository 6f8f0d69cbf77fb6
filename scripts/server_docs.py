"""The pages about the built-in servers: every tool, made from the code, with an example that a test keeps true."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import annabelle
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.tools import DeclaredTool

DOCS = Path(__file__).resolve().parent.parent / "docs"
SERVERS = Path(annabelle.__file__).parent / "servers"
EXAMPLES = DOCS / "examples" / "tools"
NOTE = "<!-- Made by scripts/gen_docs.py; `make docs` writes it anew. -->"

Json = dict[str, Any]


def folders() -> dict[str, str]:
    """Every server by the name in its manifest, with its folder."""
    return {tomllib.loads(file.read_text())["name"]: file.parent.name for file in SERVERS.glob("*/manifest.toml")}


def names() -> list[str]:
    return sorted(folders())


def build(name: str) -> ToolServer:
    """The server as it is on a fresh machine: a home of its own, and no setting but the defaults."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.clear()
        os.environ.update({"PATH": before.get("PATH", ""), "HOME": folder, "ANNABELLE_HOME": f"{folder}/home"})
        try:
            return importlib.import_module(f"annabelle.servers.{folders()[name]}.server").build()
        finally:
            os.environ.clear()
            os.environ.update(before)


def pages() -> dict[str, Callable[[], str]]:
    """Each page by its path below docs/, to be made when it is wanted."""
    made: dict[str, Callable[[], str]] = {f"servers/{name}.md": lambda name=name: server_page(name) for name in names()}
    return {"servers/README.md": index_page, **made}


def index_page() -> str:
    """All servers with how many tools each has."""
    lines = [
        "# Built-in servers",
        "",
        NOTE,
        "",
        "Each is a process of its own and gets only the settings it names. `NAME_MCP_ENABLED=false` switches one off.",
        "How one is made: [src/annabelle/servers](../../src/annabelle/servers/README.md).",
        "",
        "| server | what it is | tools |",
        "|---|---|---|",
    ]
    total = 0
    for name in names():
        count = len(_offered(build(name)))
        total += count
        lines.append(f"| [{name}]({name}.md) | {read_manifest(name)['label']} | {count} |")
    lines += ["", f"{total} tools in all, and those the hub serves itself (`annabelle tools`)."]
    return "\n".join(lines) + "\n"


def server_page(name: str) -> str:
    """One server: what it is, what it needs, and every tool."""
    server, manifest, examples = build(name), read_manifest(name), _examples(name)
    offered = _offered(server)
    hidden = [tool.name for tool in server.tools.values() if tool.audience == "hub"]
    lines = [
        f"# {manifest['label']} (`{name}`)",
        "",
        NOTE,
        "",
        server.protocol.create_initialization_options().instructions or "",
        "",
        *_facts(manifest, len(offered)),
    ]
    if hidden:
        lines.append(f"- for the hub only, called by nobody else: {', '.join(f'`{tool}`' for tool in hidden)}")
    for tool in offered:
        lines += _tool(name, tool, examples.get(tool.name))
    return "\n".join(lines) + "\n"


def _facts(manifest: Json, count: int) -> list[str]:
    scan = {"input": True, "output": True} | manifest.get("scan", {})
    scanned = [words for key, words in (("input", "what it is given"), ("output", "what it gives back")) if scan[key]]
    settings = [f"`{name}`" for name in manifest.get("env", []) if name not in ("ANNABELLE_HOME", "HOME", "LOG_LEVEL")]
    group, seconds = manifest.get("group") or "none", manifest.get("timeout", 30)
    lines = [
        f"- {count} tools in the group {group}; a call may take {seconds} seconds",
        f"- the guardian scans {' and '.join(scanned) or 'nothing'}",
    ]
    if manifest.get("sensitive"):
        lines.append("- its results hold private data")
    if takes := manifest.get("takes_secrets"):
        tools = " and ".join(f"`{name}`" for name in takes)
        lines.append(f"- {tools} take [secrets](../vault.md): a handle in a call is replaced by its value")
    lines.append(f"- gets these [settings](../settings.md): {', '.join(settings) or 'none'}")
    return lines


def _tool(server: str, tool: DeclaredTool, example: Json | None) -> list[str]:
    lines = ["", f"## `{server}_{tool.name}`", "", " ".join(tool.description.split()), "", _annotations(tool), ""]
    lines += _parameters(tool.input_schema())
    if example is not None:
        lines += ["Example:", "", *_json(example["arguments"]), "", "answers", "", *_json(example["answer"])]
    return lines


def _annotations(tool: DeclaredTool) -> str:
    """The four annotations in words, and who may call it."""
    notes = tool.annotations
    words = [
        "only reads" if notes.read_only else "destructive" if notes.destructive else "changes things, destroys nothing",
        "a repeat has no second effect" if notes.idempotent else "each call counts",
        "reaches outside" if notes.open_world else "stays on this machine",
    ]
    if tool.audience == "people":
        words.append("for people, not for agents")
    return f"*{'; '.join(words)}*"


def _parameters(schema: Json) -> list[str]:
    properties: Json = schema.get("properties", {})
    if not properties:
        return ["No parameters.", ""]
    required = schema.get("required", [])
    lines = ["| parameter | type | default | what it is |", "|---|---|---|---|"]
    for name, about in properties.items():
        default = "required" if name in required else f"`{json.dumps(about.get('default'), ensure_ascii=False)}`"
        cells = (f"`{name}`", _type(about), default, " ".join(about.get("description", "").split()))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _type(about: Json) -> str:
    """What a value may be, with its bounds."""
    for key in ("anyOf", "oneOf"):
        if key in about:
            return " or ".join(dict.fromkeys(_type(option) for option in about[key]))
    if "enum" in about:
        return ", ".join(f"`{choice}`" for choice in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    kind = about.get("type", "anything")
    if kind == "array":
        return f"list of {_type(about.get('items', {}))}{_bounds(about)}"
    if kind == "object" and about.get("properties"):
        needed = about.get("required", [])
        fields = [
            f"{name}{'' if name in needed else '?'}: {_type(inner)}" for name, inner in about["properties"].items()
        ]
        return f"object {{{', '.join(fields)}}}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    return f"{words.get(kind, kind)}{_bounds(about)}"


def _bounds(about: Json) -> str:
    signs = {
        "minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<",
        "minLength": "length ≥", "maxLength": "length ≤", "minItems": "items ≥", "maxItems": "items ≤",
    }  # fmt: skip
    found = [f"{sign} {about[key]}" for key, sign in signs.items() if key in about]
    return f" ({', '.join(found)})" if found else ""


def _json(value: object) -> list[str]:
    """On one line where it fits."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= 110 else json.dumps(value, ensure_ascii=False, indent=2)
    return ["```json", *text.splitlines(), "```"]


def _offered(server: ToolServer) -> list[DeclaredTool]:
    return [tool for tool in server.tools.values() if tool.audience != "hub"]


def read_manifest(name: str) -> Json:
    return tomllib.loads((SERVERS / folders()[name] / "manifest.toml").read_text(encoding="utf-8"))


def _examples(name: str) -> Json:
    file = EXAMPLES / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
