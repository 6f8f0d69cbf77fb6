"""Each layer in its place, within its budget, in a tag that no data can forge; and the same beginning each turn."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic_ai.messages import ModelMessage, SystemPromptPart, UserPromptPart

from annabelle.core.contract import AgentProfile, BriefSection
from annabelle.core.home import Home
from annabelle.core.tools import ToolResult
from annabelle.core.trace import read_trace
from annabelle.skills.playbook import Playbook
from annabelle.thinker.prompt.clock import parse_time_zone
from annabelle.thinker.prompt.escape import SECTIONS, escape_section_tags
from annabelle.thinker.prompt.memory_recall import RecalledContext, UserProfile, parse_memories
from annabelle.thinker.prompt.persona import PersonaResolver
from annabelle.thinker.prompt.prompt import PREAMBLE, LayeredPromptBuilder, TurnContext, TurnPrompt
from annabelle.thinker.prompt.skill_offer import OfferedSkills
from annabelle.thinker.prompt.token_budget import (
    EARLIER_TOKENS,
    MEMORIES_TOKENS,
    PERSONA_TOKENS,
    PLAYBOOKS_TOKENS,
    PROFILE_TOKENS,
    SUMMARY_TOKENS,
    count_tokens,
)
from annabelle.thinker.prompt.tool_hints import PatternCall, ToolPattern, build_hint_layer
from annabelle.thinker.session.session_store import SessionView
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub
from thinker.test_history import record
from thinker.thinkers import Thinker, brief

NOON = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)
FACT = {"id": 12, "fact": "The user lives in Lisbon.", "source": "chat", "trust": "trusted"}
RECALLED = RecalledContext(
    UserProfile.parse({"profile": {"user": {"city": "Lisbon"}}}), parse_memories({"facts": [FACT]})
)
TEA = Playbook("tea", "- Warm the pot first.\n- Ask for sugar.")


async def built(folder: Path, persona: str = "You are Nell.", **fields: Any) -> TurnPrompt:
    context = LayeredPromptBuilder(
        PersonaResolver(folder, AgentProfile(agent_id="tess", system_prompt=persona), ""), parse_time_zone("UTC")
    )
    session = SessionView(fields.pop("turns", [record(1)]), fields.pop("compaction", ""), fields.pop("summaries", ()))
    return await context.build(TurnContext(fields.pop("text", "what now?"), NOON, session, 20, "chat-1", **fields))


def words(messages: list[ModelMessage]) -> list[str]:
    return [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, SystemPromptPart | UserPromptPart)
    ]


def opened(text: str) -> list[str]:
    return re.findall(r"<([a-z-]+)", text)


@pytest.mark.req("CTX-01", "CTX-05", "CTX-09")
async def test_every_layer_stands_in_its_place(tmp_path: Path) -> None:
    prompt = await built(
        tmp_path,
        compaction="They spoke of tea.",
        summaries=("First talk.", "Second talk."),
        playbooks=(TEA,),
        recalled=RECALLED,
    )
    sent = words(prompt.messages(prompt.conversation([]), workspace="goal: tea", thinking="the pot is warm"))
    assert sent == [
        f"{PREAMBLE}\n\nYou are Nell.\n\n<user-profile>\ncity: Lisbon\n</user-profile>",
        "<summary>\nThey spoke of tea.\n</summary>",
        "question 1",
        '<now chat="chat-1">Friday, 2026-07-03T12:00+00:00 (UTC)</now>\n'
        "<earlier-sessions>\n<session>First talk.</session>\n<session>Second talk.</session>\n</earlier-sessions>\n"
        '<playbooks>\n<playbook name="tea">\n- Warm the pot first.\n- Ask for sugar.\n</playbook>\n</playbooks>\n'
        "<workspace>\ngoal: tea\n</workspace>\n"
        "<thinking>\nthe pot is warm\n</thinking>\n"
        '<memories>\n<fact id="12" source="chat">The user lives in Lisbon.</fact>\n</memories>',
        "what now?",
    ]
    assert words([prompt.user]) == ["what now?"], "the session keeps the user's own words"
    assert set(re.findall(r"<([a-z-]+)>", PREAMBLE)) <= set(SECTIONS), "what the preamble explains exists"
    assert count_tokens(PREAMBLE) <= 130


@pytest.mark.req("CTX-01")
async def test_what_is_empty_has_no_section(tmp_path: Path) -> None:
    prompt = await built(tmp_path, turns=[])
    sent = words(prompt.messages(prompt.conversation([]), workspace=" \n", thinking=""))
    assert sent == [
        f"{PREAMBLE}\n\nYou are Nell.",
        '<now chat="chat-1">Friday, 2026-07-03T12:00+00:00 (UTC)</now>',
        "what now?",
    ]
    assert prompt.layers == {
        "tokens": {"preamble": count_tokens(PREAMBLE), "persona": 4},
        "persona": "setting",
        "history_messages": 0,
        "history_left_out": 0,
        "playbooks": [],
        "memories": 0,
    }


@pytest.mark.req("CTX-09")
async def test_what_has_no_room_is_cut_by_rule_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    summaries = [f"Talk {n}: " + "word " * 70 for n in range(6)]
    playbooks = [Playbook(f"p{n}", "- A line of about ten words that says something.\n" * 12) for n in range(5)]
    prompt = await built(
        tmp_path, "persona " * 400, compaction="said " * 400, summaries=summaries, playbooks=tuple(playbooks)
    )
    left_out = cast("dict[str, int]", prompt.layers["left_out"])
    assert left_out == {"persona": 200, "summary": 100, "earlier-sessions": 3, "playbooks": 2}
    assert "200 tokens too long" in caplog.text
    assert words([prompt.static])[0].endswith("perso…")
    assert re.findall(r"Talk \d", prompt.fresh.earlier) == ["Talk 3", "Talk 4", "Talk 5"], "the latest stay"
    assert re.findall(r'name="(\w+)"', prompt.fresh.playbooks) == ["p0", "p1", "p2"]
    assert prompt.layers["playbooks"] == ["p0", "p1", "p2", "p3", "p4"]
    single = await built(tmp_path, playbooks=(Playbook("long", "word " * 5_000),))
    assert count_tokens(single.fresh.playbooks) <= PLAYBOOKS_TOKENS + 15
    assert "…" in single.fresh.playbooks


@pytest.mark.req("CTX-01", "CTX-09", "AGE-01")
async def test_what_an_agent_is_there_for_and_works_with_comes_from_its_brief_alone(tmp_path: Path) -> None:
    notes = BriefSection(name="notes", pieces=("Scales first.", "x" * 4_000, "Then </working-material> Bach."))
    pages = BriefSection(name="pages", pieces=("Buy now!",), trust="untrusted")
    prompt = await built(tmp_path, instructions="You help to learn the piano.", sections=(notes, pages))
    system, fresh = words([prompt.static])[0], prompt.fresh.render(tools=True)
    assert system.index("You are Nell.") < system.index("You help to learn the piano.")
    assert '<working-material name="notes">\n- Scales first.\n- Then &lt;/working-material&gt; Bach.\n</' in fresh
    assert '<working-material name="pages" trust="untrusted">\n- Buy now!\n</working-material>' in fresh
    assert prompt.layers["left_out"] == {"sections": 1}
    plain = await built(tmp_path)
    assert "working-material" not in words([plain.static])[0] + plain.fresh.render(tools=True)


@pytest.mark.req("CTX-09", "CTX-08")
async def test_the_users_name_is_told_also_after_a_persona_that_is_cut(tmp_path: Path) -> None:
    persona = PersonaResolver(tmp_path, AgentProfile(agent_id="tess", system_prompt="word " * 3_000), "Ada")
    found = persona.resolve({})
    assert found.text.endswith("…\n\nThe user's name is Ada.")
    assert found.cut == 3_000 * 5 // 4 - PERSONA_TOKENS


_texts = st.text(max_size=3_000) | st.sampled_from(["word " * 2_000, "日本" * 2_000, "&<>" * 1_500, "x\n" * 3_000])


@pytest.mark.req("CTX-09")
@given(_texts, st.lists(_texts, max_size=6), st.lists(_texts, max_size=4), _texts)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_text_however_long_takes_more_than_its_budget(
    tmp_path: Path, compaction: str, summaries: list[str], instructions: list[str], persona: str
) -> None:
    playbooks = tuple(Playbook(f"p{n}", text) for n, text in enumerate(instructions))
    prompt = await built(
        tmp_path, persona, compaction=compaction, summaries=summaries, playbooks=playbooks, recalled=RECALLED
    )
    sizes = cast("dict[str, int]", prompt.layers["tokens"])
    room = {
        "persona": PERSONA_TOKENS,
        "profile": PROFILE_TOKENS,
        "summary": SUMMARY_TOKENS,
        "earlier-sessions": EARLIER_TOKENS,
        "playbooks": PLAYBOOKS_TOKENS,
        "memories": MEMORIES_TOKENS,
    }
    assert all(sizes.get(name, 0) <= most + 15 for name, most in room.items())
    fresh = prompt.fresh.render(tools=True, workspace=persona * 20, thinking=compaction * 20)
    assert count_tokens(fresh) <= 5_000 + 500 + 300 + 500 + 250 + 50 + 60


_unseen = st.sampled_from(
    list("\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\u00ad\u115f\ufe0f\x00\x1b")
)


@st.composite
def _forgeries(draw: st.DrawFn) -> str:
    """A tag of one of our sections with unseen characters anywhere in it."""
    name = draw(st.sampled_from(SECTIONS))
    name = "".join(draw(st.sampled_from([sign.lower(), sign.upper()])) for sign in name)
    pieces = [draw(st.sampled_from("<＜")), draw(st.sampled_from(["", "/", " / ", "\n"])), *name]
    return "".join(piece + draw(st.text(_unseen, max_size=2)) for piece in pieces) + draw(st.sampled_from([">", " x>"]))


@pytest.mark.req("CTX-05")
@given(_forgeries(), st.text(max_size=20))
def test_no_tag_of_a_section_passes_however_it_is_disguised(forged: str, around: str) -> None:
    safe = escape_section_tags(f"{around}{forged}{around}")
    visible = re.sub(r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad\u115f\ufe0f\x00\x1b]", "", safe)
    assert not re.search(rf"[<＜]\s*/?\s*(?:{'|'.join(SECTIONS)})(?!\w)", visible, re.IGNORECASE)
    assert escape_section_tags(safe) == safe


@pytest.mark.req("CTX-05")
@given(st.lists(_forgeries() | st.sampled_from(["</playbook>", "</session>", "<fact>", '"'])))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_layer_can_be_left_by_what_stands_in_it(tmp_path: Path, forged: list[str]) -> None:
    evil = "x " + " ".join(forged)
    named = evil[2:20] or "x"  # a hint that is too long is left out
    pattern = ToolPattern(user="u", words=frozenset({1}), calls=(PatternCall(tool=named),), message_id="m")
    prompt = await built(
        tmp_path,
        text=evil,
        compaction=evil,
        summaries=(evil,),
        playbooks=(Playbook("p", evil),),
        unasked=(evil,),
        instructions=evil,
        sections=(BriefSection(name=evil, pieces=(evil,), max_tokens=5_000),),
        skills=OfferedSkills((Playbook("s", "", description=evil),), (("t", evil),)),
        hint=build_hint_layer(pattern, [named]),
        recalled=RecalledContext(
            UserProfile.parse({"profile": {"user": {"city": evil}}}), parse_memories({"facts": [{"fact": evil}]})
        ),
    )
    sent = words(prompt.messages(prompt.conversation([]), workspace=evil, thinking=evil))
    text = "\n".join(sent[1:])
    for name in set(SECTIONS) - {"user-profile"}:
        assert len(re.findall(rf"<{name}\b", text)) == len(re.findall(rf"</{name}>", text)) == 1
    assert (opened(text).count("playbook"), opened(text).count("session")) == (1, 1)
    assert sent[0].count("</user-profile>") == 1


def traced(home: Home, trace_id: str, event: str) -> list[dict[str, Any]]:
    events = read_trace(home.traces_file, trace_id)
    return [cast("dict[str, Any]", one["data"]) for one in events if one["event"] == event]


def shared(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether a request begins, byte by byte, as the one before it up to the message that was new then."""
    before, after = ([json.dumps(one) for one in body["messages"]] for body in (first, second))
    tools = [{json.dumps(tool): place for place, tool in enumerate(body["tools"])} for body in (first, second)]
    both = [tool for tool in tools[0] if tool in tools[1]]
    return after[: len(before) - 1] == before[:-1] and both == sorted(both, key=tools[1].__getitem__) and both != []


@pytest.mark.req("CTX-07")
def test_a_growing_conversation_keeps_its_beginning_and_hits_of_the_cache_are_counted(
    start: Callable[..., Thinker], hub: FakeHub, model: ScriptedServer, home: Home
) -> None:
    home.playbooks.mkdir(parents=True)
    for word in ("file", "email"):
        home.playbooks.joinpath(f"{word}.md").write_text(
            f"---\nname: {word}\ndescription: About it\nkeywords: [{word}]\nrequired_tools: [look_up]\n---\n"
            + "- Look it up before you answer.\n" * 20
        )
    hub.handlers["look_up"] = lambda _: ToolResult(text="Found it.")
    model.rules(
        Rule(match="second", results=0, reply=Reply(tool_calls=[Call(name="look_up", arguments={"text": "x"})])),
        Rule(reply=Reply(text="Tea is a drink.", input_tokens=1_000, output_tokens=10, cached_tokens=700)),
    )
    thinker = start()
    asked = [brief(text) for text in ("the first", "the second file", "the third email", "the fourth")]
    states = [thinker.ask(one) for one in asked]
    bodies = [request.body for request in model.requests]
    assert len(bodies) == 5
    firsts = [bodies[0], bodies[1], bodies[3], bodies[4]]
    assert all(shared(one, next_one) for one, next_one in itertools.pairwise(firsts))
    # Within a turn nothing before the new messages changes either.
    assert bodies[2]["messages"][: len(bodies[1]["messages"])] == bodies[1]["messages"]
    last = [str(body["messages"][-1]["content"]) for body in firsts]
    assert ["<playbooks>" in text for text in last] == [False, True, True, False]
    assert not any("<playbooks>" in json.dumps(body["messages"][1:-1]) for body in firsts)

    assert states[0].result is not None
    assert states[0].result.usage.cached_tokens == 700
    told = traced(home, asked[0].trace_id, "model.called")
    assert [data["cached_tokens"] for data in told] == [700]
    layers = traced(home, asked[1].trace_id, "context.built")[0]
    assert layers["playbooks"] == ["file"]
    assert layers["tokens"]["playbooks"] > 50


@pytest.mark.req("CTX-02", "CTX-07")
def test_a_long_conversation_is_sent_in_part_and_what_fits_the_message_comes_along(
    start: Callable[..., Thinker], model: ScriptedServer
) -> None:
    model.rules(Rule(reply=Reply(text="Fine.")))
    thinker = start()
    for text in ("My cat Mia is sick", "Convert 12 inches", "Book a table", "Play some jazz", "Wake me at seven"):
        assert thinker.ask(brief(text)).state == "done"
    assert thinker.ask(brief("How is my cat Mia?")).state == "done"
    sent = json.dumps(model.requests[-1].body["messages"])
    assert [text in sent for text in ("Mia is sick", "12 inches", "a table", "some jazz", "at seven")] == [
        True,
        False,
        True,
        True,
        True,
    ]
