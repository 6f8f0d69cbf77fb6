"""Secrets go to tools as handles: the value is put in at the last moment and taken out of what comes back."""

import base64
import html
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import NotAllowed, RetryByModel, ServerDown, Unavailable
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.toolbox.call_hooks import CallHooks, GuardRules
from annabelle.toolbox.catalogue import AgentPolicy, ToolCatalogue, ToolOffer
from annabelle.toolbox.guard import ContentGuard
from annabelle.toolbox.mcp.connection import build_call_meta
from annabelle.toolbox.middleware.secrets import SecretScrubber, find_handles
from annabelle.toolbox.router import ToolRouter
from support.toolbox import MemoryJournal

pytestmark = pytest.mark.req("POL-06")

HANDLE = "secret://vault/abcdefghij234567"
OTHER = "secret://vault/zzzzzzzzzz234567"
VALUE = 'p@ss "wörd"/+&<> 42'
AGENT = CallContext(caller="agent", agent_id="annabelle", user_id="owner", call_id="c1", trace_id="t")
ANYTHING: JsonObject = {"type": "object"}


@dataclass
class Vault:
    """Keeps values for the one who asked, as the 1Password server does."""

    values: dict[str, str] = field(default_factory=lambda: {HANDLE: VALUE})
    asked: list[CallContext] = field(default_factory=list)

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.asked.append(context)
        value = self.values.get(str(arguments["handle"]))
        if value is None or context.agent_id != "annabelle" or context.user_id != "owner":
            return ToolResult.failure(RetryByModel("not known", hint="read it again").body())
        return ToolResult(text="", structured={"value": value, "sites": ["https://bank.example"]})


@dataclass
class Hand:
    """A server that uses what it gets, and says what it is told to say."""

    got: list[JsonObject] = field(default_factory=list)
    contexts: list[CallContext] = field(default_factory=list)
    answer: ToolResult | Exception = field(default_factory=lambda: ToolResult(text="done"))

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.got.append(arguments)
        self.contexts.append(context)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class House:
    vault: Vault
    hand: Hand
    file: Hand
    journal: MemoryJournal
    router: ToolRouter

    async def call(self, name: str, arguments: JsonObject, context: CallContext = AGENT) -> ToolResult:
        return await self.router.call(name, arguments, context, AgentPolicy())


def spec(server: str, name: str, audience: str = "everyone") -> ToolSpec:
    return ToolSpec.model_validate(
        {
            "name": f"{server}_{name}",
            "server": server,
            "original_name": name,
            "description": "",
            "input_schema": ANYTHING,
            "annotations": ToolAnnotations(idempotent=True),
            "audience": audience,
        }
    )


@pytest.fixture
def house(journal: MemoryJournal) -> House:
    catalogue = ToolCatalogue()
    vault, hand, file = Vault(), Hand(), Hand()
    catalogue.offer("vault", [ToolOffer(spec("vault", "reveal", "hub"), vault, 5)])
    catalogue.offer("web", [ToolOffer(spec("web", "type"), hand, 5, takes_secrets=True)])
    catalogue.offer("filer", [ToolOffer(spec("filer", "create_file"), file, 5)])
    catalogue.offer("faker", [ToolOffer(spec("faker", "reveal"), Hand(), 5)], foreign=True)
    unguarded = ContentGuard(None, lambda agent_id: GuardRules(enabled=False))
    return House(vault, hand, file, journal, ToolRouter(catalogue, journal, CallHooks(), unguarded))


async def test_a_tool_that_takes_secrets_gets_the_value_wherever_the_handle_stands(house: House):
    await house.call(
        "web_type", {"text": HANDLE, "fields": [{"value": f"a{HANDLE}."}, 3, None], "deep": {"x": [[HANDLE]]}}
    )
    assert house.hand.got == [{"text": VALUE, "fields": [{"value": f"a{VALUE}."}, 3, None], "deep": {"x": [[VALUE]]}}]
    assert (house.vault.asked[0].caller, house.vault.asked[0].call_id) == ("hub", None)


async def test_a_call_without_handles_asks_no_vault(house: House):
    await house.call("web_type", {"text": "secret:// is not one, nor secret://vault/short"})
    assert house.vault.asked == []
    assert house.hand.contexts[0].secrets == ()


async def test_the_server_is_told_what_not_to_log_and_nobody_else_is(house: House):
    await house.call("web_type", {"text": HANDLE})
    context = house.hand.contexts[0]
    assert context.secrets == (VALUE,)
    assert VALUE not in repr(context) + context.model_dump_json()
    told: Any = build_call_meta(context, ours=True)["annabelle"]
    assert (told["secrets"], told["secret_sites"]) == ([VALUE], {VALUE: ["https://bank.example"]})
    assert "secret_sites" not in str(build_call_meta(context, ours=False))
    assert VALUE not in str(build_call_meta(context, ours=False))


@pytest.mark.parametrize("nested", [HANDLE, [{"a": f"see {HANDLE}"}], {HANDLE: 1}])
async def test_a_tool_that_does_not_take_secrets_is_refused(house: House, nested: object):
    with pytest.raises(NotAllowed, match="does not take secrets"):
        await house.call("filer_create_file", {"content": nested})
    assert house.file.got == []
    assert house.vault.asked == []


@pytest.mark.parametrize("change", [{"caller": "hub"}, {"caller": "agent", "call_id": None}])
@pytest.mark.parametrize("tool", ["filer_create_file", "web_type"])
async def test_in_calls_that_no_model_chose_a_handle_is_just_a_word(house: House, change: dict[str, str], tool: str):
    await house.call(tool, {"content": f"you said {HANDLE}"}, AGENT.model_copy(update=change))
    assert house.file.got + house.hand.got == [{"content": f"you said {HANDLE}"}]
    assert house.vault.asked == []


@pytest.mark.parametrize("caller", ["api", "cli"])
async def test_people_are_refused_where_agents_are(house: House, caller: str):
    person = AGENT.model_copy(update={"caller": caller, "call_id": None})
    with pytest.raises(NotAllowed):
        await house.call("filer_create_file", {"content": HANDLE}, person)


@pytest.mark.parametrize("change", [{"agent_id": "another"}, {"user_id": "somebody"}, {"agent_id": None}])
async def test_a_handle_of_somebody_else_is_as_good_as_none(house: House, change: dict[str, str | None]):
    with pytest.raises(RetryByModel, match="not known"):
        await house.call("web_type", {"text": HANDLE}, AGENT.model_copy(update=change))
    assert house.hand.got == []


async def test_an_unknown_handle_is_to_be_read_again_and_nothing_was_done(house: House):
    with pytest.raises(RetryByModel) as refused:
        await house.call("web_type", {"text": HANDLE, "more": OTHER})
    assert refused.value.hint == "read it again"
    assert house.hand.got == []


@pytest.mark.parametrize("server", ["nobody", "faker", "web"])
async def test_only_a_vault_of_our_own_is_asked_for_a_value(house: House, server: str):
    with pytest.raises(RetryByModel, match="no vault"):
        await house.call("web_type", {"text": f"secret://{server}/abcdefghij234567"})
    assert house.hand.got == []


async def test_a_vault_that_is_down_is_told_as_such(house: House):
    async def down(tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        raise ServerDown("1Password is not running.")

    house.vault.call = down  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await house.call("web_type", {"text": HANDLE})


SHAPES = {
    "as it is": VALUE,
    "in JSON": json.dumps({"v": VALUE}),
    "in JSON with signs": json.dumps({"v": VALUE}, ensure_ascii=False),
    "in JSON in JSON": json.dumps(json.dumps({"v": VALUE})),
    "in HTML": f"<input value='{html.escape(VALUE)}'>",
    "in HTML text": html.escape(VALUE, quote=False),
    "in an address": f"https://x.example/?q={quote(VALUE, safe='')}&a=1",
    "in a path": f"https://x.example/{quote(VALUE)}",
    "in a form": f"q={quote_plus(VALUE)}",
    "in base64": base64.b64encode(VALUE.encode()).decode(),
    "amid base64": base64.b64encode(b"u:" + VALUE.encode() + b"!!").decode(),
    "amid base64 for addresses": base64.urlsafe_b64encode(b"u" + VALUE.encode() + b"xyz").decode(),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_what_comes_back_holds_the_handle_instead(house: House, shape: str):
    said = SHAPES[shape]
    house.hand.answer = ToolResult(text=f"saw {said}", display=f"saw {said}!", structured={"a": [{"b": said}], said: 1})
    result = await house.call("web_type", {"text": HANDLE})
    told = result.model_dump_json()
    assert HANDLE in result.text
    for piece in (VALUE, said, VALUE[:12], "wörd", base64.b64encode(VALUE.encode()).decode()[4:-4]):
        assert piece not in told
    assert house.journal.results["c1"].text == result.text


async def test_errors_are_cleaned_as_results_are(house: House):
    house.hand.answer = ToolResult.failure(RetryByModel(f"no field {VALUE}", hint=f"not {VALUE}").body())
    result = await house.call("web_type", {"text": HANDLE})
    assert result.error is not None
    assert (result.error.message, result.error.hint) == (f"no field {HANDLE}", f"not {HANDLE}")
    house.hand.answer = Unavailable(f"lost at {VALUE}", hint=VALUE)
    house.hand.answer.__cause__ = ValueError(VALUE)
    with pytest.raises(Unavailable) as raised:
        await house.call("web_type", {"text": HANDLE}, AGENT.model_copy(update={"call_id": "c2"}))
    assert (raised.value.message, raised.value.hint, str(raised.value)) == (
        f"lost at {HANDLE}",
        HANDLE,
        f"lost at {HANDLE}",
    )
    assert raised.value.__cause__ is None
    assert VALUE not in house.journal.results["c2"].model_dump_json()


async def test_a_later_answer_of_any_server_is_cleaned_too(house: House):
    await house.call("web_type", {"text": HANDLE})
    house.hand.answer = house.file.answer = ToolResult(text=f"textbox: {VALUE}")
    later = AGENT.model_copy(update={"call_id": None})
    assert (await house.call("web_type", {}, later)).text == f"textbox: {HANDLE}"
    assert (await house.call("filer_create_file", {}, later)).text == f"textbox: {HANDLE}"


async def test_a_short_secret_is_only_looked_for_where_it_was_told(house: House):
    house.vault.values = {HANDLE: "1234"}
    await house.call("web_type", {"text": HANDLE})
    house.hand.answer = house.file.answer = ToolResult(text="pin 1234")
    later = AGENT.model_copy(update={"call_id": None})
    assert (await house.call("web_type", {}, later)).text == f"pin {HANDLE}"
    assert (await house.call("filer_create_file", {}, later)).text == "pin 1234"


async def test_a_repeat_of_a_call_replays_the_handle(house: House):
    house.hand.answer = ToolResult(text=VALUE)
    first = await house.call("web_type", {"text": HANDLE})
    again = await house.call("web_type", {"text": HANDLE})
    assert (first.text, again.text, again.replayed) == (HANDLE, HANDLE, True)
    assert len(house.hand.got) == 1


def test_each_long_line_of_a_key_is_found():
    key = "-----BEGIN KEY-----\nAAAAB3NzaC1yc2EAAA\nBBBBB3NzaC1yc2EBBB\n-----END KEY-----\n"
    cleaned = SecretScrubber({key: HANDLE}).scrub_text("it begins AAAAB3NzaC1yc2EAAA  BBBBB3NzaC1yc2EBBB")
    assert cleaned == f"it begins {HANDLE}  {HANDLE}"


def test_where_one_value_begins_another_no_end_of_the_longer_one_is_left():
    scrub = SecretScrubber({"correct-horse": HANDLE, "correct-horse-battery": OTHER})
    assert scrub.scrub_text("said correct-horse-battery, then correct-horse") == f"said {OTHER}, then {HANDLE}"


@given(st.text(min_size=3, max_size=40).filter(lambda text: text.strip() and text not in HANDLE), st.text(max_size=20))
def test_no_value_survives_whatever_it_is_made_of(value: str, around: str):
    scrub = SecretScrubber({value: HANDLE})
    for text in (f"{around}{value}{around}", json.dumps([around, value]), quote(value, errors="replace")):
        assert value not in scrub.scrub_text(text).replace(HANDLE, "\x00\x00")


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_looking_for_handles_takes_any_arguments(arguments: object):
    assert find_handles({"a": arguments}) == {}
