"""The reader of server-sent events: whole events only, and on from where it was cut off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx2 as httpx
import pytest
from hypothesis import given, strategies as st

from annabelle.cli import hub_client
from annabelle.cli.hub_client import ServerEvent, follow_events, parse_events
from annabelle.core.errors import HubUnreachable


async def lines(text: str) -> AsyncIterator[str]:
    for line in text.split("\n"):
        yield line


async def read(text: str) -> list[ServerEvent]:
    return [event async for event in parse_events(lines(text))]


async def test_an_event_has_a_name_an_id_and_its_data():
    assert await read('id: 7\nevent: text\ndata: {"a": 1}\n\n') == [ServerEvent('{"a": 1}', "text", "7")]


async def test_comments_and_unknown_fields_are_passed_over():
    assert await read(": still here\n\nretry: 1000\n\nfoo: bar\ndata:x\n\n") == [ServerEvent("x")]


async def test_data_of_several_lines_is_joined():
    assert await read("data: a\ndata: b\n\n") == [ServerEvent("a\nb")]


@given(cut=st.integers(0, 60))
async def test_an_event_that_was_cut_off_is_never_half_told(cut: int):
    text = "id: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: three\n\n"
    events = await read(text[:cut])
    whole = [ServerEvent("one", id="1"), ServerEvent("two", id="2"), ServerEvent("three", id="3")]
    assert events == whole[: len(events)]


class Line:
    """A connection that breaks whenever its script says so."""

    def __init__(self, *scripts: str | Exception) -> None:
        self.scripts, self.asked = list(scripts), list[str | None]()

    @asynccontextmanager
    async def connect(self, after: str | None) -> AsyncGenerator[httpx.Response]:
        self.asked.append(after)
        script = self.scripts.pop(0) if self.scripts else httpx.ConnectError("gone")
        if isinstance(script, Exception):
            raise script
        yield httpx.Response(200, text=script)


async def take(line: Line, count: int, last_id: str | None = None) -> list[str]:
    seen: list[str] = []
    async with aclosing(follow_events(line.connect, last_id)) as events:
        async for event in events:
            seen.append(event.data)
            if len(seen) == count:
                break
    return seen


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "RECONNECT_SECONDS", 0.001)


async def test_a_broken_connection_goes_on_after_the_last_event_that_was_seen():
    line = Line("id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\nda", httpx.ReadError("cut"), "id: 3\ndata: c\n\n")
    assert await take(line, 3, last_id="0") == ["a", "b", "c"]
    assert line.asked == ["0", "2", "2"]


async def test_a_hub_that_stays_away_is_given_up_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_client, "PATIENCE_SECONDS", 0.01)
    with pytest.raises(HubUnreachable, match="was lost"):
        await take(Line(), 1)


async def test_a_connection_that_was_quiet_for_long_is_made_again_like_any_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_client, "PATIENCE_SECONDS", 0.0)
    assert await take(Line(": still here\n\n", "data: a\n\n"), 1) == ["a"]
    quiet = Line("data: a\n\n")
    whole = quiet.connect

    @asynccontextmanager
    async def broken_first(after: str | None) -> AsyncGenerator[httpx.Response]:
        if not quiet.asked:
            quiet.asked.append(after)
            yield httpx.Response(200, content=_cut())
        else:
            async with whole(after) as response:
                yield response

    quiet.connect = broken_first
    assert await take(quiet, 1) == ["a"]


async def _cut() -> AsyncIterator[bytes]:
    yield b": still here\n\n"
    raise httpx.ReadError("cut")
