"""A thinker's model reads one question and nothing of the conversation; a useless answer is no answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from annabelle.core.contract import OrderBrief, OrderVerdict
from annabelle.thinker.order_reader import parse_verdict
from support.scripted_model import Reply, Rule, ScriptedServer
from thinker.thinkers import Thinker

pytestmark = pytest.mark.req("POL-08")

BRIEF = OrderBrief(
    user_id="owner",
    trace_id="tr_01JZZZZZZZZZZZZZZZZZZZZZZZ",
    message="bin the invoice of Alice",
    acts=("delete",),
    objects=("invoice of Alice",),
    receivers=(),
)


def read(thinker: Thinker) -> bool | None:
    reply = thinker.client.post("/read-order", content=BRIEF.model_dump_json())
    return OrderVerdict.model_validate_json(reply.content).ordered


@pytest.mark.parametrize(("said", "ordered"), [('{"ordered": true}', True), ("It is.", None)])
def test_the_reader_model_is_asked_the_question_alone(
    start: Callable[..., Thinker], model: ScriptedServer, settings: dict[str, str], said: str, ordered: bool | None
) -> None:
    settings["LLM_READER_MODEL"] = "reader"
    model.rules(Rule(reply=Reply(text=said)))
    assert read(start()) is ordered
    (asked,) = model.requests
    assert asked.body["model"] == "reader"
    assert asked.body["temperature"] == 0
    _, user = asked.body["messages"]
    question = json.loads(user["content"].removesuffix("\n\nJSON:"))
    assert question == {
        "message": "bin the invoice of Alice", "act": "delete", "object": ["invoice of Alice"], "receiver": [],
    }  # fmt: skip


def test_without_a_reader_model_nobody_is_asked(start: Callable[..., Thinker], model: ScriptedServer) -> None:
    assert read(start()) is None
    assert model.requests == []


@pytest.mark.parametrize(
    ("answer", "ordered"),
    [
        ('{"ordered": false}', False),
        ('He says {"ordered": false}, hm. {"ordered": true}', True),
        ('```json\n{"ordered": true}\n```', True),
        ('{"ordered": "true"}', None),
        ('{"ordered": true, "note": "x"}', None),
        ("[]", None),
        ("", None),
    ],
)
def test_only_a_plain_verdict_counts(answer: str, ordered: bool | None) -> None:
    assert parse_verdict(answer) is ordered
