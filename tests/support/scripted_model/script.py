"""Decides what the scripted model answers: by rule, else by the plan in the conversation itself."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from support.scripted_model.conversation import Conversation


class Call(BaseModel):
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict, description="A string is sent as it is, valid or not")


class Failure(BaseModel):
    status: int
    message: str = "scripted failure"
    retry_after: float | None = None
    code: str | None = Field(default=None, description="Error code instead of the usual one")


class Reply(BaseModel):
    """One answer, or one way to fail."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    think: str = ""
    tool_calls: list[Call] = Field(default_factory=list)
    error: Failure | None = None
    finish: str | None = Field(default=None, description="Finish reason instead of the fitting one")
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    chunks: int = Field(default=3, ge=1, description="Pieces a streamed text is cut into")
    delay: float = Field(default=0, description="Seconds before the answer begins")
    chunk_delay: float = Field(default=0, description="Seconds between the pieces")
    hang: bool = Field(default=False, description="Never answer")
    hang_after: int | None = Field(default=None, description="Stop sending after this many pieces, connection open")
    drop_after: int | None = Field(default=None, description="Break the connection after this many pieces")
    cut_after: int | None = Field(default=None, description="End the stream cleanly, but too early")
    whole: bool = Field(default=False, description="Answer in one piece even when a stream was asked for")
    error_after: int | None = Field(default=None, description="Send `error` inside the stream, after so many pieces")
    no_usage: bool = Field(default=False, description="Count no tokens (OpenAI protocol)")
    cost: float | None = Field(default=None, description="State a price in the usage, as OpenRouter does")
    raw_unicode: bool = Field(default=False, description="Send characters as they are instead of escaped")

    @classmethod
    def failing(cls, status: int, message: str = "scripted failure", retry_after: float | None = None) -> Reply:
        return cls(error=Failure(status=status, message=message, retry_after=retry_after))


class Rule(BaseModel):
    """When all given conditions hold, and the rule is not used up, its reply is given. First rule wins."""

    model_config = ConfigDict(extra="forbid")

    match: str | None = Field(default=None, description="Regex searched in the last user text")
    system: str | None = Field(default=None, description="Regex searched in the system texts")
    results: int | None = Field(default=None, description="Tool results since the last user text")
    model: str | None = Field(default=None, description="Regex for the model's name")
    tools: bool | None = Field(default=None, description="Whether tools are offered")
    schema_name: str | None = Field(default=None, description="Regex for the asked JSON schema's name")
    times: int | None = Field(default=None, description="How often the rule applies at most (state of this server)")
    reply: Reply

    def fits(self, talk: Conversation) -> bool:
        system = "\n".join(turn.text for turn in talk.turns if turn.kind == "system")
        return (
            (self.match is None or re.search(self.match, talk.user_text) is not None)
            and (self.system is None or re.search(self.system, system) is not None)
            and (self.results is None or self.results == len(talk.results))
            and (self.model is None or re.search(self.model, talk.model) is not None)
            and (self.tools is None or self.tools == bool(talk.tools))
            and (self.schema_name is None or re.search(self.schema_name, talk.schema_name) is not None)
        )


class Plan(Reply):
    """What a user text may hold to say how it is to be answered."""

    calls: list[Call | list[Call]] = Field(default_factory=list)
    say: str = "Done."


def plan_text(calls: Iterable[tuple[str, dict[str, Any]]] = (), say: str = "Done.", **options: object) -> str:
    """A user text that makes the scripted model call these tools in turn and then say this."""
    return json.dumps({"calls": [{"name": n, "arguments": a} for n, a in calls], "say": say, **options})


class Script:
    """The rules of one server; safe to change while it runs."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = list(rules)
        self._used: list[int] = [0] * len(self._rules)

    def replace(self, rules: Iterable[Rule]) -> None:
        with self._lock:
            self._rules = list(rules)
            self._used = [0] * len(self._rules)

    def answer(self, talk: Conversation) -> Reply:
        with self._lock:
            for number, rule in enumerate(self._rules):
                if (rule.times is None or self._used[number] < rule.times) and rule.fits(talk):
                    self._used[number] += 1
                    return rule.reply
        return follow_plan(talk)


def find_plan(text: str) -> Plan | None:
    """The first JSON object in a text that has `calls` or `say`."""
    position = text.find("{")
    while position >= 0:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, position)
        except json.JSONDecodeError:
            value = None
        if isinstance(value, dict) and ("calls" in value or "say" in value):
            return Plan.model_validate(value)
        position = text.find("{", position + 1)
    return None


def _current_plan(talk: Conversation) -> tuple[Plan, list[str]] | None:
    """The plan at work and the results it has so far. An assistant's text after a plan ends it."""
    results: list[str] = []
    for turn in reversed(talk.turns):
        if turn.kind == "assistant":
            return None
        if turn.kind == "result":
            results.insert(0, turn.text)
        elif turn.kind == "user" and (plan := find_plan(turn.text)) is not None:
            return plan, results
    return None


def follow_plan(talk: Conversation) -> Reply:
    """The stateless default: the next call of the plan, else its text, else an echo."""
    found = _current_plan(talk)
    if found is None:
        return Reply(text=f"You said: {talk.user_text}")
    plan, results = found
    options = plan.model_dump(exclude={"calls", "say", "text", "tool_calls"})
    if talk.tools and talk.tool_choice != "none":
        done = 0
        for step in plan.calls:
            if done == len(results):
                return Reply(tool_calls=step if isinstance(step, list) else [step], **options)
            done += len(step) if isinstance(step, list) else 1
    return Reply(text=plan.say.replace("{result}", results[-1] if results else ""), **options)
