"""The terminal's side of the API: errors come back as what they were, the end of a turn is always found."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import httpx2 as httpx
import pytest

from annabelle.cli import conversation
from annabelle.cli.conversation import Conversation, ConversationAnswer
from annabelle.cli.hub_client import CliHubClient, HubAddress, ServerEvent, find_hub
from annabelle.core import errors
from annabelle.core.errors import AnnabelleError, HubUnreachable, Unavailable, error_from
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.core.turn_view import ReplySent, TurnViewEnded, TurnViewFailed

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AnnabelleError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_the_hub_leaves_with_the_exit_code_of_its_kind(kind: type[AnnabelleError]):
    back = error_from(kind("One sentence.", hint="Do this.").body())
    assert back.code == kind.code
    assert back.exit_code == kind.exit_code
    assert (back.message, back.hint) == ("One sentence.", "Do this.")


def test_an_unknown_error_is_still_a_sentence():
    assert error_from(errors.ErrorBody(code="from_the_future", message="Odd.")).message == "Odd."


def client(answer: httpx.Response | Exception) -> CliHubClient:
    def handle(_request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = CliHubClient(HubAddress("http://127.0.0.1:9", "t"))
    made._http = httpx.AsyncClient(base_url="http://127.0.0.1:9", transport=httpx.MockTransport(handle))
    return made


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (httpx.ConnectError("no"), HubUnreachable, "not running"),
        (httpx.ReadTimeout("slow"), HubUnreachable, "in time"),
        (httpx.ReadError("cut"), HubUnreachable, "broke"),
        (httpx.Response(502, text="<html>proxy</html>"), Unavailable, "Something other than Annabelle"),
        (httpx.Response(404, json={"detail": "x"}), Unavailable, "Something other than Annabelle"),
    ],
)
async def test_a_hub_that_can_not_be_talked_to_is_a_sentence(
    answer: httpx.Response | Exception, kind: type[AnnabelleError], words: str
):
    async with client(answer) as hub:
        with pytest.raises(kind, match=words):
            await hub.get("/status")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_corrupt_note_of_the_hub_is_no_hub(home: Home, content: str):
    home.hub_file.write_text(content)
    with pytest.raises(HubUnreachable, match="not running"):
        find_hub(home)


def test_a_missing_token_is_named(home: Home):
    home.hub_file.write_text(json.dumps({"pid": 1, "url": "http://127.0.0.1:9"}))
    with pytest.raises(HubUnreachable, match=r"annabelle\.token"):
        find_hub(home)


class Silent(CliHubClient):
    """A hub whose event stream says nothing, so that only the stored message tells of the end."""

    def __init__(self, outcome: JsonObject) -> None:
        super().__init__(HubAddress("http://127.0.0.1:9", "t"))
        self._outcome = outcome

    async def post(self, path: str, body: JsonObject, timeout: float = 1) -> JsonObject:
        return {"messageId": "msg_1", "threadId": "thr_1", "state": "queued", "lastEventId": 0}

    async def wait_for_message(self, message_id: str) -> JsonObject:
        return self._outcome

    async def events(self, thread_id: str, last_id: str | None = None) -> AsyncGenerator[ServerEvent]:
        yield ServerEvent("not JSON at all", id="1")


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "LAST_WORDS_SECONDS", 0.05)


async def test_the_stored_reply_is_told_when_the_stream_stays_silent():
    async with Silent({"state": "done", "replies": [{"text": "Hello."}, {"text": "Again."}]}) as hub:
        told = [change async for change in Conversation(hub, "chat").say("hi")]
        assert told == [ReplySent("Hello."), ReplySent("Again."), TurnViewEnded()]
        assert await Conversation(hub, "chat").answer("hi") == ConversationAnswer("Hello.\nAgain.")


@pytest.mark.req("POL-03")
async def test_the_questions_of_a_stored_reply_are_told_when_the_stream_stays_silent():
    reply = {"text": "May I?", "metadata": {"approvals": ["apr_1", "apr_2"]}}
    async with Silent({"state": "done", "replies": [reply]}) as hub:
        assert await Conversation(hub, "chat").answer("hi") == ConversationAnswer("May I?", ("apr_1", "apr_2"))


async def test_the_stored_error_is_told_when_the_stream_stays_silent():
    error = {"code": "provider_refused", "message": "The key is wrong.", "hint": "Set it."}
    async with Silent({"state": "failed", "replies": [{"text": "x", "metadata": {"error": error}}]}) as hub:
        (failed,) = [change async for change in Conversation(hub, "chat").say("hi")]
        assert isinstance(failed, TurnViewFailed)
        assert failed.error.message == "The key is wrong."
        with pytest.raises(errors.ProviderRefused):
            await Conversation(hub, "chat").answer("hi")
