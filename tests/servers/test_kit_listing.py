"""What a server lists is kept from one start to the next, and never longer than it is true."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from annabelle.core.errors import AnnabelleError, ConfigMistake
from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer, tool_list_cache
from annabelle.servers.kit.server_process import LazyToolServer
from annabelle.servers.kit.tool_list_cache import ToolListing, listing_file, read_listing, write_listing
from servers.every_server import NAMES, build, manifest, package_of
from servers.sample_server import Sample, sample
from servers.speaking import Connect
from support import timing

pytestmark = pytest.mark.req("SRV-ALL")

OTHER_SETTINGS = {
    "USER_TIMEZONE": "Pacific/Auckland", "PRIVATE_HOSTS_ALLOWED": "nas.local", "TEMP_CLEANUP_DAYS": "1",
    "CODEXEC_NETWORK": "true", "CODEXEC_ISOLATION": "container", "CODEXEC_MAX_TIMEOUT_MS": "1000",
    "BRAVE_API_KEY": "a-key-of-nobody", "SEARXNG_URL": "http://nas.local", "SEARCH_WITHOUT_KEY": "false",
    "WEATHER_URL": "http://nas.local", "CURRENCY_URL": "http://nas.local", "GEOCODING_URL": "http://nas.local",
    "EMBEDDING_PROVIDER": "none", "MEMORY_BACKUP_HOURS": "0", "DATABASE_URL": "postgresql://nobody@localhost/none",
    "OP_PATH": "/no/such/program", "OP_SERVICE_ACCOUNT_TOKEN": "a-token-of-nobody",
    "BROWSER_PATH": "/no/such/browser", "BROWSER_HEADLESS": "false", "GOOGLE_API_URL": "http://localhost:1",
}  # fmt: skip
WRONG_SETTINGS = {
    "WORKSPACE_PATH": "/etc/workspace", "TEMP_CLEANUP_DAYS": "never", "PRIVATE_HOSTS_ALLOWED": "not a host/",
    "WEATHER_URL": "ftp://weather", "CURRENCY_URL": "http://a:port", "GEOCODING_URL": "[", "BRAVE_BASE_URL": "brave",
    "SEARXNG_URL": "here", "CODEXEC_MAX_TIMEOUT_MS": "soon", "CODEXEC_ISOLATION": "trust", "BROWSER_HEADLESS": "maybe",
    "MEMORY_BACKUP_HOURS": "-1", "EMBEDDING_TEXT_WEIGHT": "all", "EMBEDDING_PROVIDER": "magic",
    "MAIL_ATTACHMENT_MAX_BYTES": "big", "OLLAMA_BASE_URL": "there", "WEB_FETCH_ROBOTS": "maybe",
}  # fmt: skip


@pytest.fixture
def kept_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Bytecode, and what lies beside it, goes to a folder of the test."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    # These tests run long after the sources were loaded; somebody may have gone on working on one.
    monkeypatch.setattr(tool_list_cache, "_LOADED_BEFORE", time.time_ns())


MADE = '''"""A server in the usual shape."""

import os
from pathlib import Path

from annabelle.servers.kit import Result, ToolServer, tool

with Path(os.environ["LOADED"]).open("a") as log:
    log.write("loaded\\n")


@tool(read_only=True, destructive=False, idempotent=True, open_world=False)
async def first() -> Result:
    """Do nothing."""
    return Result()


def build(config):
    return ToolServer("made", [first], instructions="Use it well.")
'''
MAIN = """from annabelle.servers.kit import run_listed

if __name__ == "__main__":
    run_listed("made", lambda: None)
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package that is no part of Annabelle, written an hour ago."""
    package = tmp_path / "servers" / "made"
    package.mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("__main__.py", MAIN), ("server.py", MADE)):
        (package / name).write_text(text)
        long_ago(package / name)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    for name in ("made", "made.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return package


def long_ago(file: Path, seconds: float = 3600) -> None:
    then = file.stat().st_mtime - seconds
    os.utime(file, (then, then))


def process_environment(made: Path) -> dict[str, str]:
    """In it bytecode, and what lies beside it, is written."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(made.parent), *sys.path])}


def put_together() -> ToolServer:
    return importlib.import_module("made.server").build(None)


@pytest.mark.parametrize("mode", ["auto"])
@pytest.mark.parametrize("name", NAMES)
async def test_what_is_kept_of_a_server_is_what_it_lists(
    home: Home, kept_apart: None, name: str, in_memory: Connect
) -> None:
    package, server = package_of(name), build(name)
    assert read_listing(package) is None
    write_listing(package, server)
    listing = read_listing(package)
    assert listing is not None
    async with in_memory(server) as client:
        said = (await client.list_tools()).model_dump(), client.instructions
    async with in_memory(LazyToolServer(listing, lambda: server, None)) as client:
        assert ((await client.list_tools()).model_dump(), client.instructions) == said


@pytest.mark.parametrize("name", NAMES)
def test_what_a_server_lists_does_not_depend_on_settings(
    home: Home, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = build(name).list_tools()
    for variable in set(manifest(name).get("env", [])) & OTHER_SETTINGS.keys():
        monkeypatch.setenv(variable, OTHER_SETTINGS[variable])
    assert build(name).list_tools() == usual


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_setting_is_said_at_the_start_although_nothing_is_put_together(
    home: Home, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: list[Callable[[], object]] = []
    entry = importlib.import_module(f"{package_of(name)}.__main__")
    monkeypatch.setattr(entry, "run_listed", lambda package, read, *_, **__: settings.append(read))
    entry.main()
    for variable in set(manifest(name).get("env", [])) & WRONG_SETTINGS.keys():
        with monkeypatch.context() as patch:
            patch.setenv(variable, WRONG_SETTINGS[variable])
            assert complaint(settings[0]) == complaint(lambda: build(name)), variable


def complaint(work: Callable[[], object]) -> str | None:
    try:
        work()
    except AnnabelleError as error:
        return error.message
    return None


def test_a_changed_source_is_noticed(made: Path, kept_apart: None) -> None:
    write_listing("made", put_together())
    listing = read_listing("made")
    assert listing is not None
    assert (listing.name, listing.instructions) == ("made", "Use it well.")
    long_ago(made / "server.py", 1)
    assert read_listing("made") is None, "a size that is the same does not hide a change"


def test_a_source_that_is_gone_makes_the_listing_void(made: Path, kept_apart: None) -> None:
    write_listing("made", put_together())
    (made / "server.py").unlink()
    assert read_listing("made") is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob.replace(b"Do nothing", b"Do harming"),
        lambda blob: blob.replace(b"pydantic ", b"pydantic 0."),
        lambda blob: b"",
        lambda blob: b"[]\n{}",
        lambda blob: b"\xff\x00" * 100,
    ],
)
def test_a_listing_that_was_torn_edited_or_made_by_others_is_none(
    made: Path, kept_apart: None, spoil: Callable[[bytes], bytes]
) -> None:
    file = listing_file("made")
    write_listing("made", put_together())
    blob = file.read_bytes()
    assert spoil(blob) != blob
    file.write_bytes(spoil(blob))
    assert read_listing("made") is None
    write_listing("made", put_together())
    assert file.read_bytes() == blob, "and it is written anew"


WRITING = """
from annabelle.servers.kit.tool_list_cache import read_listing, write_listing
from made.server import build
server = build(None)
for _ in range(200):
    write_listing("made", server)
    assert read_listing("made") is not None
"""


def test_two_that_write_at_once_never_leave_half_a_listing(made: Path) -> None:
    command = [sys.executable, "-c", WRITING]
    writers = [subprocess.Popen(command, env=process_environment(made)) for _ in range(2)]
    assert [writer.wait(timing.seconds(60)) for writer in writers] == [0, 0]
    assert read_listing("made") is not None
    assert [path.name for path in listing_file("made").parent.glob(".*")] == []


def test_where_nothing_can_be_written_nothing_is_kept(made: Path, kept_apart: None) -> None:
    folder = listing_file("made").parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file where the folder should be")
    write_listing("made", put_together())
    assert read_listing("made") is None


def test_a_source_that_may_have_changed_since_it_was_loaded_is_not_vouched_for(made: Path, kept_apart: None) -> None:
    server = put_together()
    long_ago(made / "server.py", -7200)
    write_listing("made", server)
    assert not listing_file("made").exists()


async def test_a_process_loads_its_tools_with_the_first_call_and_again_after_a_change(
    made: Path, tmp_path: Path
) -> None:
    loaded = tmp_path / "loaded"
    process = StdioServerParameters(command=sys.executable, args=["-m", "made"], env=process_environment(made))

    def times() -> int:
        return len(loaded.read_text().splitlines())

    async with Client(stdio_client(process)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["first"]
        assert times() == 1, "there was nothing to go by"
    async with Client(stdio_client(process)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["first"]
        assert times() == 1
        assert not (await client.call_tool("first", {})).is_error
        unknown = await client.call_tool("second", {})
        assert times() == 2
    assert unknown.structured_content is not None
    assert unknown.structured_content["error"]["code"] == "unknown_tool"
    (made / "server.py").write_text(MADE.replace("first", "changed"))
    long_ago(made / "server.py")
    async with Client(stdio_client(process)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["changed"]


def test_every_server_is_listed_ahead_where_bytecode_is_made_ahead() -> None:
    command = [sys.executable, "-m", "annabelle.servers.kit.prepare"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timing.seconds(60), check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert [name for name in NAMES if read_listing(package_of(name)) is None] == []


SAMPLE = ToolListing.from_server(sample())


async def test_what_is_missing_is_told_before_the_tools_are_put_together(in_memory: Connect) -> None:
    async def at_first() -> str | None:
        return "Run: annabelle connect it"

    async def later() -> str | None:
        return "It was refused."

    built: list[ToolServer] = []

    def put() -> ToolServer:
        built.append(ToolServer("sample", [Sample()], readiness=later))
        return built[0]

    async with in_memory(LazyToolServer(SAMPLE, put, at_first)) as client:
        answer: Any = await client.call_tool("readiness", {})
        assert answer.structured_content == {"ready": False, "missing": "Run: annabelle connect it"}
        assert built == []
        await client.call_tool("echo", {"text": "it"})
        answer = await client.call_tool("readiness", {})
    assert answer.structured_content["missing"] == "It was refused."


async def test_a_server_of_every_message_is_put_together_without_a_call(in_memory: Connect) -> None:
    built = asyncio.Event()
    troubles = [ImportError("not yet")]

    def put() -> ToolServer:
        built.set()
        if troubles:
            raise troubles.pop()
        return sample()

    async with in_memory(LazyToolServer(SAMPLE, put, None, soon_seconds=0)) as client:
        assert not built.is_set()
        await client.list_tools()
        await asyncio.wait_for(built.wait(), timing.seconds(30))
        assert not (await client.call_tool("echo", {"text": "it"})).is_error, "what failed before is tried again"


async def test_a_server_that_can_not_be_put_together_says_so_to_every_call(in_memory: Connect) -> None:
    troubles: list[Exception] = [ConfigMistake("X may not be set.", hint="Unset it."), ImportError("sk-ant-secret")]

    def put() -> ToolServer:
        if troubles:
            raise troubles.pop(0)
        return sample()

    async with in_memory(LazyToolServer(SAMPLE, put, None)) as client:
        mistake: Any = await client.call_tool("echo", {"text": "it"})
        broken: Any = await client.call_tool("echo", {"text": "it"})
        mended = await client.call_tool("echo", {"text": "it"})
    assert mistake.is_error
    assert mistake.content[0].text == "X may not be set. Unset it."
    assert broken.structured_content["error"]["code"] == "internal_error"
    assert "sk-ant" not in str(broken)
    assert not mended.is_error


async def test_secrets_of_a_call_are_kept_out_of_the_log_from_the_first_one_on(in_memory: Connect) -> None:
    learnt: list[str] = []
    server = LazyToolServer(SAMPLE, sample, None)
    server.keep_out_of_logs = learnt.extend
    async with in_memory(server) as client:
        await client.call_tool("echo", {"text": "it"}, meta={"annabelle": {"secrets": ["hunter2-hunter2"]}})
    assert learnt == ["hunter2-hunter2"]
