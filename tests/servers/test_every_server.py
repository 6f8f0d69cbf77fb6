"""What holds of every built-in server, whichever it is and whoever writes the next one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from annabelle.core.home import Home
from annabelle.core.secrets.redactor import is_secret_name
from annabelle.core.settings import Settings
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.toolbox.config import builtin_servers
from annabelle.toolbox.manifest import find_builtins
from servers.every_server import NAMES, build, manifest, package_of
from support.cheap_calls import CHEAP
from support.forked_stdio import forked_stdio
from support.timing import seconds
from support.warm_process import can_fork

pytestmark = pytest.mark.req("SRV-ALL")

BASE_VARIABLES = {"ANNABELLE_HOME", "HOME", "PATH", "LANG", "TZ", "LOG_LEVEL"}
HEAVY = {
    "PIL", "dateparser", "dateutil", "ddgs", "defusedxml", "docx", "fastapi", "feedparser", "httpcore2", "httpx",
    "httpx2", "icalendar", "imapclient", "lxml", "openpyxl", "pint", "playwright", "primp", "pydantic_ai",
    "pydantic_monty", "pypdf", "recurring_ical_events", "segno", "starlette", "telethon", "tokenizers", "trafilatura",
    "uvicorn", "zxingcpp",
}  # fmt: skip
SECRETS_OF = {
    "BRAVE_API_KEY": {"searcher"},
    "GOOGLE_CLIENT_SECRET": {"gmail"},
    "OP_SERVICE_ACCOUNT_TOKEN": {"onepassword"},
    "TELEGRAM_API_HASH": {"telegram"},
    "DATABASE_URL": {"memory"},
}
OWN_VARIABLES = {
    "guardian": {"ANNABELLE_LEDGER_URL", "ANNABELLE_LEDGER_TOKEN"},
    "memory": {"ANNABELLE_LEDGER_URL", "ANNABELLE_LEDGER_TOKEN"},
    "web": {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"},
}
MODEL_KEYS = {
    "guardian": {"GROQ_API_KEY", "COMPATIBLE_API_KEY", "ANNABELLE_LEDGER_TOKEN"},
    "memory": {"EMBEDDING_API_KEY", "OPENAI_API_KEY", "COMPATIBLE_API_KEY", "ANNABELLE_LEDGER_TOKEN"},
}
"""What a server needs to reach a model, for vectors or for verdicts, and to book what that costs."""
STARTED = "everyday"
UNSEEN = "guardian"
"""The one server that only the hub calls, so nothing in it is offered to anyone and no word calls for it."""
DOING = {"write_inside", "send_outside", "destroy", "execute"}
ASKING = {"annabelle": {"agent_id": "annabelle", "user_id": "owner", "caller": "hub", "trust": "trusted"}}

_REPORT = f"""
import json, os, sys
import annabelle.servers.kit.server
heavy = {sorted(HEAVY)!r}
for name, package in [argument.split("=") for argument in sys.argv[1:]]:
    read, write = os.pipe()
    if os.fork() == 0:
        import importlib
        importlib.import_module(f"{{package}}.__main__")
        early = ["its tools"] if f"{{package}}.server" in sys.modules else []
        server = importlib.import_module(f"{{package}}.server").build()
        [tool.input_schema() for tool in server.tools.values()]
        loaded = sorted({{module.partition(".")[0] for module in sys.modules}} & set(heavy))
        os.write(write, json.dumps(early + loaded).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        print(json.dumps([name, json.loads(answer.read() or '["it did not start"]')]))
    os.wait()
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each server has loaded too early: its tools before they are called, heavy modules before they are used.

    Each is forked from one process, as in the fork server.
    """
    home = tmp_path_factory.mktemp("lean")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "ANNABELLE_HOME": str(home / "home")}
    done = subprocess.run(
        [sys.executable, "-c", _REPORT, *(f"{name}={package_of(name)}" for name in NAMES)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds(100),
        check=True,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_a_server_starts_without_any_heavy_library(loaded: dict[str, list[str]], name: str):
    assert loaded[name] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_server_is_built_without_credentials_in_an_empty_home(home: Home, name: str):
    server = build(name)
    assert server.name == name == manifest(name)["name"]
    assert [tool for tool in server.tools.values() if tool.audience != "hub" or name == UNSEEN]


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_says_what_it_does_takes_and_gives(home: Home, name: str):
    wrong: list[str] = []
    for tool in build(name).tools.values():
        if len(tool.description) < 10 or not tool.description.rstrip().endswith((".", "…", ":", ")")):
            wrong.append(f"{tool.name}: its description is no sentence")
        given, result = tool.input_schema(), tool.output_schema()
        for schema in (given, result):
            jsonschema.Draft202012Validator.check_schema(schema)
        properties = given.get("properties", {})
        assert isinstance(properties, dict)
        wrong += [
            f"{tool.name}.{key} has no description" for key, about in properties.items() if not about.get("description")
        ]
        if given.get("additionalProperties") is not False:
            wrong.append(f"{tool.name} takes arguments nobody knows")
        if "$ref" in json.dumps(given):
            wrong.append(f"{tool.name}: some providers reject $ref")
        if result.get("type") != "object":
            wrong.append(f"{tool.name} gives no object")
        if tool.annotations.read_only and tool.annotations.destructive:
            wrong.append(f"{tool.name} only reads and destroys")
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_deletes_or_sends_is_declared_destructive(home: Home, name: str):
    words = {"delete", "remove", "destroy", "send", "forget", "empty"}
    tools = [tool for tool in build(name).tools.values() if tool.audience != "hub"]
    mild = {tool.name for tool in tools if words & set(tool.name.split("_")) and not tool.annotations.destructive}
    # It speaks to an interpreter of its own, and what that may do is bounded by the sandbox.
    assert mild <= {"send_to_session"}


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_does_something_with_any_of_its_arguments_does_not_call_itself_read_only(home: Home, name: str):
    reviewed = reviewed_tools()
    wrong: list[str] = []
    for tool in build(name).tools.values():
        traits = reviewed.get(f"{name}_{tool.name}")
        if traits is not None and tool.annotations.read_only:
            worst = {*traits.classes, *(found for classes in traits.given.values() for found in classes)}
            wrong += [f"{tool.name}: {found}" for found in sorted(worst & DOING)]
    assert wrong == []


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("tool", ["snapshot", "read", "console_messages", "network_requests"])
def test_looking_at_a_page_is_reading_and_saving_it_is_writing_in_the_workspace(tool: str):
    traits = reviewed_tools()[f"web_browser_{tool}"]
    assert traits.classes_of({}) == traits.classes_of({"filename": None}) == ("read_untrusted",)
    assert traits.classes_of({"filename": "page.txt"}) == ("read_untrusted", "write_inside")


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_names_only_variables_that_exist_and_no_secret_of_others(name: str):
    wanted = set(manifest(name).get("env", []))
    known = BASE_VARIABLES | {field.upper() for field in Settings.model_fields} | OWN_VARIABLES.get(name, set())
    assert wanted - known == set()
    secrets = {variable for variable in wanted if is_secret_name(variable) or variable in SECRETS_OF}
    own = {variable for variable, owners in SECRETS_OF.items() if name in owners}
    assert secrets <= own | MODEL_KEYS.get(name, set())


def test_every_server_is_found_and_has_a_group_and_words_that_call_for_it():
    found = {server.profile.name: server.profile for server in find_builtins([builtin_servers()], {}, 30)}
    assert set(found) == set(NAMES)
    offered = [profile for name, profile in found.items() if name != UNSEEN]
    assert [profile.name for profile in offered if not profile.group or len(profile.keywords) < 3] == []


def test_there_are_at_least_148_tools_and_no_two_of_one_name(home: Home):
    names = [
        f"{name}_{tool.name}" for name in NAMES for tool in build(name).tools.values() if tool.audience == "everyone"
    ]
    assert len(names) == len(set(names))
    assert len(names) >= 148, f"{len(names)} tools"


def test_only_the_browser_takes_secrets():
    assert [name for name in NAMES if manifest(name).get("takes_secrets")] == ["web"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_server_lists_and_answers_over_stdio_in_both_protocols(home: Home, tmp_path: Path, name: str):
    """One is started as any MCP client would, the others are forked: `loaded` has imported each of them afresh."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANNABELLE_HOME": str(home.root)}
    parameters = StdioServerParameters(command=sys.executable, args=["-m", package_of(name)], env=environment)
    expected = {tool.name for tool in build(name).tools.values()}
    cheap = CHEAP[name]
    for mode in ("auto", "legacy"):
        started = name == STARTED or not can_fork(environment)
        server = stdio_client(parameters) if started else forked_stdio(f"{package_of(name)}.__main__", environment)
        async with Client(server, mode=mode) as client:  # type: ignore[arg-type]
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == expected
            assert [tool.name for tool in listed if tool.annotations is None or tool.output_schema is None] == []
            answer = await client.call_tool(cheap.tool, cheap.arguments, meta=ASKING)
            error = (answer.structured_content or {}).get("error")
            assert (error["code"] if error else None) == cheap.code, answer
            unknown = await client.call_tool("no_such_tool", {})
            assert unknown.structured_content["error"]["code"] == "unknown_tool"
