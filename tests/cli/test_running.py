"""Commands against a hub that runs in the background."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from cli.terminal import Terminal, run, started_by_up
from support.scripted_model import ScriptedServer, plan_text


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[dict[str, str]]:
    with started_by_up(tmp_path_factory.mktemp("cli"), model.openai_url) as known:
        yield known


@pytest.mark.req("UX-04")
def test_up_is_told_that_it_already_runs(running: dict[str, str]):
    again = run(running, "up")
    assert again.returncode == 0
    assert re.fullmatch(r"Annabelle already runs at http://127\.0\.0\.1:\d+ \(process \d+\)\.\n", again.stdout)
    assert json.loads(run(running, "up", "--json").stdout)["started"] is False


@pytest.mark.req("UX-04")
def test_status_shows_the_hub_its_agents_and_its_servers(running: dict[str, str]):
    shown = run(running, "status")
    assert shown.returncode == 0, shown.stderr
    assert "filer" in shown.stdout
    assert "annabelle" in shown.stdout
    told = json.loads(run(running, "status", "--json").stdout)
    assert told["running"] is True
    assert "filer" in [server["name"] for server in told["servers"]]


@pytest.mark.req("UX-01")
def test_ask_prints_the_answer_and_nothing_else(running: dict[str, str]):
    asked = run(running, "ask", "--new", "Answer", plan_text(say="Very well."))
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "Very well.\n", "")


@pytest.mark.req("UX-01")
def test_ask_gives_a_machine_the_ids_too(running: dict[str, str]):
    told = json.loads(run(running, "ask", "--json", "-", stdin=plan_text(say="Very well.")).stdout)
    assert told["answer"] == "Very well."
    assert told["messageId"].startswith("msg_")


def test_a_conversation_goes_on_where_it_was_and_a_new_one_does_not(running: dict[str, str]):
    first, second, third = (
        json.loads(run(running, "ask", *options, "--json", "hello").stdout)["threadId"]
        for options in (["--chat", "a"], ["--chat", "a"], ["--new"])
    )
    assert first == second
    assert third != first


@pytest.mark.req("UX-01")
def test_a_turn_that_fails_is_one_sentence_on_stderr_and_an_exit_code(running: dict[str, str]):
    failed = run(running, "ask", "--new", plan_text(error={"status": 401}))
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert 1 <= len(failed.stderr.splitlines()) <= 2
    assert "Traceback" not in failed.stderr
    told = json.loads(run(running, "ask", "--new", "--json", plan_text(error={"status": 401})).stderr)
    assert told["error"]["code"] == "provider_refused"


@pytest.mark.req("UX-01", "DUR-05")
def test_ask_tells_at_once_why_it_waits(running: dict[str, str], model: ScriptedServer):
    down = running | {
        "ANNABELLE_HOME": f"{running['ANNABELLE_HOME']}-down",
        "COMPATIBLE_BASE_URL": "http://127.0.0.1:9/v1",
    }
    asking = Terminal(down | {"RETRY_BASE_SECONDS": "600"}, "ask", "hello")
    asking.expect(
        r"· The OpenAI-compatible server can not be reached .*COMPATIBLE_BASE_URL.*The next try is in \d+ seconds"
    )
    asking.close()


@pytest.mark.req("UX-01")
def test_tools_are_listed_and_called(running: dict[str, str]):
    assert "filer_list_files" in run(running, "tools").stdout
    listed = json.loads(run(running, "tools", "list", "create", "--json").stdout)
    assert "filer_create_file" in [tool["name"] for tool in listed["tools"]]
    made = run(running, "tools", "call", "filer_create_file", "path=notes/a.txt", "content=42")
    assert made.returncode == 0, made.stderr
    read = json.loads(run(running, "tools", "call", "filer_read_file", '{"path": "notes/a.txt"}', "--json").stdout)
    assert "42" in read["text"]
    shown = run(running, "tools", "call", "get_tool_catalog", "mcp_name=filer")
    assert "list" in shown.stdout
    assert "filer_" not in shown.stdout, "names are for models"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["filer_reed_file"], "filer_read_file"),
        (["filer_read_file"], "path"),
        (["filer_read_file", "path"], "key=value"),
        (["filer_read_file", "{"], "JSON"),
        (["filer_read_file", "path=none.txt"], "none.txt"),
    ],
)
def test_a_tool_call_that_can_not_work_says_why(running: dict[str, str], arguments: list[str], words: str):
    refused = run(running, "tools", "call", *arguments)
    assert refused.returncode in (1, 2)
    assert refused.stdout == ""
    assert words in refused.stderr


@pytest.mark.req("TRC-04", "TRC-01")
def test_the_trace_of_a_turn_is_drawn_over_hub_and_thinker(running: dict[str, str]):
    plan = plan_text([("filer_list_files", {"path": "."})], say="Empty.")
    message_id = json.loads(run(running, "ask", "--new", "--json", plan).stdout)["messageId"]
    home = Home(Path(running["ANNABELLE_HOME"]))
    lines = [json.loads(line) for line in home.traces_file.read_text().splitlines()]
    trace_id = next(line["trace_id"] for line in lines if line["data"].get("message_id") == message_id)
    drawn = run(running, "trace", trace_id)
    assert drawn.returncode == 0, drawn.stderr
    assert "█" in drawn.stdout
    assert "hub" in drawn.stdout
    events = json.loads(run(running, "trace", trace_id, "--json").stdout)["events"]
    assert {event["trace_id"] for event in events} == {trace_id}
    assert {"hub"} < {event["mcp"] for event in events}


@pytest.mark.req("UX-04")
def test_the_log_of_the_hub_is_shown(running: dict[str, str]):
    shown = run(running, "logs", "hub", "-n", "200")
    assert "ready" in shown.stdout
    assert len(run(running, "logs", "-n", "1").stdout.splitlines()) == 1
    assert run(running, "logs", "--json", "-n", "0").stdout.startswith('{"component": "hub"')


def test_an_unknown_log_names_those_there_are(running: dict[str, str]):
    unknown = run(running, "logs", "nobody")
    assert unknown.returncode == 2
    assert "hub" in unknown.stderr


@pytest.mark.req("UX-01")
def test_a_piped_line_that_fails_does_not_stop_the_next_and_shows_in_the_exit_code(
    running: dict[str, str], refusing: str
):
    lines = [plan_text(say="One."), refusing, plan_text(say="Three.")]
    answered = run(running, "chat", "--new", "--json", stdin="\n".join(lines))
    told = [json.loads(line) for line in answered.stdout.splitlines()]
    assert [one.get("answer") for one in told] == ["One.", None, "Three."]
    assert told[1]["error"]["code"] == "provider_refused"
    assert answered.returncode == 1


def test_serving_a_home_that_is_served_is_refused(running: dict[str, str]):
    refused = run(running, stdin="")
    assert refused.returncode == 4
    assert "already runs" in refused.stderr


@pytest.mark.req("LLM-02")
def test_models_tells_what_answers_now_and_what_would_after_a_restart(running: dict[str, str]):
    told = json.loads(run(running, "models", "--json").stdout)
    assert "scripted at the OpenAI-compatible server answers" in told["answering"]
    assert told["after_restart"] is None
    other = json.loads(run(running | {"COMPATIBLE_MODEL": "other"}, "models", "--json").stdout)
    assert "scripted at" in other["answering"]
    assert "other at" in other["after_restart"]


def test_a_changed_setting_tells_that_a_restart_is_needed(running: dict[str, str]):
    assert "annabelle restart" in run(running, "config", "set", "user_name", "Ada").stdout
