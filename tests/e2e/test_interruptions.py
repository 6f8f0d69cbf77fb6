"""Streams and turns cut off by kills, stops, restarts and readers that do not read."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest

from annabelle.core.home import Home
from cli.terminal import ANNABELLE, environment
from e2e.days import MakeHub, bad_server, one_sentence, plan, ready, reply, write_external
from hub.hubs import sse, wait_for
from support.network import free_port
from support.scripted_model import Reply, Rule, ScriptedServer
from support.standing_yes import let_pass
from support.timing import seconds

WORDS = "one two three four five six seven eight"


@pytest.mark.req("THR-04", "DUR-01")
@pytest.mark.incident("I-20", "I-25")
def test_a_reader_of_a_hub_that_is_killed_goes_on_after_its_restart(make_hub: MakeHub, rules: ScriptedServer) -> None:
    hub = make_hub(ANNABELLE_PORT=str(free_port())).start()
    hub.say(plan("warm"))
    rules.rules(Rule(match="slowly", reply=Reply(text=WORDS, chunks=8, chunk_delay=0.2)))
    begun = hub.http.post("/message", json={"text": "slowly", "externalId": "once"}).json()
    seen: list[dict[str, object]] = []
    family = hub.children()

    def read() -> Iterator[dict[str, object]]:
        last = seen[-1]["id"] if seen else begun["lastEventId"]
        path, headers = f"/threads/{begun['threadId']}/events", {"Last-Event-ID": str(last)}
        with hub.http.stream("GET", path, headers=headers) as stream:
            yield from sse(stream.iter_lines())

    def read_and_kill() -> None:
        for event in read():
            seen.append(event)
            if event["event"] == "text":
                hub.signal(signal.SIGKILL)

    with pytest.raises(httpx.TransportError):
        read_and_kill()
    assert hub.wait() == -signal.SIGKILL
    assert psutil.wait_procs(family, timeout=seconds(10))[1] == []
    hub.start()
    again = hub.http.post("/message", json={"text": "slowly", "externalId": "once"}).json()
    assert (again["messageId"], again["duplicate"]) == (begun["messageId"], True)
    for event in read():
        seen.append(event)
        if event["event"] == "done":
            break
    stored = hub.http.get(f"/messages/{begun['messageId']}/events").json()["events"]
    assert [event["id"] for event in seen] == [event["seq"] for event in stored]
    assert [event["data"]["data"]["text"] for event in seen if event["event"] == "message"] == [WORDS]  # type: ignore[index]


@pytest.mark.req("THR-04", "HUB-05")
def test_a_reader_that_does_not_read_holds_up_nobody_and_not_the_stop(make_hub: MakeHub, rules: ScriptedServer) -> None:
    hub = make_hub().start()
    long = "many words " * 30_000
    rules.rules(Rule(match="much", reply=Reply(text=long, chunks=300)))
    port = int(hub.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Annabelle-Token: {hub.token}\r\n\r\n"
        deaf.sendall(request.encode())
        assert deaf.recv(12) == b"HTTP/1.1 200"
        for number in range(3):
            answer = hub.say("much", chatId=f"much {number}")
            assert reply(answer) == long.strip()
        assert hub.http.get("/health").status_code == 200
        assert hub.stop() == 0


@pytest.mark.req("HUB-05", "DUR-03")
def test_a_stop_in_the_middle_of_a_call_names_the_call_and_does_not_repeat_it(
    make_hub: MakeHub, home: Home, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    let_pass(home.root, None, witness_hang=("word",))
    hub = make_hub(ANNABELLE_SHUTDOWN_GRACE_SECONDS="0").start()
    write_external(hub, {"witness": bad_server("witness", WITNESS_FILE=str(witness))})
    ready(hub, "witness")
    begun = hub.http.post("/message", json={"text": plan("{result}", ("witness_hang", {"word": "slow"}))}).json()
    wait_for(lambda: witness.exists() and "slow began" in witness.read_text(), "the call to be under way")
    assert hub.stop() == 0
    hub.start()
    found = hub.http.get(f"/messages/{begun['messageId']}", params={"wait": seconds(60)}).json()
    assert found["state"] == "done"
    assert "OUTCOME UNKNOWN" in reply(found)
    assert witness.read_text().count("slow began") == 1
    told = hub.http.get(f"/messages/{begun['messageId']}/events").json()["events"]
    notices = [event["data"] for event in told if event["type"] == "notice"]
    assert [notice["call_ids"] for notice in notices if "call_ids" in notice] == [[f"{begun['messageId']}:1:0"]]


@pytest.mark.req("HUB-05")
def test_of_two_homes_that_want_one_port_at_once_one_is_told(make_hub: MakeHub, home: Home, tmp_path: Path) -> None:
    port = str(free_port())
    hubs = [make_hub(ANNABELLE_PORT=port), make_hub(Home(tmp_path / "other").prepare(), ANNABELLE_PORT=port)]
    starting = [hub.spawn() for hub in hubs]
    try:
        wait_for(lambda: any(process.poll() is not None for process in starting), "one of them to give way")
        told = next(process for process in starting if process.poll() is not None)
        other = next(hub for hub, process in zip(hubs, starting, strict=True) if process is not told)
        _, words = told.communicate(timeout=seconds(10))
        assert (told.returncode, one_sentence(words)) == (2, True), words
        assert f"Port {port}" in words
        wait_for(other.home.hub_file.exists, "the other to be ready")
        assert json.loads(other.home.hub_file.read_text())["url"].endswith(port)
        assert httpx.get(f"http://127.0.0.1:{port}/health").json()["phase"] == "ready"
    finally:
        for process in starting:
            process.terminate()
            process.communicate(timeout=seconds(30))


@pytest.mark.req("UX-04", "DUR-01")
def test_a_question_at_the_terminal_outlives_a_hub_that_is_killed_and_started_again(
    make_hub: MakeHub, rules: ScriptedServer
) -> None:
    port = str(free_port())
    hub = make_hub(ANNABELLE_PORT=port).start()
    rules.rules(Rule(match="slowly", reply=Reply(text=WORDS, chunks=8, chunk_delay=0.2)))
    asking = subprocess.Popen(
        [ANNABELLE, "ask", "slowly"],
        env=environment(hub.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: rules.requests, "the model to be asked")
    hub.kill()
    hub.start()
    answer, words = asking.communicate(timeout=seconds(60))
    assert (asking.returncode, answer.strip(), words) == (0, WORDS, "")
