"""A day on which the model of choice is down: another answers, the person is told, and the trace shows it (I-29)."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub
from support.scripted_model import Reply, Rule, ScriptedServer

FAILING = "http://127.0.0.1:9/v1"  # the discard port: nobody listens


@pytest.mark.req("LLM-06")
@pytest.mark.incident("I-29")
def test_the_person_is_told_once_per_turn_who_answers_in_whose_place(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    hub = make_hub(
        COMPATIBLE_BASE_URL=FAILING, LMSTUDIO_BASE_URL=rules.openai_url, LLM_FALLBACKS="lmstudio:spare",
        LLM_BREAKER_ERRORS="3",
    ).start()  # fmt: skip
    plan = json.dumps({"calls": [{"name": "get_status", "arguments": {}}], "say": "all well"})
    for _ in range(3):  # the third turn finds the breaker open
        answer = hub.say(plan)
        assert answer["state"] == "done"
        told = hub.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
        (notice,) = [event for event in told if event["type"] == "notice"]
        assert "can not be reached" in notice["data"]["text"]
        assert notice["data"]["text"].endswith("So spare (lmstudio) answers.")
        whole = [event["data"]["text"] for event in told if event["type"] == "text" and event["data"].get("final")]
        assert whole == ["all well"]
    traces = home.traces_file.read_text()
    assert traces.count('"model.fallback"') == 6
    assert '"state": "open"' in traces
    costs = {row["key"]: row["calls"] for row in hub.http.get("/costs", params={"by": "model"}).json()["totals"]}
    assert costs == {"compatible/scripted": 3, "lmstudio/spare": 6}


@pytest.mark.req("LLM-06")
def test_a_bad_entry_is_told_in_one_sentence_that_names_it(make_hub: MakeHub) -> None:
    hub = make_hub(LLM_FALLBACKS="lmstudio:spare, gorq:llama").start()
    answer = hub.say("hello")
    assert answer["state"] == "failed"
    assert "LLM_FALLBACKS names gorq:llama" in json.dumps(answer["reply"])


@pytest.mark.req("LLM-06", "LLM-09")
def test_an_answer_that_breaks_off_is_given_whole_by_the_other_one(make_hub: MakeHub, rules: ScriptedServer) -> None:
    rules.rules(Rule(model="scripted", reply=Reply(text="half an answer", drop_after=2)))
    hub = make_hub(LMSTUDIO_BASE_URL=rules.openai_url, LLM_FALLBACKS="lmstudio:spare").start()
    answer = hub.say("hello")
    told = hub.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
    whole = [event["data"]["text"] for event in told if event["type"] == "text" and event["data"].get("final")]
    assert len(whole) == 1
    assert "half an answer" not in whole[0]
    assert [event["data"]["code"] for event in told if event["type"] == "notice"][-1:] == ["model_fallback"]
