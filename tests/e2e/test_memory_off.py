"""Without the memory server Annabelle still talks, and says plainly what can not be done."""

from __future__ import annotations

import pytest

from cli.terminal import environment, run
from e2e.days import MakeHub, reply

OFF = "The memory server is switched off."
ON_AGAIN = "Set MEMORY_MCP_ENABLED=true, then: annabelle restart"


@pytest.mark.req("MEM-12", "TRU-09")
def test_without_the_memory_a_chat_goes_on_and_forgetting_says_that_nothing_was_forgotten(make_hub: MakeHub) -> None:
    hub = make_hub(MEMORY_MCP_ENABLED="false").start()
    assert "Zorblat" in reply(hub.say("Hello, Zorblat"))
    for body in ({"text": "Zorblat", "preview": False}, {"factId": 1}):
        refused = hub.http.post("/memory/forget", json=body)
        assert refused.status_code == 503
        error = refused.json()["error"]
        assert (error["message"], error["hint"]) == (f"{OFF} Nothing was forgotten.", ON_AGAIN)
    for path in ("/memory/tidy", "/memory/learn"):
        error = hub.http.post(path, json={}).json()["error"]
        assert (error["message"], error["hint"]) == (OFF, ON_AGAIN)
    listed = run(environment(hub.home), "memory", "list")
    assert (listed.returncode, listed.stderr) == (2, f"{OFF}\n{ON_AGAIN}\n")
