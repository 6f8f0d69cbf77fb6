"""Starting and stopping: in the background, for the time of a command, and on a bad day."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.cli import down, hub_process
from annabelle.cli.app import main
from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home
from cli.terminal import ANNABELLE, gone, hub_pid, run, start, wait_until
from cli.typed import Keyboard
from support.scripted_model import ScriptedServer, plan_text
from support.timing import seconds


@pytest.mark.req("UX-04")
def test_up_restart_status_down(known: dict[str, str]):
    assert run(known, "status").returncode == 5
    assert "runs at http://127.0.0.1:" in run(known, "up").stdout
    first = hub_pid(known)
    assert "runs at http://127.0.0.1:" in run(known, "restart").stdout
    second = hub_pid(known)
    assert second != first
    assert gone(first)
    assert run(known, "down").stdout == "Annabelle has stopped.\n"
    assert gone(second)
    assert run(known, "down").stdout == "Annabelle was not running.\n"
    stopped = run(known, "status", "--json")
    assert (stopped.returncode, stopped.stdout) == (5, '{"running": false}\n')


@pytest.mark.req("UX-04")
def test_a_command_that_meets_a_hub_on_its_way_out_waits_for_its_end_and_starts_another(
    known: dict[str, str], model: ScriptedServer, dawdling: str
):
    known |= {"ANNABELLE_SHUTDOWN_GRACE_SECONDS": "3"}
    url, asked = json.loads(run(known, "up", "--json").stdout)["url"], len(model.requests)
    first = hub_pid(known)
    slow = start(known, "ask", dawdling)
    wait_until(lambda: len(model.requests) > asked, "the model to be asked")
    os.kill(first, signal.SIGTERM)
    wait_until(lambda: httpx.get(f"{url}/health").json()["phase"] == "stopping", "the hub to stop")
    said = run(known, "ask", "hello")
    assert said.returncode == 0, said.stderr
    assert gone(first)
    slow.communicate(timeout=seconds(60))


@pytest.mark.req("UX-04")
def test_two_starts_at_once_make_one_hub(known: dict[str, str]):
    both = [start(known, "up", "--json") for _ in range(2)]
    told = [json.loads(one.communicate(timeout=seconds(120))[0]) for one in both]
    assert told[0]["pid"] == told[1]["pid"]
    assert sorted(one["started"] for one in told) == [False, True]
    run(known, "down")


@pytest.mark.req("UX-04")
def test_down_finds_a_hub_that_hangs(known: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    run(known, "up")
    pid = hub_pid(known)
    os.kill(pid, signal.SIGSTOP)
    # In this process, where nobody has to wait for the whole grace.
    monkeypatch.setattr(down, "EXTRA_SECONDS", 0.5)
    monkeypatch.setattr(hub_process, "HEALTH_SECONDS", 0.5)
    monkeypatch.setenv("ANNABELLE_SHUTDOWN_GRACE_SECONDS", "0")
    monkeypatch.setattr(sys, "argv", ["annabelle", "down"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert gone(pid)


def test_a_note_of_a_dead_hub_misleads_nobody(known: dict[str, str], home: Home):
    note = {"pid": os.getpid(), "url": "http://127.0.0.1:9", "version": "0"}
    home.hub_file.write_text(json.dumps(note))
    home.token_file.write_text("x" * 32)
    assert run(known, "status").returncode == 5
    assert run(known, "down").stdout == "Annabelle was not running.\n"


@pytest.mark.incident("I-25")
def test_ask_without_a_hub_starts_one_and_takes_it_along(known: dict[str, str], home: Home):
    asked = run(known, "ask", plan_text(say="Hello."))
    assert (asked.returncode, asked.stdout) == (0, "Hello.\n")
    assert not home.hub_file.exists()


@pytest.mark.req("UX-01")
def test_piped_lines_are_answered_one_by_one(known: dict[str, str]):
    answered = run(known, stdin=f"{plan_text(say='One.')}\n\n  {plan_text(say='Two.')}  \n{plan_text(say='Three.')}")
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout == "One.\nTwo.\nThree.\n"


@pytest.mark.req("UX-04")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_without_a_terminal_and_without_input_it_serves_until_it_is_stopped(
    known: dict[str, str], home: Home, sign: signal.Signals
):
    serving = start(known)
    assert serving.stderr is not None
    shown = ""
    while not ("serves at http://127.0.0.1:" in shown and "The hub is ready" in shown):
        line = serving.stderr.readline()
        assert line, f"it ended after {shown!r}"
        shown += line
    assert run(known, "status").returncode == 0
    pid = hub_pid(known)
    serving.send_signal(sign)
    shown += serving.communicate(timeout=seconds(60))[1]
    assert serving.returncode in (0, 130)
    assert "Traceback" not in shown
    assert gone(pid)


@pytest.mark.incident("I-25")
def test_a_hub_does_not_outlive_a_command_that_was_killed(known: dict[str, str], home: Home):
    serving = start(known)
    wait_until(home.hub_file.exists, "a hub that serves")
    pid = hub_pid(known)
    serving.kill()
    serving.communicate()
    wait_until(lambda: gone(pid), "the end of the hub")


@pytest.mark.req("PKG-02")
def test_a_taken_port_is_one_sentence_and_exit_code_2(known: dict[str, str]):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = run(known | {"ANNABELLE_PORT": str(port)}, "up")
    assert refused.returncode == 2
    assert str(port) in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.req("PKG-02")
def test_a_home_that_can_not_be_made_is_one_sentence_and_exit_code_2(known: dict[str, str], tmp_path: Path):
    (tmp_path / "file").write_text("")
    for command in ("up", "ask", "config"):
        arguments = {"ask": ["ask", "x"], "config": ["config", "set", "user_name", "x"]}.get(command, [command])
        refused = run(known | {"ANNABELLE_HOME": str(tmp_path / "file" / "home")}, *arguments)
        assert refused.returncode == 2, refused.stderr
        assert "can not be written" in refused.stderr
        assert "ANNABELLE_HOME" in refused.stderr


@pytest.mark.req("PKG-02")
def test_a_bad_setting_stops_every_command_that_needs_it_in_one_sentence(known: dict[str, str]):
    refused = run(known | {"MAX_CONCURRENT_TURNS": "0"}, "up")
    assert refused.returncode == 2
    assert "MAX_CONCURRENT_TURNS is not valid" in refused.stderr


@pytest.mark.req("PKG-02")
def test_too_little_memory_is_one_sentence(known: dict[str, str]):
    command = ["bash", "-c", f"ulimit -v 200000; exec {ANNABELLE} up"]
    refused = subprocess.run(command, env=known, capture_output=True, text=True, timeout=seconds(60))
    assert refused.returncode == 2, refused.stderr
    assert "too little memory here" in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.req("PKG-02")
@pytest.mark.parametrize("name", ["ABRT", "KILL"])
def test_a_hub_that_dies_of_too_little_memory_is_one_sentence(home: Home, name: str):
    """A library that gets no memory ends its process, and so does the kernel of a machine that has none left."""
    process = subprocess.Popen(["sh", "-c", f"kill -{name} $$"])
    with pytest.raises(OperatorMistake, match=f"by SIG{name} while it started.* too little memory"):
        hub_process.wait_until_ready(home, hub_process.HubProcess(process, home.logs / "hub.out", 0))


@pytest.mark.req("PKG-02")
def test_a_full_disk_is_one_sentence(known: dict[str, str], home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_process, "LEAST_FREE_BYTES", 10**18)  # more than any disk has
    refused = Keyboard(known, monkeypatch)("up")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err == f"The disk of {home.root} is full.\nFree some space, then start Annabelle again.\n"
