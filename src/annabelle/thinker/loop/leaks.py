"""Finds tool calls that a model wrote into its answer instead of making them (LOOP-04).

Some models leak their own call syntax into the text. Such a call is made after all, through the same path as any
other; but only for a tool that was offered, and never when the text is an example that the person asked for or that
the answer explains. What is left of such syntax is taken out of what the person reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, cast

from annabelle.thinker.loop.call_syntax import (
    Known,
    LeakedCall,
    call_of,
    calls_in_json,
    calls_in_text,
    python_call,
)

NOTHING_LEFT: Final = "I tried to use a tool in a way that can not be read, so nothing was done. Please ask again."

_MOST_CANDIDATES: Final = 32
_TAGGED: Final = re.compile(
    r"<(tool_call|function_call|tool_use)>(?P<body>.*?)(?:</\1>|\Z)"
    r"|<(?:function|invoke|tool)(?:=|\s+name=[\"']?)(?P<name>[\w.-]+)[\"']?\s*/?>(?P<inner>.*?)(?:</(?:function|invoke|tool)>|\Z)"
    r"|<\|(?:python_tag|tool_call|tool_calls_begin|tool_call_begin)\|>(?P<rest>.*?)(?:<\|[a-z_]+\|>|\Z)"
    r"|\[TOOL_CALLS\](?P<list>.*?)(?:\n\n|\Z)",
    re.DOTALL,
)
_FENCED: Final = re.compile(
    r"^[ \t]*```[ \t]*+(?P<kind>[\w-]*+)[ \t]*+\n(?P<body>.*?)```[ \t]*$", re.DOTALL | re.MULTILINE
)
_CALL_FENCES: Final = frozenset({"", "json", "tool_code", "tool_call", "tool", "function", "function_call", "python"})
_OBJECT: Final = re.compile(r"\{\s*\"(?:name|tool|tool_name|function_name|function|recipient_name|type|id)\"\s*:")
_FENCE_SIGNS: Final = re.compile(r"\A```[\w-]*|```\Z")
_ESCAPES: Final = re.compile(r"\\[ntr]?")
_THOUGHTS: Final = re.compile(r"<(think|thinking)>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_WRAPPING: Final = re.compile(r"</?(?:function_calls|tool_calls)>")
_SPECIAL: Final = re.compile(r"<\|[a-z_]{2,40}\|>|</(?:tool_call|function_call|tool_use|function|invoke)>")
_DANGLING: Final = re.compile(r"(?:```[ \t]*[\w-]{0,20}|</?(?:function_calls|tool_calls)>|[\[,])\Z")

_ASKS_FOR_TEXT: Final = re.compile(
    r"\b(?:json|code|example|examples|sample|snippet|syntax|schema|payload|template|format|python|script|"
    r"beispiel|exemple|ejemplo|przyk[lł]ad)\b|\bhow (?:do|does|can|would|could|should|to)\b|\bwhat (?:would|does)\b",
    re.IGNORECASE,
)
_ASKS_FOR_TAGS: Final = re.compile(
    r"<(?:tool_call|function|think|invoke|\|)|\btags?\b|\bxml\b|\bsyntax\b", re.IGNORECASE
)
_EXPLAINS: Final = re.compile(
    r"\b(?:for example|e\.g\.|example|such as|like this|looks? like|would look|you (?:can|could|would|might|may)|"
    r"one (?:can|could|would)|would (?:be|call)|could (?:be|call)|syntax|format|instead of|zum beispiel|par exemple|"
    r"por ejemplo|na przyk[lł]ad)\b",
    re.IGNORECASE,
)
_EXPLAINED: Final = re.compile(
    r"^\W*(?:this|that|the above|where|which|here)\b.{0,40}\b(?:would|calls?|is an?|means|shows)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The answer without what leaked into it, and the calls that did."""

    text: str
    calls: tuple[LeakedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _Region:
    start: int
    end: int
    calls: list[LeakedCall]
    certain: bool


def recover(text: str, known: Known, asked: str, read: Sequence[str] = ()) -> Recovered:
    """Look for leaked calls of the `known` tools. `asked` is what the person wrote, `read` what tools returned: a call
    that stands there is quoted. A plain answer comes back as is."""
    if not any(mark in text for mark in ("<", "{", "(", "[TOOL_CALLS]")):
        return Recovered(text)
    bare = _without_thoughts(text, asked)
    found = [one for one in _regions(bare, known) if one.calls and not _is_example(one, bare, asked)]
    regions = [one for one in found if not _is_quoted(bare[one.start : one.end], read)]
    if regions:
        first = min(region.start for region in regions)
        calls = [call for region in sorted(regions, key=lambda one: one.start) for call in region.calls]
        # What follows a call in the same breath can only be a guess at its result.
        return Recovered(_led_in(_stripped(bare[:first], asked)), tuple(_each_once(calls)))
    cleaned = _stripped(bare, asked)
    return Recovered(cleaned if cleaned.strip() or not text.strip() else NOTHING_LEFT)


def _regions(text: str, known: Known) -> list[_Region]:
    """Everything that may be a call, the certain kinds first; a later find inside an earlier one is the same."""
    found: list[_Region] = []
    for match in islice(_TAGGED.finditer(text), _MOST_CANDIDATES):
        found.append(_Region(match.start(), match.end(), _tagged_calls(match, known), certain=True))
    fences = list(islice(_FENCED.finditer(text), _MOST_CANDIDATES))
    for match in fences:
        if match["kind"].lower() in _CALL_FENCES and not _within(match.start(), found):
            found.append(_Region(match.start(), match.end(), calls_in_text(match["body"], known), certain=False))
    for match in islice(_OBJECT.finditer(text), _MOST_CANDIDATES):
        fenced = any(fence.start() <= match.start() < fence.end() for fence in fences)
        if not fenced and not _within(match.start(), found):
            value, end = _object_at(text, match.start())
            found.append(_Region(match.start(), end, calls_in_json(value, known), certain=False))
    return [*found, *_lines(text, known, found)]


def _tagged_calls(match: re.Match[str], known: Known) -> list[LeakedCall]:
    if match["name"] is not None:
        call = call_of(match["name"], match["inner"] or "", known)
        return [] if call is None else [call]
    body = next((match[group] for group in ("body", "rest", "list") if match[group] is not None), "")
    inner = _TAGGED.search(body)
    if inner is not None and inner["name"] is not None:
        return _tagged_calls(inner, known)
    return calls_in_text(body, known)


def _lines(text: str, known: Known, found: list[_Region]) -> list[_Region]:
    """Python calls on a line of their own, at the start or the end of the answer; in between they illustrate."""
    lines = [match for match in re.finditer(r"^.*\S.*$", text, re.MULTILINE) if not _within(match.start(), found)]
    edges = {match.start(): match for match in (*lines[:1], *lines[-1:])}
    calls = ((match, python_call(match[0], known)) for match in edges.values())
    return [_Region(match.start(), match.end(), [call], certain=False) for match, call in calls if call is not None]


def _object_at(text: str, start: int) -> tuple[object, int]:
    try:
        value, end = cast("tuple[object, int]", json.JSONDecoder().raw_decode(text, start))
    except (ValueError, RecursionError):
        return None, start + 1
    return value, end


def _is_example(region: _Region, text: str, asked: str) -> bool:
    """Whether the person is meant to read this call rather than to have it made."""
    written = text[region.start : region.end].strip()
    if _squeezed(written) in _squeezed(asked) or any(
        _squeezed(_body(call)) in _squeezed(asked) for call in region.calls
    ):
        return True
    before = text[: region.start].rstrip()
    lead = before.rsplit("\n", 1)[-1][-200:]
    if lead.lstrip().startswith(">") or _EXPLAINS.search(lead) or _EXPLAINED.match(text[region.end : region.end + 200]):
        return True
    return not region.certain and _ASKS_FOR_TEXT.search(asked) is not None


def _is_quoted(written: str, read: Sequence[str]) -> bool:
    """Whether a call was read somewhere: what others wrote is told, not done."""
    plain = _unescaped(_FENCE_SIGNS.sub("", written.strip()))
    return any(plain in _unescaped(text) for text in read)


def _unescaped(text: str) -> str:
    """Without blanks, and without what JSON makes of blanks and quotes."""
    return _ESCAPES.sub("", _squeezed(text))


def _body(call: LeakedCall) -> str:
    """What of a call the person may have written: a call without arguments is in every text that names its tool."""
    return json.dumps(call.arguments, ensure_ascii=False) if call.arguments else "\0"


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _stripped(text: str, asked: str) -> str:
    """The text without call syntax that nobody can read, unless it is what the person asks about."""
    if _ASKS_FOR_TAGS.search(asked):
        return text
    return _outside_code(text, lambda piece: _SPECIAL.sub("", _WRAPPING.sub("", _TAGGED.sub(_unless_shown, piece))))


def _led_in(text: str) -> str:
    """What was said before a call, without the opening of the block the call stood in."""
    text = text.strip()
    while (opening := _DANGLING.search(text, max(0, len(text) - 40))) is not None:
        text = text[: opening.start()].rstrip()
    return text


def _unless_shown(match: re.Match[str]) -> str:
    """Tags in quotes are spoken of, not used."""
    before = match.string[: match.start()]
    return match[0] if before.endswith(("`", '"', "'")) else ""


def _without_thoughts(text: str, asked: str) -> str:
    if "think" not in text or "<think" in asked:
        return text
    if "</think>" in text and "<think>" not in text:
        # Some chat templates open the thoughts themselves, so that only their end is in the answer.
        text = text.rpartition("</think>")[2].lstrip()
    return _outside_code(text, lambda piece: _THOUGHTS.sub("", piece))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    pieces: list[str] = []
    position = 0
    for match in _FENCED.finditer(text):
        pieces += [change(text[position : match.start()]), match[0]]
        position = match.end()
    return "".join([*pieces, change(text[position:])])


def _within(position: int, regions: list[_Region]) -> bool:
    return any(region.start <= position < region.end for region in regions)


def _each_once(calls: list[LeakedCall]) -> list[LeakedCall]:
    kept: dict[str, LeakedCall] = {}
    for call in calls:
        kept.setdefault(json.dumps([call.name, call.arguments], sort_keys=True, default=str), call)
    return list(kept.values())
