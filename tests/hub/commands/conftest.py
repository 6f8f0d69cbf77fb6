"""A hub whose thinker the test plays, a memory, and somebody who says commands to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.security.users_file import add_user, set_admin
from annabelle.toolbox.catalogue import NativeTool
from hub.approvals.house import READS, House, a_house, client
from support.timing import seconds

FACTS = [
    {"id": 2, "fact": "Ada's birthday is in December.", "category": "personal"},
    {"id": 1, "fact": "Likes green tea.", "category": "preference"},
]


@dataclass
class Speaker:
    """A person at one chat."""

    house: House
    http: httpx.AsyncClient
    chat: str = "main"

    async def post(self, text: str, **more: object) -> JsonObject:
        body = {"text": text, "chatId": self.chat, **more}
        answer = await self.http.post("/message", params={"wait": seconds(20)}, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def say(self, text: str, **more: object) -> str:
        return str((await self.reply(text, **more))["text"])

    async def reply(self, text: str, **more: object) -> JsonObject:
        reply = (await self.post(text, **more))["reply"]
        assert isinstance(reply, dict)
        return reply

    @property
    def asked(self) -> list[str]:
        """What reached the model."""
        return [brief.text for brief in self.house.thinker.briefs]


def add_memory(house: House) -> None:
    async def list_facts(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        return ToolResult(text="", structured={"facts": FACTS, "next_before_id": None}, trust="untrusted")

    any_arguments: JsonObject = {"type": "object"}
    house.hub.toolbox.add_native([NativeTool("memory_list_facts", "Lists facts.", any_arguments, list_facts, READS)])


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    async with a_house(home) as house:
        add_memory(house)
        yield house


@pytest.fixture
def owner(house: House) -> Speaker:
    return Speaker(house, house.owner)


async def let_in(house: House, name: str, *, admin: bool = False) -> Speaker:
    """Somebody else who may talk."""
    file = house.hub.base.home.users_file
    token = add_user(file, name)
    set_admin(file, name, admin=admin)
    house.hub.security.users.reload_if_changed()
    return Speaker(house, client(house.hub, token))
