"""The packaged mind: the packaged model with an adapter that was trained on the phrases of the built-in tools (FST-01).

It reads a short prompt of its own: the signatures of the few tools a message may ask for, the last exchange, and the
message. It writes one call or a few words for each part of the message, and what tools return is the answer. It never
makes a call that a result asks for. `training/README.md` says how the adapter is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.language.tool_odds import NO_TOOL, Step, packaged_tool_odds
from annabelle.llm.backend import Backend, BackendAnswer, BackendEvent, ModelQuestion
from annabelle.llm.embedded.reply import CALL, GivenValues, has_said_enough, is_said, read_reply
from annabelle.llm.token_estimate import estimate_tokens
from annabelle.llm.types import TextDelta, result_words

SYSTEM: Final = "You are Annabelle, a personal assistant. Answer in words, or use one tool.\nTools:\n"
_TALK: Final = "You are a helpful AI assistant named Annabelle."
"""As the model was trained before the adapter."""
_MOST_TOOLS, _ENOUGH = 9, 0.97
_CLEAR = 0.95
"""From these odds on one tool is clearly asked for."""
_LONGEST_MESSAGE, _LONGEST_CALL, _LONGEST_ANSWER = 2_000, 300, 400
_MOST_TOKENS = 200
_MARKUP: Final = re.compile(r"<\|[^|<>]*\|>")

ENGLISH_ONLY: Final = (
    "The model that comes with Annabelle understands English only, and not every word of it. "
    "For more, run `annabelle init` and choose a larger model or a service."
)
ONLY_TALKS: Final = (
    "I can only talk: the model that answers here cannot use tools. Run `annabelle init` and choose another one; if "
    "you did not ask for this, a file of Annabelle is missing or damaged, and installing it again helps."
)
TOO_LONG: Final = (
    "That is more than the model that comes with Annabelle can read at once. Say it in fewer words, or run "
    "`annabelle init` and choose a larger model or a service."
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the mind reads of a conversation: the message, the exchange before it, and what tools returned since."""

    message: str
    before: tuple[str, str] | None
    call: ToolCallPart | None
    """The last one of the exchange before."""
    results: tuple[str, ...]

    @classmethod
    def read(cls, messages: Sequence[ModelMessage]) -> Exchange:
        turns: list[_Turn] = []
        for message in messages:
            said = _user_text(message)
            if said is not None:
                turns.append(_Turn(said, [], [], []))
            elif turns and isinstance(message, ModelRequest):
                turns[-1].results.extend(map(result_words, _tool_results(message)))
            elif turns:
                turns[-1].add(cast("ModelResponse", message))
        if not turns:
            return cls("", None, None, ())
        last, earlier = turns[-1], turns[-2] if len(turns) > 1 else None
        before = None if earlier is None else (earlier.user, "\n".join(earlier.texts or earlier.results))
        call = earlier.calls[-1] if earlier is not None and earlier.calls else None
        return cls(last.user, before, call, tuple(last.results))

    @property
    def previous_tool(self) -> str:
        return "" if self.call is None else self.call.tool_name

    def repeats(self, reply: TextPart | ToolCallPart, text: str) -> bool:
        """Whether a call takes a value of the earlier one over that this message does not say."""
        if self.call is None or not isinstance(reply, ToolCallPart) or reply.tool_name != self.call.tool_name:
            return False
        earlier = self.call.args_as_dict()
        return any(
            earlier.get(name) == value and not is_said(value, text, {}, GivenValues())
            for name, value in reply.args_as_dict().items()
        )

    @property
    def said(self) -> str:
        called = () if self.call is None else map(str, self.call.args_as_dict().values())
        return "\n".join((*(self.before or ()), *called, self.message))


@dataclass(frozen=True, slots=True)
class _Turn:
    user: str
    texts: list[str]
    calls: list[ToolCallPart]
    results: list[str]

    def add(self, response: ModelResponse) -> None:
        for part in response.parts:
            if isinstance(part, ToolCallPart):
                self.calls.append(part)
            elif isinstance(part, TextPart) and part.content:
                self.texts.append(part.content)


def _user_text(message: ModelMessage) -> str | None:
    """A person's words; in front of them stands what the turn tells a larger model."""
    if not isinstance(message, ModelRequest):
        return None
    parts = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    return str(parts[-1]) if parts else None


def _tool_results(message: ModelRequest) -> list[ToolReturnPart]:
    return [part for part in message.parts if isinstance(part, ToolReturnPart)]


class PackagedMind:
    """Asks the packaged model in the way it was trained: `writer`, which only talks unless it is `trained` with the
    adapter. For all but conversation, `plain` is the model as it comes."""

    def __init__(self, writer: Backend, plain: Backend, *, trained: bool = True) -> None:
        self._writer, self._plain, self._trained = writer, plain, trained

    async def close(self) -> None:
        await self._writer.close()
        await self._plain.close()

    async def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]:
        if ask.purpose != "chat" or ask.answer_schema is not None:
            async with aclosing(self._plain.stream(ask)) as events:
                async for event in events:
                    yield event
            return
        usage, parts = RequestUsage(), list[ModelResponsePart]()
        async with aclosing(self._reply(ask, usage)) as replies:
            async for reply in replies:
                if any(_same_part(reply, part) for part in parts):
                    continue
                parts.append(reply)
                if isinstance(reply, TextPart):
                    yield TextDelta(reply.content)
        yield _answer(ask, parts, usage)

    async def _reply(self, ask: ModelQuestion, usage: RequestUsage) -> AsyncGenerator[TextPart | ToolCallPart]:
        talk, odds = Exchange.read(ask.messages), packaged_tool_odds()
        if talk.results:
            yield TextPart("\n\n".join(talk.results))
        elif len(talk.message) > _LONGEST_MESSAGE:
            yield TextPart(TOO_LONG)
        elif not self._trained or odds is None or ask.tool_choice == "none":
            system = SYSTEM if self._trained else _TALK
            said = read_reply(await self._write(_prompt(ask, talk, system, talk.message), usage), [], talk.said)
            if isinstance(said, TextPart) and said.provider_details:
                yield replace(said, content=f"{said.content}\n\n{ONLY_TALKS}")
            else:
                yield TextPart(ONLY_TALKS)
        else:
            for step in odds.steps(talk.message, talk.previous_tool):
                if not step.odds:
                    yield TextPart(ENGLISH_ONLY)
                    continue
                tools = offered_tools(step, ask.tools)
                # Where it is clear what is asked for, the call is begun for it, and it writes the arguments.
                begun = tools[0].name if tools and step.odds[tools[0].name] >= _CLEAR else ""
                system = SYSTEM + "\n".join(map(format_signature, tools))
                written = begun + await self._write(_prompt(ask, talk, system, step.text, begun), usage)
                reply = read_reply(written, tools, talk.said)
                if talk.repeats(reply, step.text):
                    alone = _prompt(ask, replace(talk, before=None), system, step.text, begun)
                    other = read_reply(begun + await self._write(alone, usage), tools, step.text)
                    reply = other if _is_complete(other, reply, step.text) else reply
                yield reply

    async def _write(self, question: ModelQuestion, usage: RequestUsage) -> str:
        """What the model writes, which is stopped where it talks on."""
        written, tokens = "", 0
        async with aclosing(self._writer.stream(question)) as events:
            async for event in events:
                if isinstance(event, BackendAnswer):
                    usage.incr(event.response.usage)
                    return "".join(part.content for part in event.response.parts if isinstance(part, TextPart))
                if isinstance(event, TextDelta):
                    written, tokens = written + event.text, tokens + 1  # the engine sends each token by itself
                    if has_said_enough(written):
                        usage.incr(RequestUsage(input_tokens=estimate_tokens(question.messages), output_tokens=tokens))
                        break
        return written


def _is_complete(alone: TextPart | ToolCallPart, reply: TextPart | ToolCallPart, text: str) -> bool:
    """Whether a message read by itself says all that it was given with what came before, each in words of its own."""
    if not isinstance(alone, ToolCallPart) or not isinstance(reply, ToolCallPart):
        return False
    arguments = alone.args_as_dict()
    if arguments.keys() != reply.args_as_dict().keys() or len(set(map(str, arguments.values()))) < len(arguments):
        return False
    return all(is_said(value, text, {}, GivenValues()) for value in arguments.values())


def offered_tools(step: Step, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """As many as the odds need, the likeliest first: one alone where it is clear what is asked for."""
    known = {tool.name: tool for tool in tools}
    offered, mass = list[ToolSpec](), step.odds.get(NO_TOOL, 0.0)
    for name in sorted(step.odds, key=step.odds.__getitem__, reverse=True):
        if len(offered) >= _MOST_TOOLS or (offered and mass >= _ENOUGH):
            break
        if name in known:
            offered.append(known[name])
            mass += step.odds[name]
    return offered


def _prompt(ask: ModelQuestion, talk: Exchange, system: str, text: str, begun: str = "") -> ModelQuestion:
    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(system)])]
    if talk.before is not None:
        user, answer = talk.before
        call = None if talk.call is None else write_call(talk.call.tool_name, talk.call.args_as_dict())
        messages += [_said(user), ModelResponse(parts=[TextPart(_plain(write_earlier(call, answer)))])]
    messages.append(_said(text))
    if begun:
        messages.append(ModelResponse(parts=[TextPart(begun)]))
    return replace(ask, messages=messages, tools=[], tool_choice="auto", temperature=0.0, max_tokens=_MOST_TOKENS)


def write_call(tool: str, arguments: JsonObject) -> str:
    return f"{tool} {json.dumps(arguments, ensure_ascii=False)}"


def write_earlier(call: str | None, answer: str) -> str:
    """An earlier call and its answer, so that a message can refer to either; a long one is cut. What looks like a call
    in an answer is none."""
    called = [call[:_LONGEST_CALL]] if call else []
    lines = (line for line in answer.splitlines() if not CALL.match(_plain(line).strip()))
    # Of a long answer only as many lines as can be shown are looked at.
    return "\n".join([*called, "\n".join(islice(lines, _LONGEST_ANSWER + 1))[:_LONGEST_ANSWER]])


def _said(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(_plain(text)[:_LONGEST_MESSAGE])])


def _plain(text: str) -> str:
    """Without the marks that part the messages of a prompt."""
    return _MARKUP.sub("", text).replace("<|", "<")


def format_signature(tool: ToolSpec) -> str:
    """`filer_read_file(path, offset?)`"""
    schema = tool.input_schema
    required = cast("list[str]", schema.get("required") or [])
    names = cast("JsonObject", schema.get("properties") or {})
    return f"{tool.name}({', '.join(name if name in required else name + '?' for name in names)})"


def _same_part(first: ModelResponsePart, second: ModelResponsePart) -> bool:
    if isinstance(first, ToolCallPart) and isinstance(second, ToolCallPart):
        return (first.tool_name, first.args) == (second.tool_name, second.args)
    return isinstance(first, TextPart) and isinstance(second, TextPart) and first.content == second.content


def _answer(ask: ModelQuestion, parts: Sequence[ModelResponsePart], usage: RequestUsage) -> BackendAnswer:
    texts = [part for part in parts if not isinstance(part, ToolCallPart)]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    response = ModelResponse(parts=[*texts, *calls], usage=usage, model_name=ask.model)
    return BackendAnswer(replace(response, finish_reason="tool_call" if calls else "stop"))
