"""What is deferred is loaded by its first use, and not before."""

from __future__ import annotations

import sys

import pytest

from annabelle.servers.kit import ToolServer, deferred_module
from servers.sample_server import Sample


def test_a_deferred_module_is_imported_by_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = deferred_module("colorsys")
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules
    with pytest.raises(AttributeError):
        _ = module.no_such_name


async def test_a_server_is_closed_once() -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    server = ToolServer("sample", [Sample()], on_close=close)
    await server.close()
    await server.close()
    assert closed == ["closed"]
    await ToolServer("sample", [Sample()]).close()
