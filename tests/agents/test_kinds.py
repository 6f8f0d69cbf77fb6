"""A kind of agent is one file with its prompt beside it, and code asks what it says, never which kind it is."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import annabelle
from annabelle import agents
from annabelle.agents import find_kind, list_kinds
from annabelle.agents.kind import AgentKind
from annabelle.core.contract import TurnBrief
from annabelle.core.errors import NotAllowed
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from hub.goals.house import call, open_goal_house
from hub.skills.house import BEGIN
from support.timing import seconds
from support.virtual_clock import VirtualClock

PACKAGE = Path(annabelle.__file__).parent
KIND_FILE = '''
"""Reads a text again and says what is wrong with it."""

from annabelle.agents.kind import AgentKind, read_prompt

_TOOLS = ("look_around",)


class ProofreaderKind(AgentKind):
    agent_type = "proofreader"
    channel = "proofreading"

    def load_context(self, conn, message):
        return {"allowed_tools": _TOOLS}

    def load_terms(self, conn, message, limits, settings):
        own = {"max_steps": 2, "wall_clock_seconds": 7}
        return {
            "required_tools": _TOOLS,
            "instructions": read_prompt("proofreader"),
            "limits": limits.model_copy(update=own),
        }


KIND = ProofreaderKind()
'''
PROMPT = "You read what the user wrote, and name each mistake with its line."


@pytest.fixture
def added_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with one more kind in it, as if its files stood beside the others."""
    (tmp_path / "proofreader.py").write_text(KIND_FILE)
    (tmp_path / "proofreader.md").write_text(f"{PROMPT}\n")
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path)])
    list_kinds.cache_clear()
    yield
    list_kinds.cache_clear()
    sys.modules.pop("annabelle.agents.proofreader", None)
    agents.__dict__.pop("proofreader", None)


@pytest.mark.req("AGE-11", "AGE-01")
@pytest.mark.usefixtures("added_kind")
async def test_one_file_and_its_prompt_make_a_kind_whose_turns_have_its_prompt_tools_and_limits(home: Home) -> None:
    async with open_goal_house(home, VirtualClock(BEGIN)) as house:
        house.play(lambda _brief: {"calls": [call("look_around"), call("send_letter", to="a@b.example")], "say": "Ok."})
        body = {"text": "Teh cat sat.", "channel": "proofreading", "chatId": "essay"}
        said = await house.house.owner.post("/message", params={"wait": seconds(20)}, json=body)
        assert said.json()["reply"]["text"] == "Ok."
        (brief,) = house.thinker.briefs
        assert (brief.text, brief.instructions, brief.required_tools) == ("Teh cat sat.", PROMPT, ("look_around",))
        assert brief.limits is not None
        assert (brief.limits.max_steps, brief.limits.wall_clock_seconds) == (2, 7)
        looked, sent = house.thinker.answers
        assert not looked["is_error"]
        assert sent["error"]["code"] == NotAllowed.code
        assert house.house.sent == []
        await house.house.owner.post("/message", params={"wait": seconds(20)}, json={**body, "channel": "api"})
        assert house.thinker.briefs[-1].required_tools is None, "other channels are as before"


@pytest.mark.req("AGE-11")
def test_the_kind_is_gone_with_its_file() -> None:
    assert find_kind("proofreading").agent_type == "chat"


def protocol_methods() -> list[str]:
    return [name for name, _ in inspect.getmembers(AgentKind, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.req("AGE-01")
def test_the_kinds_that_there_are() -> None:
    known = {kind.agent_type: kind for kind in list_kinds()}
    assert {"chat", "goal", "task", "user_agent", "goal_creation", "skill"} <= known.keys()
    assert len(known) == len(list_kinds()), "two kinds of one name"
    channels = [kind.channel for kind in list_kinds()]
    assert len(set(channels)) == len(channels), "two kinds in one channel"
    assert channels.count(None) == 1
    for kind in list_kinds():
        assert find_kind(kind.channel or "anything else") is kind


@pytest.mark.req("AGE-01")
@pytest.mark.parametrize("kind", list_kinds(), ids=lambda kind: kind.agent_type)
def test_every_kind_answers_all_that_the_protocol_asks(kind: AgentKind) -> None:
    assert isinstance(kind.agent_type, str)
    assert isinstance(kind.channel, str | None)
    assert isinstance(kind.conversational, bool)
    assert isinstance(kind.accepts_messages, bool)
    assert set(protocol_methods()) == {
        "admit",
        "find_goal",
        "load_context",
        "load_terms",
        "list_child_tools",
        "end_turn",
        "drop_turn",
        "resume_turn",
    }
    for name in protocol_methods():
        own, asked = getattr(type(kind), name), getattr(AgentKind, name)
        assert list(inspect.signature(own).parameters) == list(inspect.signature(asked).parameters), name
    beyond = [name for name in vars(type(kind)) if not name.startswith("_") and not hasattr(AgentKind, name)]
    assert [name for name in beyond if name not in AgentKind.__annotations__] == [], "nobody could ask for it"


@pytest.mark.req("AGE-01")
async def test_a_turn_of_a_kind_that_is_not_conversational_says_so_to_the_thinker(home: Home) -> None:
    def plan(brief: TurnBrief) -> JsonObject:
        task = call("create_task", title="Find teachers", instructions="Find three.")
        return {"calls": [task] if brief.channel == "goal" else [], "say": "Ok."}

    async with open_goal_house(home, VirtualClock(BEGIN)) as house:
        goal = await house.add()
        house.play(plan)
        await house.say(goal)
        told = {one.channel: one.conversational for one in house.thinker.briefs}
    assert told == {channel: find_kind(channel).conversational for channel in ("goal", "task")}


def find_kind_tests(tree: ast.Module) -> list[str]:
    """Where code asks which kind an agent is, instead of asking the kind."""
    return [ast.unparse(node) for node in ast.walk(tree) if _asks_for_the_kind(node)]


def _asks_for_the_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(_names(one) & {"agent_type", "KIND"} or _is_type_of_kind(one) for one in _sides(node))
    if isinstance(node, ast.Match):
        return "agent_type" in _names(node.subject)
    if isinstance(node, ast.MatchClass):
        return _is_kind(_names(node.cls))
    if isinstance(node, ast.Subscript):
        return "agent_type" in _names(node.slice)
    if isinstance(node, ast.Call) and _names(node.func) & {"isinstance", "issubclass"}:
        return any(_is_kind(_names(one)) for wanted in node.args[1:] for one in ast.walk(wanted))
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("annabelle.agents."):
        return any(name.name == "KIND" or _is_kind({name.name} - {"AgentKind"}) for name in node.names)
    return False


def _sides(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]


def _names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Attribute):
        return {node.attr}
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_kind(names: set[str]) -> bool:
    return any(name.endswith("Kind") for name in names)


def _is_type_of_kind(node: ast.expr) -> bool:
    return _is_kind(_names(node)) or (isinstance(node, ast.Call) and "find_kind" in _names(node.func))


@pytest.mark.parametrize(
    "code",
    [
        'kind.agent_type == "goal"',
        'kind.agent_type in ("goal", "task")',
        '"goal" != find_kind(channel).agent_type',
        "isinstance(kind, GoalKind)",
        "isinstance(kind, (int, goal.GoalKind))",
        "isinstance(kind, GoalKind | TaskKind)",
        "type(kind) is GoalKind",
        "find_kind(channel) is goal.KIND",
        "find_kind(channel) == other",
        "LIMITS[kind.agent_type]",
        "match kind.agent_type:\n    case 'goal': ...",
        "match kind:\n    case GoalKind(): ...",
        "from annabelle.agents.goal import GoalKind",
        "from annabelle.agents.goal import KIND",
    ],
)
def test_the_search_finds_code_that_asks_for_the_kind(code: str) -> None:
    assert find_kind_tests(ast.parse(code))


@pytest.mark.req("AGE-01")
def test_no_code_asks_which_kind_an_agent_is() -> None:
    asked = {
        str(path.relative_to(PACKAGE)): found
        for path in sorted(PACKAGE.rglob("*.py"))
        if (found := find_kind_tests(ast.parse(path.read_text())))
    }
    assert asked == {}
