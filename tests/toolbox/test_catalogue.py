"""Names, closest names and versions."""

import pytest

from annabelle.core.errors import SwitchedOff, UnknownTool
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.toolbox.catalogue import AgentPolicy, ToolCatalogue, ToolOffer
from annabelle.toolbox.manifest import ServerProfile
from annabelle.toolbox.mcp.conversion import exposed_name, to_spec


class Nobody:
    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        return ToolResult(text="")


class Heard:
    def __init__(self) -> None:
        self.versions: list[str] = []
        self.hidden: list[str] = []
        self.catalogue = ToolCatalogue()
        self.catalogue.on_change(self.versions.append)
        self.catalogue.on_hidden(lambda spec: self.hidden.append(spec.server))

    def offer(self, server: str, *tools: str, foreign: bool = False) -> None:
        profile = ServerProfile(server, server.title(), "builtin", 30, "Group")
        specs = [to_spec(profile, {"name": tool, "description": "Does it."}) for tool in tools]
        offers = [ToolOffer(spec, Nobody(), 30) for spec in specs if spec is not None]
        self.catalogue.offer(server, offers, foreign=foreign)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.mark.req("RTR-01")
def test_two_servers_may_have_tools_of_the_same_name(heard: Heard) -> None:
    heard.offer("mail", "search")
    heard.offer("web", "search")
    assert heard.catalogue.find("mail_search", None).spec.server == "mail"
    assert heard.catalogue.find("web_search", None).spec.original_name == "search"


@pytest.mark.req("RTR-01")
def test_a_name_that_two_servers_would_share_stays_with_the_first(heard: Heard) -> None:
    heard.offer("a", "b_c")
    heard.offer("a_b", "c", "d")
    heard.offer("other", "x")
    assert heard.catalogue.find("a_b_c", None).spec.server == "a"
    assert heard.hidden == ["a_b"], "it is said, and said once"
    heard.catalogue.withdraw("a")
    assert heard.catalogue.find("a_b_c", None).spec.server == "a_b"


@pytest.mark.req("RTR-02")
def test_a_description_begins_with_label_and_group(heard: Heard) -> None:
    heard.offer("filer", "read_file")
    assert heard.catalogue.find("filer_read_file", None).spec.description == "[Filer | Group] Does it."


@pytest.mark.req("RTR-04")
def test_an_unknown_tool_is_answered_with_the_closest_names(heard: Heard) -> None:
    heard.offer("filer", "read_file", "write_file", "list_files")
    with pytest.raises(UnknownTool) as typo:
        heard.catalogue.find("filer_raed_file", None)
    assert typo.value.hint is not None
    assert "filer_read_file" in typo.value.hint
    with pytest.raises(UnknownTool) as bare:
        heard.catalogue.find("write_file", None)
    assert bare.value.hint is not None
    assert "filer_write_file" in bare.value.hint


def test_the_closest_names_are_those_the_caller_may_use(heard: Heard) -> None:
    heard.offer("filer", "read_file", "write_file")
    with pytest.raises(UnknownTool) as caught:
        heard.catalogue.find("filer_raed_file", AgentPolicy(denied=("filer_read_file",)))
    assert "filer_read_file" not in (caught.value.hint or "")


@pytest.mark.req("POL-01", "RTR-06")
def test_a_list_holds_what_the_policy_permits_and_changes_its_version_with_its_content(heard: Heard) -> None:
    heard.offer("filer", "read_file", "write_file")
    readers = AgentPolicy(allowed=("*_read_*",))
    before = heard.catalogue.list_tools(readers)
    assert [tool.name for tool in before.tools] == ["filer_read_file"]
    heard.offer("web", "fetch")
    assert heard.catalogue.list_tools(readers).version == before.version, "what it may not use does not concern it"
    heard.offer("web", "fetch", "read_page")
    assert heard.catalogue.list_tools(readers).version != before.version
    assert heard.catalogue.list_tools(AgentPolicy(allowed=())).tools == ()


def test_only_a_real_change_is_told(heard: Heard) -> None:
    heard.offer("filer", "read_file")
    heard.offer("filer", "read_file")
    assert len(heard.versions) == 1


@pytest.mark.parametrize("tool", ["with.dots/and spaces", "ünïcode", "x" * 200])
def test_an_exposed_name_fits_every_provider(tool: str) -> None:
    name = exposed_name("server", tool)
    assert len(name) <= 64
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in name)


def test_two_long_names_stay_different() -> None:
    assert exposed_name("s", "x" * 100 + "a") != exposed_name("s", "x" * 100 + "b")


@pytest.mark.req("RTR-01")
def test_a_server_the_user_added_never_takes_the_name_of_a_built_in_tool(heard: Heard) -> None:
    heard.offer("filer_read", "file", foreign=True)
    assert heard.catalogue.find("filer_read_file", None).spec.server == "filer_read"
    heard.offer("filer", "read_file")
    assert heard.catalogue.find("filer_read_file", None).spec.server == "filer"
    assert heard.hidden == ["filer_read"]


@pytest.mark.req("POL-04")
def test_what_people_wrote_of_a_tool_counts_for_our_own_server_alone(heard: Heard) -> None:
    heard.offer("filer", "read_file")
    ours = heard.catalogue.find("filer_read_file", None).spec
    assert heard.catalogue.reviewed_traits(ours) == reviewed_tools()["filer_read_file"]
    heard.catalogue.withdraw("filer")
    heard.offer("filer", "read_file", foreign=True)
    assert heard.catalogue.reviewed_traits(heard.catalogue.find("filer_read_file", None).spec) is None


@pytest.mark.req("EXT-01")
def test_a_tool_of_a_disabled_server_is_said_to_be_switched_off(heard: Heard) -> None:
    heard.catalogue.set_switched_off(["my-web"])
    with pytest.raises(SwitchedOff, match="The my-web server is switched off") as caught:
        heard.catalogue.find("my-web_search", None)
    assert caught.value.hint == "Set MY_WEB_MCP_ENABLED=true, then: annabelle restart"
    heard.offer("my-web", "search")
    assert heard.catalogue.find("my-web_search", None).spec.server == "my-web", "somebody else serves it"
