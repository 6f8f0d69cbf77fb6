"""A question with real processes around it, killed at every moment: one answer, one effect, nothing lost."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.hub.failpoints import APPROVAL_FAILPOINTS
from e2e.days import MakeHub, plan, reply, write_external
from hub.hubs import HubProcess, wait_for
from support.toolbox import TESTS


class Day:
    """A hub with a server whose effects can be counted from outside, that may be killed at named moments."""

    def __init__(self, make_hub: MakeHub, folder: Path) -> None:
        self.failpoints, self._witness = folder / "failpoints", folder / "witness.jsonl"
        self.failpoints.mkdir()
        self.hub: HubProcess = make_hub(ANNABELLE_FAILPOINTS=str(self.failpoints))
        server = {
            "command": sys.executable,
            "args": [str(TESTS / "support" / "witness_server.py")],
            "env": {"WITNESS_FILE": str(self._witness)},
        }
        write_external(self.hub, {"witness": server})
        self.hub.start()

    def insist(self, method: str, path: str, body: dict[str, object] | None = None) -> httpx.Response:
        """A request by somebody who wants it through: when the hub dies of it, it is sent to the next one."""
        for _ in APPROVAL_FAILPOINTS:
            with contextlib.suppress(httpx.TransportError):
                return self.hub.http.request(method, path, json=body)
            assert self.hub.wait() == -signal.SIGKILL
            self.hub.start()
        return self.hub.http.request(method, path, json=body)

    def ask(self, key: str) -> dict[str, object]:
        """Have something done that needs a yes; the question, once it can be seen and the turn waits."""
        text = plan(f"done {key}", ("witness_mark", {"key": key}))
        sent = self.insist("POST", "/message", {"text": text, "chatId": key, "externalId": key}).json()

        def asked() -> dict[str, object] | None:
            if self.insist("GET", f"/messages/{sent['messageId']}?wait=5").json()["state"] != "done":
                return None
            found = self.insist("GET", "/approvals", None).json()["approvals"]
            return next((one for one in found if one["messageId"] == sent["messageId"]), None)

        return wait_for(asked, f"a question about {key}", 60)

    def effects(self, key: str) -> int:
        lines = self._witness.read_text().splitlines() if self._witness.exists() else []
        return sum(json.loads(line)["key"] == key for line in lines)

    def end(self, approval_id: object) -> dict[str, object]:
        """How the turn ended that carries the answer on."""

        def going_on() -> dict[str, object] | None:
            question = self.insist("GET", f"/approvals/{approval_id}").json()
            if question["continuedBy"] is None:
                return None
            outcome = self.insist("GET", f"/messages/{question['continuedBy']}?wait=5").json()
            return outcome if outcome["state"] in ("done", "failed") else None

        return wait_for(going_on, "the end of the turn", 60)


@pytest.mark.req("POL-03", "POL-07", "DUR-02", "DUR-03")
@pytest.mark.incident("I-28")
@pytest.mark.timeout(300)
def test_whenever_the_hub_is_killed_a_yes_has_one_effect_and_one_answer(make_hub: MakeHub, tmp_path: Path) -> None:
    day = Day(make_hub, tmp_path)
    for failpoint in APPROVAL_FAILPOINTS:
        (day.failpoints / failpoint).touch()
    question = day.ask("once")
    assert (question["tool"], question["arguments"], question["state"]) == ("witness_mark", {"key": "once"}, "pending")
    assert day.effects("once") == 0
    answered = day.insist("POST", f"/approvals/{question['id']}", {"verdict": "approve"})
    assert answered.status_code in (200, 409), "an answer that was written down before the kill is known"
    outcome = day.end(question["id"])
    assert reply(outcome) == "done once"
    assert [name for name in APPROVAL_FAILPOINTS if not any(day.failpoints.glob(f"{name}.hit-*"))] == []
    twice = day.insist("POST", f"/approvals/{question['id']}", {"verdict": "approve"})
    assert (twice.status_code, "carried out" in twice.json()["error"]["message"]) == (409, True)
    said = day.insist("GET", f"/threads/{outcome['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in said if line["type"] == "text"] == ["user", "agent", "decision", "agent"]
    assert day.effects("once") == 1
