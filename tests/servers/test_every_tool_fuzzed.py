"""Every tool with hostile arguments: an answer or a clear refusal, in bounded time, and nothing outside its place."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.kit.server import MAX_RESULT_BYTES
from annabelle.servers.kit.tools import success
from servers.every_server import NAMES, build
from servers.hostile_arguments import cases
from support.timing import seconds

SECONDS = 30.0
"""The bound of one call; all of them together take less than that."""
SECRET = "Drosselmeyer-Canary-5150"
OWN_PLACES = ("workspace", "data", "logs", "run", "backups", "memory-export")
SENTENCE_LIMIT = 2000
INSIDES = re.compile(r"annabelle/(?:servers|core|store)/\w|/site-packages/|internal error")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody's home folder beside Annabelle's, with what must never be read or touched."""
    folder = tmp_path / "person"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_ed25519").write_text(SECRET)
    (folder / "secret.txt").write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("OP_PATH", "/nonexistent/op")
    monkeypatch.setenv("BROWSER_PATH", "/nonexistent/chromium")
    monkeypatch.setenv("CODEXEC_DEFAULT_TIMEOUT_MS", "1000")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
async def server(home: Home, person: Path, request: pytest.FixtureRequest) -> AsyncIterator[ToolServer]:
    built = build(request.param)
    yield built
    await built.close()


@pytest.fixture
def untouched(home: Home, person: Path, tmp_path: Path) -> Iterator[None]:
    """Nothing changes but in the workspace and in the folders of Annabelle's own."""
    before = _tree(tmp_path, home)
    yield
    assert _tree(tmp_path, home) == before


def _tree(root: Path, home: Home) -> dict[str, bytes | str]:
    own = [home.root / place for place in OWN_PLACES]
    found: dict[str, bytes | str] = {}
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = [name for name in names if here / name not in own]
        for name in (*names, *files):
            path = here / name
            found[str(path.relative_to(root))] = path.read_bytes() if path.is_file() else "folder"
    return found


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize("server", NAMES, indirect=True)
async def test_no_tool_crashes_leaks_or_strays_whatever_it_is_given(server: ToolServer, person: Path, untouched: None):
    enter_call(Call(agent_id="annabelle", user_id="owner", caller="api", trust="trusted"))
    wrong: list[str] = []
    for tool in server.tools.values():
        if tool.audience == "hub":
            continue
        for arguments in cases(tool.input_schema(), str(person / "secret.txt")):
            told = f"{tool.name}({str(arguments)[:200]})"
            try:
                async with asyncio.timeout(seconds(SECONDS)):
                    text = success(await tool.call(arguments), MAX_RESULT_BYTES).model_dump_json()
            except AnnabelleError as error:
                text = f"{error.message} {error.hint or ''}"
                if len(text) > SENTENCE_LIMIT or not error.message.strip():
                    wrong.append(f"{told}: a refusal of {len(text)} characters")
            except Exception as error:
                wrong.append(f"{told}: {type(error).__name__}: {str(error)[:200]}")
                continue
            if INSIDES.search(text):
                wrong.append(f"{told}: shows its insides: {text[:300]}")
            if SECRET in text:
                wrong.append(f"{told}: read what it must not")
    assert not wrong, "\n".join(wrong)
