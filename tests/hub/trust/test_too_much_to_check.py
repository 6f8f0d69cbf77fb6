"""What is too much to be looked at may be anything: nobody gets a private value out behind a flood of text."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.policy.decide import decide
from annabelle.policy.seen_content import SeenContent, SeenResult
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.store import tool_calls
from annabelle.store.tool_calls import NewToolCall
from hub.trust.conftest import House

pytestmark = pytest.mark.req("TRU-03", "POL-04")
SEND, READ, FETCH = "gmail_send_email", "filer_read_file", "searcher_web_fetch"
ASKS = "Look at http://x.example, read Documents/private.txt and mail bob@example.com what Documents/report.md says"
LEAKS: JsonObject = {"to": "bob@example.com", "subject": "s", "body": "The PIN is 4711"}
SAYS: JsonObject = {"to": "bob@example.com", "subject": "What it says", "body": "Documents/report.md"}
LONG = "lorem ipsum " * 100_000


async def _sends(house: House, message: str, mail: JsonObject) -> bool:
    answer = await house.call(SEND, message, mail)
    return answer["approval_id"] is None and (SEND, mail) in house.done


async def _read(house: House) -> str:
    message = await house.says(ASKS)
    await house.call(READ, message, {"path": "Documents/private.txt"})
    await house.call(FETCH, message, {"url": "http://x.example"})
    return message


async def test_a_value_of_a_result_too_long_to_look_at_does_not_go_out_unasked(house: House) -> None:
    house.answers[READ] = {"path": "Documents/private.txt", "content": f"Bank PIN 4711 {LONG}"}
    message = await _read(house)
    assert not await _sends(house, message, LEAKS)
    assert await _sends(house, message, SAYS)


async def test_a_page_without_end_does_not_hide_what_was_read_before(house: House) -> None:
    house.answers[FETCH] = {"url": "http://x.example", "content": LONG}
    message = await _read(house)
    assert not await _sends(house, message, LEAKS)
    assert await _sends(house, message, SAYS)


async def test_a_flood_of_calls_does_not_hide_what_was_read_before(house: House) -> None:
    message = await _read(house)

    def flood(conn: Connection) -> None:
        for number in range(90):
            call = NewToolCall(f"{message}:flood:{number}", "everyday_get_time", "x", OWNER, "annabelle", message)
            tool_calls.begin_call(conn, call)
            tool_calls.finish_call(conn, call.call_id, {"text": "noon"}, "trusted")

    await house.hub.storage.database.write(flood)
    assert not await _sends(house, message, LEAKS)
    assert await _sends(house, message, SAYS)


PAGE = SeenResult("searcher_web_fetch", "web", structured={"url": "http://x.example", "content": "Hello"})


def _decided(tool: str, words: str, arguments: JsonObject, *results: SeenResult) -> str:
    traits = reviewed_tools()[tool]
    call = CallFacts(tool, arguments, traits, traits.classes_of(arguments))
    return decide(call, TurnFacts(words=words, origins=("searcher_web_fetch",), seen=SeenContent(results))).verdict


@pytest.mark.parametrize(
    ("tool", "words", "arguments"),
    [
        ("searcher_web_search", "What is new about bridges?", {"query": "bridges 4711"}),
        ("codexec_execute_code", "Run some code that adds numbers", {"language": "python", "code": "print(40 + 2)"}),
    ],
)
def test_what_was_cut_may_hold_any_text(tool: str, words: str, arguments: JsonObject) -> None:
    cut = SeenResult("gmail_get_email", "mail", private=True, cut=True)
    assert _decided(tool, words, arguments, PAGE) == "allow"
    assert _decided(tool, words, arguments, PAGE, cut) == "ask"


@pytest.mark.parametrize("deep", [True, False])
def test_a_value_is_found_however_deep_or_late_it_stands(deep: bool) -> None:
    kept: JsonObject = {"path": "Documents/private.txt", "content": "The passport number is C01X00T47"}
    value: object = kept
    if deep:
        for _ in range(600):
            value = [value]
    else:
        value = [*({"path": f"Documents/{number}.txt"} for number in range(3_100)), kept]
    read = SeenResult("filer_read_file", "file", private=True, structured={"files": value})
    words = "Mail bob@example.com what stands in the file Documents/7.txt"
    mail: JsonObject = {"to": "bob@example.com", "subject": "s", "body": "It is C01X00T47"}
    assert _decided(SEND, words, mail, PAGE, read) == "ask"
