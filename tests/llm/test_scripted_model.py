"""The scripted model server the crash tests stand on: its answers follow from the conversation alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from support.scripted_model import Call, Reply, Rule, ScriptedServer, plan_text
from support.scripted_model.conversation import from_openai
from support.scripted_model.script import follow_plan
from support.timing import seconds

TESTS = Path(__file__).parents[1]
TOOLS = [{"type": "function", "function": {"name": "a_tool", "parameters": {}}}]


@contextmanager
def own_process(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "support.scripted_model", "--port", "0", *arguments]
    process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip().removeprefix('LISTENING_PORT=')}"
    finally:
        process.kill()
        process.wait(timeout=seconds(10))
        process.stdout.close()


def ask(url: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"model": "m", "messages": messages, "tools": TOOLS}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=seconds(20)).json()["choices"][0]["message"]


def result(message: dict[str, Any], text: str) -> list[dict[str, Any]]:
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in message["tool_calls"]]
    return [message, *answers]


@pytest.mark.req("LLM-01")
def test_a_plan_goes_on_in_another_process_after_a_kill(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": plan_text([("a_tool", {"n": 1}), ("a_tool", {"n": 2})], say="Got {result}.")}
    ]
    for expected in ('{"n": 1}', '{"n": 2}'):
        with own_process("--record", str(record)) as url:
            message = ask(url, messages)
            assert message["tool_calls"][0]["function"]["arguments"] == expected
            messages += result(message, f"result of {expected}")
    with own_process("--record", str(record)) as url:
        assert ask(url, messages)["content"] == 'Got result of {"n": 2}.'
        assert httpx.get(f"{url}/__requests").json()["count"] == 1
        httpx.put(f"{url}/__script", json=[{"match": "user", "reply": {"text": "new"}}])
        assert ask(url, [{"role": "user", "content": "a user text"}])["content"] == "new"
    assert len(record.read_text().splitlines()) == 4


@pytest.mark.req("LLM-01")
def test_a_plan_is_over_once_its_text_was_said() -> None:
    old = [{"role": "user", "content": plan_text([("a_tool", {})])}, {"role": "assistant", "content": "Done."}]
    talk = from_openai({"messages": [*old, {"role": "user", "content": "hi"}], "tools": TOOLS})
    assert follow_plan(talk).text == "You said: hi"


@pytest.mark.req("LLM-01")
def test_without_tools_a_plan_is_answered_by_its_text() -> None:
    talk = from_openai({"messages": [{"role": "user", "content": f"Sum up: {plan_text([('a_tool', {})], say='S')}"}]})
    assert follow_plan(talk).text == "S"


@pytest.mark.req("LLM-01")
def test_several_calls_of_one_step_come_together() -> None:
    plan = '{"calls": [[{"name": "a_tool"}, {"name": "b_tool"}], {"name": "c_tool"}], "say": "ok"}'
    with ScriptedServer() as server:
        messages: list[dict[str, Any]] = [{"role": "user", "content": plan}]
        names: list[list[str]] = []
        while "tool_calls" in (message := ask(server.url, messages)):
            names.append([call["function"]["name"] for call in message["tool_calls"]])
            messages += result(message, "r")
        assert names == [["a_tool", "b_tool"], ["c_tool"]]


@pytest.mark.req("LLM-01")
def test_a_rule_is_used_up_and_a_wrong_key_is_refused() -> None:
    rule = Rule(times=1, results=0, reply=Reply(tool_calls=[Call(name="a_tool")]))
    with ScriptedServer([rule], key="right") as server:
        url, body = f"{server.url}/v1/messages", {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        kinds = [
            httpx.post(url, json=body, headers={"x-api-key": key}).json().get("stop_reason")
            for key in ("wrong", "right", "right")
        ]
        assert kinds == [None, "tool_use", "end_turn"]
        assert len(server.requests) == 3
