"""People, found across servers: put together where they are the same, and only from where the caller may look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import cast

import pytest

from annabelle.agents.subagent import SubagentRequest
from annabelle.core.errors import ErrorBody
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.instance import bind_port
from annabelle.hub.security.users_file import add_user
from annabelle.hub.tasks.subagents import make_scope
from annabelle.hub.tools import contacts
from annabelle.hub.tools.contacts import Sighting, merge_sightings, parse_addresses
from annabelle.toolbox.catalogue import AgentPolicy, ToolOffer
from hub.hubs import HubProcess
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-ALL", "RTR-05")

Answer = Callable[[JsonObject], ToolResult | Awaitable[ToolResult]]
_READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=True)
_TOOLS = ("memory_list_contacts", "telegram_list_contacts", "telegram_search_users", "gmail_list_emails")


class Known:
    """Servers that know people, each at the door of the toolbox; they note who asks for what."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.calls: list[tuple[str, JsonObject, CallContext]] = []

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.calls.append((tool.name, arguments, context))
        answer = self.answers[tool.name](arguments)
        return answer if isinstance(answer, ToolResult) else await answer

    def asked(self) -> set[str]:
        return {name for name, _, _ in self.calls}


def told(name: str, *rows: JsonObject, trust: str = "untrusted") -> Answer:
    result = ToolResult.model_validate({"text": "", "structured": {name: list(rows)}, "trust": trust})
    return lambda arguments: result


def failed(message: str) -> Answer:
    result = ToolResult.failure(ErrorBody(code="unavailable", message=message))
    return lambda arguments: result


@pytest.fixture
async def hub(home: Home) -> AsyncIterator[HubContext]:
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            yield machine.hub


@pytest.fixture
async def known(hub: HubContext) -> Known:
    servers = Known()
    ann = {"id": 7, "name": "Ann Smith", "email": "ann@example.com", "company": "Acme", "role": "CEO", "notes": None}
    servers.answers = {
        "memory_list_contacts": told("contacts", ann, trust="trusted"),
        "telegram_list_contacts": told(
            "people",
            {"chat_id": "5", "name": "ann smith", "phone": "+49 151 123456", "username": "annie"},
            {"chat_id": "6", "name": "Bob Stone", "phone": "+1 555 0100200", "username": None},
        ),
        "telegram_search_users": told("people", {"chat_id": "9", "name": "Annika", "username": "annika9"}),
        "gmail_list_emails": told(
            "emails",
            {"sender": '"Smith, Ann" <ANN@example.com>', "to": "me@example.com, Ann Other <ann.other@example.org>"},
        ),
    }
    for server in ("memory", "telegram", "gmail"):
        offers = [
            ToolOffer(
                ToolSpec(
                    name=name, server=server, original_name=name.partition("_")[2], description="Knows people.",
                    input_schema={"type": "object"}, annotations=_READS,
                ),
                servers,
                30.0,
            )
            for name in _TOOLS
            if name.startswith(server)
        ]  # fmt: skip
        hub.toolbox._catalogue.offer(server, offers)  # pyright: ignore[reportPrivateUsage] - a server without a process
    return servers


async def find(hub: HubContext, query: str, **arguments: object) -> ToolResult:
    agent_id = hub.agents.registry.config.default.agent_id
    context = CallContext(caller="agent", agent_id=agent_id, user_id=OWNER, call_id=f"turn:{query}:{arguments}")
    policy = hub.agents.registry.policy(agent_id)
    return await hub.toolbox.call("find_contact", {"query": query, **arguments}, context, policy)


def people(result: ToolResult) -> list[JsonObject]:
    assert result.structured is not None
    return cast("list[JsonObject]", result.structured["contacts"])


async def test_one_person_is_put_together_from_everywhere(hub: HubContext, known: Known) -> None:
    result = await find(hub, "ann smith")
    (ann,) = people(result)
    assert (ann["name"], ann["company"], ann["role"], ann["contact_id"]) == ("Ann Smith", "Acme", "CEO", 7)
    assert (ann["phones"], ann["username"], ann["telegram_chat_id"]) == (["+49 151 123456"], "annie", "5")
    assert ann["emails"] == ["ann@example.com"], "one address, however it is spelled"
    assert set(cast("list[str]", ann["sources"])) == {"memory", "telegram", "gmail"}
    assert "Ann Smith" in result.text
    assert result.trust == "untrusted", "what strangers call themselves is foreign"


@pytest.mark.req("POL-04", "TRU-03")
async def test_whoever_only_calls_themselves_so_is_not_taken_for_somebody_in_the_persons_books(
    hub: HubContext, known: Known
) -> None:
    known.answers["gmail_list_emails"] = told(
        "emails",
        {"sender": "Ann Smith <mallory@evil.example>", "to": ""},
        {"sender": "Bob Stone <mallory@evil.example>", "to": ""},
        {"sender": "Ann Smith <ann@example.com>", "to": ""},
    )
    known.answers["telegram_search_users"] = told(
        "people", {"chat_id": "66", "name": "Bob Stone", "phone": None, "username": "not_bob"}
    )
    ann = {str(person["emails"]): person["trust"] for person in people(await find(hub, "ann smith"))}
    assert ann == {"['ann@example.com']": "trusted", "['mallory@evil.example']": "untrusted"}
    bobs = people(await find(hub, "bob stone"))
    assert [(bob["telegram_chat_id"], "emails" in bob) for bob in bobs if bob["trust"] == "trusted"] == [("6", False)]


@pytest.mark.req("POL-04", "TRU-03")
async def test_a_contact_that_was_written_down_from_foreign_content_stays_untrusted(
    hub: HubContext, known: Known
) -> None:
    bob = {"id": 8, "name": "Bob Stone", "email": "mallory@evil.example", "trust": "untrusted"}
    known.answers["memory_list_contacts"] = told("contacts", bob)
    found = {str(person.get("emails")): person["trust"] for person in people(await find(hub, "bob stone"))}
    assert found == {"['mallory@evil.example']": "untrusted", "None": "trusted"}


async def test_others_of_a_like_name_stay_apart(hub: HubContext, known: Known) -> None:
    found = people(await find(hub, "ann"))
    assert sorted(str(person["name"]) for person in found) == ["Ann Other", "Ann Smith", "Annika"]
    few = await find(hub, "annik")
    assert [person["name"] for person in people(few)] == ["Annika"]


async def test_a_person_is_found_by_number_and_by_company(hub: HubContext, known: Known) -> None:
    for number in ("5550100200", "+1 (555) 010-0200"):
        assert [person["name"] for person in people(await find(hub, number))] == ["Bob Stone"]
    assert [person.get("company") for person in people(await find(hub, "acme"))] == ["Acme"]
    assert {"name": "acme", "limit": 50} in [arguments for _, arguments, _ in known.calls]


async def test_the_sources_are_asked_as_the_caller_asks(hub: HubContext, known: Known) -> None:
    await find(hub, 'a"nn@example.com')
    assert {(seen.caller, seen.user_id) for _, _, seen in known.calls} == {("agent", OWNER)}
    queries = {name: arguments for name, arguments, _ in known.calls}
    assert queries["gmail_list_emails"]["query"] == 'from:"a nn@example.com" OR to:"a nn@example.com"'
    assert queries["memory_list_contacts"] == {"email": "a nn@example.com", "limit": 5}


async def test_what_the_agent_may_not_use_is_not_asked(
    hub: HubContext, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub.agents.registry, "policy", lambda _agent: AgentPolicy(denied=("telegram_*", "gmail_*")))
    result = await find(hub, "ann")
    assert known.asked() == {"memory_list_contacts"}
    assert [person["sources"] for person in people(result)] == [["memory"]]
    assert result.trust == "trusted"


@pytest.mark.incident("I-30")
async def test_somebody_who_was_given_the_search_sees_nothing_of_the_owners_accounts(
    hub: HubContext, known: Known, home: Home
) -> None:
    add_user(home.users_file, "ada")
    entries = json.loads(home.users_file.read_text())
    entries["users"][0]["allowedTools"] = ["find_contact", "telegram_search_users"]
    home.users_file.write_text(json.dumps(entries))
    assert hub.security.users.reload_if_changed()
    context = CallContext(caller="api", user_id="ada")
    await hub.toolbox.call("find_contact", {"query": "ann"}, context, None)
    assert known.asked() == {"memory_list_contacts", "telegram_search_users"}
    assert {seen.user_id for _, _, seen in known.calls} == {"ada"}


async def test_a_subagent_is_not_given_a_search_that_is_wider_than_its_errand() -> None:
    assert "find_contact" in make_scope(SubagentRequest.model_validate({"task": "look"}), "task_1", "msg_1").denied


async def test_a_server_that_fails_is_named_and_the_others_answer(hub: HubContext, known: Known) -> None:
    known.answers["gmail_list_emails"] = failed("Mail is not connected.")
    result = await find(hub, "ann smith")
    assert result.structured is not None
    assert not result.is_error
    assert result.structured["not_asked"] == [{"server": "gmail", "why": "Mail is not connected."}]
    assert result.structured["asked"] == ["memory", "telegram"]
    assert len(people(result)) == 1
    assert "not asked: gmail" in result.text


async def test_a_server_that_hangs_does_not_hold_up_the_others(
    hub: HubContext, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contacts, "_SECONDS_PER_SOURCE", 0.2)
    gone = asyncio.Event()

    async def hang() -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    known.answers["telegram_list_contacts"] = lambda arguments: hang()
    result = await find(hub, "ann smith")
    assert result.structured is not None
    assert result.structured["not_asked"] == [{"server": "telegram", "why": "It did not answer in time."}]
    await asyncio.wait_for(gone.wait(), seconds(5))


@pytest.mark.parametrize("rows", [[None, 5, "x"], {"a": 1}, [{"name": 5, "email": ["x"]}], None])
async def test_answers_of_an_odd_shape_are_no_people(hub: HubContext, known: Known, rows: object) -> None:
    for tool, name in (("memory_list_contacts", "contacts"), ("gmail_list_emails", "emails")):
        odd = ToolResult(text="", structured={name: rows})
        known.answers[tool] = lambda arguments, odd=odd: odd
    assert [person["sources"] for person in people(await find(hub, "bob stone"))] == [["telegram"]]


async def test_nobody_is_a_clear_answer_and_a_limit_holds(hub: HubContext, known: Known) -> None:
    assert (await find(hub, "nobody")).text == "Nobody was found."
    limited = await find(hub, "ann", limit=1)
    assert len(people(limited)) == 1
    assert "[2 more]" in limited.text


async def test_without_any_server_nobody_is_asked(hub: HubContext) -> None:
    result = await find(hub, "ann")
    assert result.structured == {"contacts": [], "total": 0, "asked": [], "not_asked": []}


def test_two_belong_together_through_a_third() -> None:
    by_mail = Sighting("memory", "A", emails=("a@x.org",))
    by_phone = Sighting("telegram", "B", phones=("0049 151 1234567",))
    both = Sighting("gmail", "C", emails=("A@x.org",), phones=("+491511234567",))
    assert len(merge_sightings([by_mail, by_phone, both])) == 1
    assert len(merge_sightings([by_mail, by_phone])) == 2


def test_a_full_name_joins_only_what_does_not_speak_against_it() -> None:
    one, other = Sighting("memory", "Jo Lee", emails=("jo@x.org",)), Sighting("gmail", "Jo Lee", emails=("jo@y.org",))
    assert len(merge_sightings([one, other])) == 2
    assert len(merge_sightings([one, Sighting("telegram", "jo LEE", username="jo")])) == 1
    assert len(merge_sightings([Sighting("memory", "Jo", emails=("jo@x.org",)), Sighting("telegram", "Jo")])) == 2


def test_headers_of_any_kind_are_read() -> None:
    assert parse_addresses('"Lee, Jo" <jo@x.org>, undisclosed-recipients:;, plain@y.org') == [
        ("Lee, Jo", "jo@x.org"),
        ("", "plain@y.org"),
    ]
    assert parse_addresses("<<<>>>,,,;;;" * 500) == []


def test_the_real_memory_is_asked_over_the_api(shared_hub: HubProcess) -> None:
    contact = {"name": "Grace Hopper", "email": "grace@navy.example", "company": "Navy"}
    made = shared_hub.http.post("/tools/call", json={"name": "memory_create_contact", "arguments": contact})
    made.raise_for_status()
    for query in ("hopper", "NAVY", "grace@navy.example"):
        answer = shared_hub.http.post(
            "/tools/call", json={"name": "find_contact", "arguments": {"query": query}}
        ).json()
        (grace,) = answer["structured"]["contacts"]
        assert (grace["name"], grace["emails"], grace["company"]) == ("Grace Hopper", ["grace@navy.example"], "Navy")
        assert "memory" in answer["structured"]["asked"]
