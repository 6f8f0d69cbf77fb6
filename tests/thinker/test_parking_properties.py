"""Whatever waits and whatever a person answers: each request is a chain that providers take, and a yes is one call."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.contract import AnsweredApproval, ThinkingSettings, TurnResult
from annabelle.thinker.compression.context_compressor import ContextCompressor
from annabelle.thinker.compression.conversation_draft import split_into_blocks
from annabelle.thinker.prompt.message_repair import repair_messages
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.plain_parts import WholeHistory
from thinker.questions import Person, resumed
from thinker.test_context_repair import assert_valid

NAMES = st.sampled_from(["look", "peek", "note", "send", "fetch"])
STEPS = st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=3)
VERDICTS = st.lists(st.sampled_from(["yes", "no", "changed", "silent"]), min_size=1, max_size=6)


def planned(steps: list[list[str]]) -> ListedModel:
    """Each call with arguments of its own, so that a yes to one is none to another."""
    numbers = iter(range(100))
    return ListedModel(*[[(name, {"n": next(numbers)}) for name in names] for names in steps], "That is all.")


def said(person: Person, result: TurnResult, verdicts: list[str]) -> tuple[list[AnsweredApproval], Counter[str]]:
    """The answers to every open question, and the calls a yes was given to."""
    answers: list[AnsweredApproval] = []
    yes: Counter[str] = Counter()
    assert result.parked is not None
    for call in result.parked.pending:
        if call.approval_id is None:
            continue
        verdict = verdicts[int(call.approval_id.removeprefix("apr_")) % len(verdicts)]
        changed = {"n": call.arguments["n"], "changed": True} if verdict == "changed" else None
        if verdict in ("yes", "changed"):
            answers.append(person.yes(call.approval_id, changed))
            yes[f"{call.name} {changed or call.arguments}"] += 1
        elif verdict == "no":
            answers.append(person.no(call.approval_id))
        else:
            answers.append(AnsweredApproval(approval_id=call.approval_id, verdict="expired"))
    return answers, yes


async def played(folder: Path, steps: list[list[str]], verdicts: list[str], *, chatting: bool, long: bool) -> None:
    person = Person()
    plain: dict[str, Any] = dict.fromkeys(("look", "peek", "note"), _much if long else repr)
    asking: dict[str, Any] = {name: person.asks(name) for name in ("send", "fetch")}
    tools = DictTools(read_only=("look", "peek", "fetch"), **plain, **asking)
    bench = Bench(folder, planned(steps), tools, consecutive_mistakes=50, same_tool_in_a_row=50, same_tool_with_news=50)
    if long:
        bench.parts = replace(bench.parts, compressor=ContextCompressor(ThinkingSettings(threshold_tokens=500)))
    result = await bench.run("Do all of it", message_id="msg_root")
    allowed: Counter[str] = Counter()
    while result.parked is not None:
        if chatting:
            await aside(bench)
        answers, yes = said(person, result, verdicts)
        allowed += yes
        result = await resumed(bench, "msg_root", result, *answers)
    assert (result.success, result.text) == (True, "That is all.")
    assert Counter(f"{name} {arguments}" for name, arguments in person.done) == allowed
    for request in bench.model.requests:
        assert_valid(request.messages[1:])
    turns = await bench.sessions.turns("thr_one")
    assert len({turn.message_id for turn in turns}) == len(turns)
    bench.parts = replace(bench.parts, compressor=WholeHistory())
    await aside(bench)
    history = bench.sent()[1:]
    assert repair_messages(history) == history
    assert sum(len(block.messages) for block in split_into_blocks(history, history[-1])) == len(history)
    for call in tools.calls:
        assert call.call_id is not None
    assert len({call.call_id for call in tools.calls}) == len(tools.calls)


def _much(arguments: dict[str, Any]) -> str:
    """So long a result that the conversation has to be shortened."""
    return f"{arguments} " + " ".join(f"line {number} of the result" for number in range(200))


async def aside(bench: Bench) -> None:
    """Another message of the thread, answered while the turn waits (POL-07)."""
    model = bench.model
    bench.model._replies.insert(0, "Just so.")  # pyright: ignore[reportPrivateUsage]
    before = len(model.requests)
    assert (await bench.run("By the way?")).text == "Just so."
    assert_valid(model.requests[before].messages[1:])


@pytest.mark.req("POL-03", "POL-07", "CTX-03", "CMP-02")
@settings(max_examples=30, deadline=None)
@given(steps=STEPS, verdicts=VERDICTS, chatting=st.booleans(), long=st.booleans())
def test_every_request_is_valid_and_exactly_what_had_a_yes_is_done(
    steps: list[list[str]], verdicts: list[str], chatting: bool, long: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(played(Path(folder), steps, verdicts, chatting=chatting, long=long))
