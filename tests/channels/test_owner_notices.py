"""What the owner is told in their chat app without having asked."""

from __future__ import annotations

import asyncio
import socket

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from channels.conftest import Chatting
from support.timing import seconds


def listen(port: int = 0) -> socket.socket:
    """A model server, as far as somebody sees who only connects."""
    return socket.create_server(("127.0.0.1", port), reuse_port=True)


@pytest.mark.req("CHN-01")
def test_a_model_server_of_this_machine_that_goes_away_and_comes_back_is_told_once_each(chatting: Chatting) -> None:
    chatting.pair()
    server = listen()
    port = server.getsockname()[1]
    settings = {"COMPATIBLE_BASE_URL": f"http://127.0.0.1:{port}/v1", "MODEL_SERVER_CHECK_SECONDS": "0.2"}
    chatting.hub.stop()
    chatting.hub.environment |= settings
    chatting.hub.start()
    chatting.wait_for_text("is ready")
    server.close()
    chatting.wait_for_text("does not answer any more")
    with listen(port):
        chatting.wait_for_text("answers again")
        assert not any("does not answer" in one["text"] for one in chatting.hub.http.get("/status").json()["notices"])
    told = [text for text in chatting.bot.texts() if f"127.0.0.1:{port}" in text]
    assert len(told) == 2


@pytest.mark.req("API-07", "POL-05")
async def test_what_another_agent_asks_for_is_asked_and_answered_in_the_chat_app(chatting: Chatting) -> None:
    await asyncio.to_thread(chatting.pair)
    file = chatting.hub.home.workspace / "notes.md"
    file.write_text("x")
    token = chatting.hub.http.post("/tokens", json={"name": "editor", "kind": "agent"}).json()["secret"]
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=seconds(60), trust_env=False) as http,
        Client(streamable_http_client(f"{chatting.hub.url}/mcp", http_client=http)) as client,
    ):
        calling = asyncio.create_task(client.call_tool("filer_delete_file", {"path": file.name}))
        question = await asyncio.to_thread(chatting.wait_for_text, "Another agent (editor) asks for this")
        assert file.exists()
        chatting.bot.press(question, question.buttons[0][0])
        assert (await calling).is_error is False
    assert not file.exists()
