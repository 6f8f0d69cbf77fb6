"""`annabelle servers`: a yes is for what was shown."""

from __future__ import annotations

import pytest

from annabelle.cli import servers
from annabelle.core.tools import JsonObject


@pytest.mark.req("EXT-06")
@pytest.mark.parametrize("shown", ["of what was shown", None])
def test_a_yes_is_never_one_to_whatever_comes_next(
    shown: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[JsonObject] = []

    def post(_path: str, body: JsonObject, _seconds: float) -> JsonObject:
        said.append(body)
        return {"available": True, "tools": 2}

    monkeypatch.setattr(servers, "get_json", lambda _path: {"diff": "", "digest": shown})
    monkeypatch.setattr(servers, "post_json", post)
    servers.accept("mailer")
    assert said[0]["digest"] is not None, "the hub takes a yes without a digest for a yes to all"
    assert shown is None or said == [{"digest": shown}]
    assert "mailer runs, with 2 tools." in capsys.readouterr().out
