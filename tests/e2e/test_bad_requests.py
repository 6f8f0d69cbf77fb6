"""Requests that are not as they should be, from clients and from the terminal."""

from __future__ import annotations

import os
import sqlite3
import subprocess

import pytest

from annabelle.core.home import Home
from cli.terminal import ANNABELLE, environment
from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds


@pytest.mark.req("API-04", "RTR-03")
@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "filer_read_file", "arguments": {"path": "\xff"}}',
        b'{"name": "\xc3\x28", "arguments": {}}',
        b'{"name": "filer_read_file", "arguments": {"path": "\\ud800"}}',
        b'{"name": "filer_read_file", "arguments": []}',
        b'{"name": 5}',
    ],
)
def test_a_call_that_is_not_text_or_not_a_call_is_refused(house: HubProcess, body: bytes) -> None:
    answer = house.http.post("/tools/call", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_arguments")
    assert house.http.get("/messages/%ff%fe").status_code == 422
    assert house.http.get("/threads", headers={"X-Trace-Id": b"\xff\xfe"}).status_code == 200  # type: ignore[dict-item]


@pytest.mark.req("DUR-04", "API-05")
def test_a_full_queue_pushes_back_with_a_time_to_come_back(make_hub: MakeHub, rules: ScriptedServer) -> None:
    rules.rules(Rule(match="wait", times=1, reply=Reply(text="done", delay=2)))
    hub = make_hub(MAX_QUEUED_PER_THREAD="2", MAX_QUEUED_MESSAGES="3").start()
    taken = [hub.http.post("/message", json={"text": "wait", "chatId": "a"}).json()]
    wait_for(lambda: rules.requests, "the first to run")
    taken += [hub.http.post("/message", json={"text": plan(str(n)), "chatId": "a"}).json() for n in range(2)]
    pushed = hub.http.post("/message", json={"text": "one too many", "chatId": "a", "externalId": "late"})
    assert (pushed.status_code, pushed.json()["error"]["code"]) == (429, "too_many_requests")
    assert int(pushed.headers["retry-after"]) >= 1
    for message in taken:
        found = hub.http.get(f"/messages/{message['messageId']}", params={"wait": seconds(60)}).json()
        assert found["state"] == "done"
    accepted = hub.say(plan("now there is room"), chatId="a", externalId="late")
    assert (accepted["duplicate"], reply(accepted)) == (False, "now there is room")


@pytest.mark.req("THR-04")
@pytest.mark.incident("I-10", "I-30")
def test_what_belongs_to_someone_else_is_not_there(make_hub: MakeHub, home: Home) -> None:
    hub = make_hub().start()
    said = hub.say(plan("for someone else"), chatId="theirs")
    assert hub.stop() == 0
    with sqlite3.connect(home.database_file) as database:
        for table in ("threads", "messages", "events"):
            database.execute(f"UPDATE {table} SET user_id = 'someone'")
    database.close()
    hub.start()
    thread, message = said["threadId"], said["messageId"]
    for path in (f"/threads/{thread}/messages", f"/threads/{thread}/events", f"/messages/{message}"):
        assert hub.http.get(path).status_code == 404, path
    assert hub.http.get(f"/messages/{message}/events").status_code == 404
    assert hub.http.post(f"/messages/{message}/cancel").status_code == 404
    assert hub.http.get("/threads").json() == {"threads": []}
    mine = hub.say(plan("mine"), chatId="theirs")
    assert mine["threadId"] != thread
    with hub.http.stream("GET", "/events", params={"after": 0}) as stream:
        for line in stream.iter_lines():
            assert "for someone else" not in line
            if line == "event: done":
                break


@pytest.mark.req("UX-04")
@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii"])
def test_bytes_that_are_not_text_at_the_terminal_are_answered_all_the_same(house: HubProcess, encoding: str) -> None:
    known = environment(house.home, PYTHONIOENCODING=encoding)
    for arguments, given in (([b"ask", b"caf\xe9?"], b""), ([b"ask", b"-"], b"caf\xe9?\n"), ([], b"caf\xe9?\nbye\n")):
        done = subprocess.run(
            [os.fsencode(ANNABELLE), *arguments],
            env=known,
            input=given,
            capture_output=True,
            timeout=seconds(120),
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        assert b"You said" in done.stdout
        assert done.stderr == b""
