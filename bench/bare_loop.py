"""The loop with nothing written down: the same model service and the same tool API, in one process, no durable step."""

from __future__ import annotations

from contextlib import aclosing

import httpx2 as httpx
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest as Said,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.contract import AgentProfile, ModelCall, Reservation, Reserve, ToolList
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.settings import load_settings
from annabelle.llm.service import ModelService
from annabelle.llm.types import Completed, ModelRequest


class NoLedger:
    """Allows everything and remembers nothing."""

    async def reserve(self, request: Reserve) -> Reservation:
        return Reservation(call_id=request.call_id, allowed=True)

    async def settle(self, call: ModelCall) -> None:
        pass


class BareLoop:
    """Ask, call the tool, ask again."""

    def __init__(self, http: httpx.AsyncClient, tools: ToolList) -> None:
        home = Home.from_environment()
        self._http, self._tools = http, tools
        self._models = ModelService(load_settings(home), home, NoLedger(), AgentProfile(agent_id="bare"))

    @classmethod
    async def open(cls, url: str, token: str) -> BareLoop:
        http = httpx.AsyncClient(base_url=url, headers={"X-Annabelle-Token": token}, trust_env=False)
        return cls(http, ToolList.model_validate_json((await http.get("/tools/list")).content))

    async def turn(self, text: str) -> str:
        messages: list[ModelMessage] = [Said(parts=[UserPromptPart(content=text)])]
        while True:
            response = await self._ask(messages)
            messages.append(response)
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if not calls:
                return response.text or ""
            messages.append(Said(parts=[await self._call(call) for call in calls]))

    async def _ask(self, messages: list[ModelMessage]) -> ModelResponse:
        request = ModelRequest(call_id=new_id("mc"), messages=messages, tools=list(self._tools.tools))
        async with aclosing(self._models.request(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    return event.response
        raise SystemExit("the model did not answer")

    async def _call(self, call: ToolCallPart) -> ToolReturnPart:
        body = {"name": call.tool_name, "arguments": call.args_as_dict()}
        answer = await self._http.post("/tools/call", json=body)
        return ToolReturnPart(tool_name=call.tool_name, content=answer.json()["text"], tool_call_id=call.tool_call_id)

    async def close(self) -> None:
        await self._models.close()
        await self._http.aclose()
