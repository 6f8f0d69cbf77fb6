"""Fixtures for the terminal's tests: the scripted model, and a hub that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from annabelle.core.home import Home
from cli.terminal import Terminal, environment
from cli.typed import Keyboard
from hub.hubs import HubProcess
from support.scripted_model import Reply, Rule, ScriptedServer


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def refusing(model: ScriptedServer) -> Iterator[str]:
    """A line the model's provider refuses, once: what fails must not fail the line after it."""
    model.rules(Rule(match="refuse this", times=1, reply=Reply.failing(401)))
    yield "refuse this"
    model.rules()


@pytest.fixture
def dawdling(model: ScriptedServer) -> Iterator[str]:
    """A line the model begins to answer, once, and never finishes."""
    reply = Reply(text="One two three four five six", chunks=6, hang_after=2)
    model.rules(Rule(match="take your time", times=1, reply=reply))
    yield "take your time"
    model.rules()


@pytest.fixture
def known(home: Home, model: ScriptedServer) -> dict[str, str]:
    """The environment of a command on this test's home."""
    return environment(home, model.openai_url)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[dict[str, str]]:
    """The environment of commands that find a hub running; shared by the tests of a module."""
    hub = HubProcess(Home(tmp_path_factory.mktemp("cli") / "home"))
    hub.environment = environment(hub.home, model.openai_url)
    hub.start()
    yield hub.environment
    assert hub.stop() == 0


@pytest.fixture
def keyboard(running: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    """Types commands where a hub runs already, in this process."""
    return Keyboard(running, monkeypatch)


@pytest.fixture
def terminal(known: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals on this test's home, and closes them at the end."""
    yield from _terminals(known)


@pytest.fixture
def visit(running: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals where a hub runs already, and closes them at the end."""
    yield from _terminals(running)


def _terminals(known: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*arguments: str, **more: str) -> Terminal:
        opened.append(Terminal(known | more, *arguments))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()
