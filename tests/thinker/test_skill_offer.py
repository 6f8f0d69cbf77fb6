"""Skills in the prompt: named there, read through the hub when they are called for, and never more than data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from annabelle.core.contract import ToolCall, ToolList
from annabelle.core.errors import SecurityBlocked
from annabelle.core.home import Home
from annabelle.core.tools import ToolResult
from annabelle.skills.playbook_folder import PlaybookFolder
from annabelle.skills.skill_folder import SkillFolder
from annabelle.thinker.prompt.skill_offer import READ_SKILL, OfferedSkills, SkillOffers, build_skills_layer
from annabelle.thinker.prompt.token_budget import SKILL_BODY_TOKENS, SKILLS_TOKENS, count_tokens
from skills.test_skill_folder import write
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub, tool
from thinker.thinkers import Thinker, brief

MAY_READ = (READ_SKILL,)


class ReadingHub:
    """A hub that gives the instructions of skills, unless they are blocked."""

    def __init__(self, *blocked: str) -> None:
        self.calls: list[ToolCall] = []
        self._blocked = blocked

    def expect_tools(self, version: str | None) -> None: ...

    async def tools(self) -> ToolList:
        return ToolList(version="1", tools=())

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        self.calls.append(call)
        if call.arguments["name"] in self._blocked:
            raise SecurityBlocked("It looks like an attack.")
        return ToolResult(text=f"How to {call.arguments['name']}.")


async def prepare(
    home: Path, text: str, tools: tuple[str, ...] = MAY_READ, hub: ReadingHub | None = None, required: bool = False
) -> OfferedSkills:
    skills = SkillFolder.open_home(Home(home))
    matching = PlaybookFolder(home, skills).matching(text, tools)
    asked = brief(text).model_copy(update={"required_tools": ()} if required else {})
    return await SkillOffers(skills, hub or ReadingHub()).prepare(asked, text, matching, tools)


def shown(skills: OfferedSkills) -> str:
    return build_skills_layer(skills).text


@pytest.mark.req("SKL-10")
async def test_a_skill_is_named_with_its_description_and_its_instructions_stay_out(tmp_path: Path) -> None:
    write(tmp_path / "skills", "brew", body="Boil water.", description="Makes tea <of> any kind.")
    text = shown(await prepare(tmp_path, "hello"))
    assert text.startswith('<available_skills trust="untrusted">\n')
    assert '<skill name="brew">Makes tea &lt;of&gt; any kind.</skill>' in text
    assert "Boil water" not in text


@pytest.mark.req("SKL-10")
async def test_without_skills_or_without_the_right_to_read_them_the_prompt_says_nothing(tmp_path: Path) -> None:
    assert shown(await prepare(tmp_path, "hello")) == ""
    write(tmp_path / "skills", "brew", "keywords: [tea]")
    assert shown(await prepare(tmp_path, "tea", tools=())) == ""
    assert shown(await prepare(tmp_path, "tea", required=True)) == ""


@pytest.mark.req("SKL-10")
async def test_a_skill_whose_tools_are_missing_stays_silent(tmp_path: Path) -> None:
    write(tmp_path / "skills", "brew", "required_tools: [kettle_boil]")
    assert shown(await prepare(tmp_path, "hello")) == ""
    assert "brew" in shown(await prepare(tmp_path, "hello", (*MAY_READ, "kettle_boil")))


@pytest.mark.req("SKL-10")
async def test_a_skill_the_message_calls_for_is_read_through_the_hub_for_that_message(tmp_path: Path) -> None:
    write(tmp_path / "skills", "brew", "keywords: [tea]", body="Boil water.")
    write(tmp_path / "skills", "roast")
    hub = ReadingHub()
    found = await prepare(tmp_path, "a cup of tea", hub=hub)
    assert [(call.name, call.arguments) for call in hub.calls] == [(READ_SKILL, {"name": "brew"})]
    assert hub.calls[0].message_id is not None
    text = shown(found)
    assert '<skill name="brew">\nHow to brew.\n</skill>' in text
    assert text.count('name="brew"') == 1
    assert 'name="roast"' in text


@pytest.mark.req("SKL-10")
async def test_a_skill_that_the_guardian_withholds_is_only_named(tmp_path: Path) -> None:
    write(tmp_path / "skills", "brew", "keywords: [tea]", body="Boil water.")
    found = await prepare(tmp_path, "a cup of tea", hub=ReadingHub("brew"))
    assert found.instructions == ()
    assert [one.name for one in found.offered] == ["brew"]


@pytest.mark.req("SKL-10")
async def test_many_long_skills_are_bounded_and_those_that_fit_the_message_come_first(tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path / "skills", f"skill-{number}", description="word " * 200)
    write(tmp_path / "skills", "spreadsheets", description="Formulas in spreadsheets.")
    found = await prepare(tmp_path, "fix the formulas in this spreadsheet please")
    layer = build_skills_layer(found)
    assert found.offered[0].name == "spreadsheets"
    assert layer.shown <= 20
    assert layer.shown + layer.left_out == 61
    assert count_tokens(layer.text) <= SKILLS_TOKENS + 100
    long = build_skills_layer(OfferedSkills((), (("a", "word " * 50_000), ("b", "word " * 50_000))))
    assert count_tokens(long.text) <= SKILL_BODY_TOKENS + 100


@pytest.mark.req("SKL-10")
def test_the_model_is_told_of_skills_once_there_are_some_and_reads_one_with_a_call(
    start: Callable[..., Thinker], hub: FakeHub, model: ScriptedServer, home: Home
) -> None:
    hub.tools.append(tool(READ_SKILL, read_only=True))
    hub.handlers[READ_SKILL] = lambda _: ToolResult(text="Boil water first.")
    model.rules(
        Rule(match="tea", results=0, reply=Reply(tool_calls=[Call(name=READ_SKILL, arguments={"name": "brew"})])),
        Rule(reply=Reply(text="Tea is a drink.")),
    )
    thinker = start()
    thinker.ask(brief("hello there"))
    write(home.skills, "brew", body="Boil water.", description="Makes tea.")
    thinker.ask(brief("please make some tea"))
    before, asked, answered = (str(request.body["messages"]) for request in model.requests)
    assert "available_skills" not in before
    assert '<skill name="brew">Makes tea.</skill>' in asked
    assert "Boil water" not in asked
    assert "Boil water first." in answered
