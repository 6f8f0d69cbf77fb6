"""A thinker with all built-in tools, a scripted model that records what it is sent, and a conversation to have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from annabelle.core.contract import AgentProfile, TurnBrief, TurnLimits
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.tools import ToolResult, ToolSpec
from annabelle.skills.playbook_folder import seed_playbooks
from prompt_talk import LISTING, QUESTION, Exchange, memory
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker

_SUMMED_UP = "They spoke of mail, the calendar, the garden and small questions of the day. "


@dataclass(frozen=True)
class Furniture:
    """How much memory and summaries have to say."""

    profile_fields: int
    summary_sentences: int


USUAL = Furniture(profile_fields=8, summary_sentences=10)
FULL = Furniture(profile_fields=40, summary_sentences=40)
"""More than the layers have room for, so that each is as large as it can be."""


class House:
    """Ask it, and look at what the model was sent."""

    def __init__(self, thinker: Thinker, hub: FakeHub, model: ScriptedServer, furniture: Furniture) -> None:
        self._thinker, self._hub, self._model = thinker, hub, model
        self._summary = _SUMMED_UP * furniture.summary_sentences
        hub.handlers["memory_retrieve_memories"] = lambda _: memory(furniture.profile_fields)

    def say(self, said: Exchange) -> dict[str, Any]:
        """One turn; the first request of it, as it went over the wire."""
        self._hub.handlers[said.tool] = lambda _: ToolResult(text=said.result, trust="trusted")
        call = Call(name=said.tool, arguments=said.arguments or {})
        asked = re.escape(said.text)
        rules = [Rule(match=asked, results=0, reply=Reply(tool_calls=[call]))] if said.tool else []
        return self.turn(said.text, [*rules, Rule(match=asked, reply=Reply(text=said.answer))])[0]

    def ask(self) -> dict[str, Any]:
        """The question everything is measured by."""
        listing = Exchange(QUESTION, "You have five files, among them notes.md.", "filer_list_files", {}, LISTING)
        return self.say(listing)

    def work(self, cycles: int, file: str) -> list[dict[str, Any]]:
        """A task with a big file on its desk; every request of it."""
        self._hub.handlers["filer_read_file"] = lambda given: ToolResult(
            text=file if given.get("path") == "big.md" else f"Part {given} " + "of the book. " * 60, trust="trusted"
        )
        opening = Call(name="update_workspace", arguments={"open_files": ["big.md"]})
        calls = [opening, *(Call(name="filer_read_file", arguments={"path": f"p{n}.md"}) for n in range(1, cycles))]
        rules = [
            Rule(match="Read the parts", results=n, reply=Reply(tool_calls=[call])) for n, call in enumerate(calls)
        ]
        limits = TurnLimits(max_steps=cycles + 2, same_tool_in_a_row=50, same_tool_with_news=50)
        return self.turn(
            "Read the parts of the book one by one and compare each with the big file.",
            [*rules, Rule(match="Read the parts", reply=Reply(text="They agree."))],
            thread_id="thr_task", conversational=False, limits=limits,
        )  # fmt: skip

    def turn(self, text: str, rules: list[Rule], **fields: Any) -> list[dict[str, Any]]:
        self._model.clear()
        self._model.rules(*rules, Rule(reply=Reply(text=self._summary)))
        brief = TurnBrief(
            message_id=new_id("msg"), trace_id=new_id("tr"), channel="cli", chat_id="chat", sender_id="owner",
            text=text, **{"thread_id": "thr_talk", **fields},
        )  # fmt: skip
        state = self._thinker.ask(brief)
        if state.result is None or not state.result.success:
            raise SystemExit(f"a turn went wrong: {state}")
        bodies = [cast("dict[str, Any]", request.body) for request in self._model.requests]
        return [body for body in bodies if "tools" in body]  # a summary is asked for without any


@contextmanager
def house(folder: Path, furniture: Furniture, tools: Sequence[ToolSpec]) -> Iterator[House]:
    """A thinker process with everything it needs, in a home of its own."""
    home = Home(folder / "home").prepare()
    seed_playbooks(home.playbooks, ())
    with FakeHub() as hub, ScriptedServer() as model, Thinker(home.root, folder / "stderr.log") as thinker:
        hub.tools = list(tools)
        settings = {
            "THINKER_LLM_PROVIDER": "compatible",
            "COMPATIBLE_BASE_URL": model.openai_url,
            "COMPATIBLE_MODEL": "scripted",
            "LLM_SPACING_SECONDS": "0",
            "MESSAGE_TEMPLATES": "false",  # else the question measured here needs no model
            "THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS": "0",
        }
        yield House(thinker.adopt(hub.url, settings, AgentProfile(agent_id="annabelle")), hub, model, furniture)


def weight(part: object) -> float:
    """Tokens, as bytes of what goes over the wire by four."""
    return len(json.dumps(part, ensure_ascii=False).encode()) / 4
