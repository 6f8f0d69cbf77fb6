"""A thinker as a process: from warm spare to answer, and its ways to end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_hub import FakeHub
from support.scripted_model import ScriptedServer, plan_text
from thinkers import Thinker, brief


def test_a_message_with_a_tool_call_is_answered(
    start: Callable[..., Thinker], hub: FakeHub, model: ScriptedServer
) -> None:
    thinker = start()
    asked = brief(plan_text([("look_up", {"text": "moon"})], say="It said {result}."))
    state = thinker.ask(asked)
    print(state)
    for e in thinker.events(asked.message_id):
        print(e)
    assert state.state == "done"
