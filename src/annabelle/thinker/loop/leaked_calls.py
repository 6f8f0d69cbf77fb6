"""Recovers tool calls that a model wrote into its text instead of making them, in the syntaxes models use (LOOP-04)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Final, cast

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.language.lexicon import Lexicon, load_lexicon
from annabelle.thinker.loop.arguments import schema_properties

KnownTools = Mapping[str, ToolSpec]

_NAMES: Final = ("name", "tool", "tool_name", "function_name", "function", "recipient_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input")
_PREFIX: Final = re.compile(r"^(?:functions|tools|default_api)\.")
_PYTHON: Final = re.compile(r"^\s*(?:print\()?\s*((?:functions\.|tools\.|default_api\.)?\w+)\(")
_PARAMETER: Final = re.compile(r"<parameter(?:=|\s+name=[\"']?)([\w.-]+)[\"']?\s*>(.*?)</parameter>", re.DOTALL)
_MAX_CHARS: Final = 100_000
_MAX_DEPTH: Final = 60
_LITERALS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class LeakedCall:
    """A call that was written instead of made."""

    name: str
    arguments: JsonObject = field(default_factory=dict[str, object])


def find_json_calls(value: object, known: KnownTools, *, bare: bool = False) -> list[LeakedCall]:
    """The calls a parsed text stands for. With `bare`, an object without arguments is a call too."""
    if isinstance(value, list):
        rows = cast("list[object]", value)
        found = [find_json_calls(row, known, bare=bare) for row in rows if not isinstance(row, list)]
        return [call for calls in found for call in calls] if len(found) == len(rows) and all(found) else []
    if not isinstance(value, dict):
        return []
    fields = cast("JsonObject", value)
    inner = fields.get("function")
    if isinstance(inner, dict):
        fields = cast("JsonObject", inner)
    name = next((_plain_name(fields[key]) for key in _NAMES if isinstance(fields.get(key), str)), "")
    if name not in known:
        return []
    given = next((fields[key] for key in _ARGUMENTS if key in fields), "{}" if bare else None)
    arguments = _parse_arguments(given)
    return [] if arguments is None else [LeakedCall(name, arguments)]


def find_text_calls(text: str, known: KnownTools) -> list[LeakedCall]:
    """The calls in what stands between tags or in a fenced block: one JSON value, or Python calls line by line."""
    text = text.strip()
    if not text or len(text) > _MAX_CHARS:
        return []
    if text[0] in "{[":
        return find_json_calls(parse_json(text), known, bare=True)
    whole = parse_python_call(text, known)
    if whole is not None:
        return [whole]
    lines = [line for line in text.splitlines() if line.strip()]
    found = [parse_python_call(line, known) for line in lines]
    return [call for call in found if call is not None] if all(found) else []


def parse_tagged_call(name: str, body: str, known: KnownTools) -> LeakedCall | None:
    """A call whose name stands in its tag: the body is a JSON object, tagged parameters, or empty."""
    name, body = _plain_name(name), body.strip()
    if name not in known:
        return None
    tagged = {match[1]: match[2].strip() for match in _PARAMETER.finditer(body)}
    if tagged:
        return LeakedCall(name, cast("JsonObject", tagged))
    arguments = _parse_arguments(body) if body else {}
    return None if arguments is None else LeakedCall(name, arguments)


def parse_python_call(text: str, known: KnownTools) -> LeakedCall | None:
    """`name(path="a.txt", n=3)`, with plain values only."""
    opening = _PYTHON.match(text)
    if opening is None or _plain_name(opening[1]) not in known or len(text) > _MAX_CHARS:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "print" and tree.args:
        tree = tree.args[0]
    if not isinstance(tree, ast.Call):
        return None
    name = _plain_name(opening[1])
    places = list(schema_properties(known[name].input_schema))
    if len(tree.args) > len(places) or any(keyword.arg is None for keyword in tree.keywords):
        return None
    written = [*zip(places, tree.args, strict=False), *((str(one.arg), one.value) for one in tree.keywords)]
    try:
        return LeakedCall(name, {key: _literal(node) for key, node in written})
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def parse_json(text: str) -> object:
    """The JSON value a text is, or None."""
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _parse_arguments(value: object) -> JsonObject | None:
    """Arguments as an object; some models write them as JSON in a string."""
    if isinstance(value, str):
        value = parse_json(value) if value.strip() else {}
    if not isinstance(value, dict):
        return None
    arguments = cast("JsonObject", value)
    return None if _too_deep(arguments) else arguments


def _too_deep(value: object, depth: int = 0) -> bool:
    """Deeper than any tool wants it, and than a conversation can be written down."""
    if isinstance(value, dict):
        inner: Iterable[object] = cast("JsonObject", value).values()
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    else:
        return False
    return depth >= _MAX_DEPTH or any(_too_deep(one, depth + 1) for one in inner)


def _literal(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in _LITERALS:
        return _LITERALS[node.id]
    value = cast("object", ast.literal_eval(node))
    json.dumps(value, allow_nan=False)  # a set, bytes or a complex number is no argument
    return value


def _plain_name(name: object) -> str:
    return _PREFIX.sub("", str(name)).strip()


NOTHING_LEFT: Final = "I tried to use a tool in a way that can not be read, so nothing was done. Please ask again."

_MAX_CANDIDATES: Final = 32
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
_REASONING: Final = re.compile(r"<(think|thinking)>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_WRAPPING: Final = re.compile(r"</?(?:function_calls|tool_calls)>")
_SPECIAL: Final = re.compile(r"<\|[a-z_]{2,40}\|>|</(?:tool_call|function_call|tool_use|function|invoke)>")
_DANGLING: Final = re.compile(r"(?:```[ \t]*[\w-]{0,20}|</?(?:function_calls|tool_calls)>|[\[,])\Z")

_ASKS_FOR_TAGS: Final = re.compile(
    r"<(?:tool_call|function|think|invoke|\|)|\btags?\b|\bxml\b|\bsyntax\b", re.IGNORECASE
)


class _ExamplePatterns:
    """How a call is asked for or explained as an example (language/*/claims.toml)."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.asked_for = lexicon.whole_words("examples.asked_for", re.IGNORECASE)
        self.announced = lexicon.whole_words("examples.announced", re.IGNORECASE)
        self.explained = re.compile(rf"\W*{lexicon.alternation('examples.explained')}\b", re.IGNORECASE)


@cache
def _examples() -> _ExamplePatterns:
    return _ExamplePatterns(load_lexicon("claims"))


@dataclass(frozen=True, slots=True)
class RecoveredCalls:
    """The answer without what leaked into it, and the calls that did."""

    text: str
    calls: tuple[LeakedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _CallRegion:
    start: int
    end: int
    calls: list[LeakedCall]
    certain: bool


def recover_calls(text: str, known: KnownTools, asked: str, read: Sequence[str] = ()) -> RecoveredCalls:
    """Look for leaked calls of the `known` tools. `asked` is what the person wrote, `read` what tools returned: a call
    that stands there is quoted. A plain answer comes back as is."""
    if not any(mark in text for mark in ("<", "{", "(", "[TOOL_CALLS]")):
        return RecoveredCalls(text)
    bare = _without_reasoning(text, asked)
    found = [one for one in _find_regions(bare, known) if one.calls and not _is_example(one, bare, asked)]
    regions = [one for one in found if not _is_quoted(bare[one.start : one.end], read)]
    if regions:
        first = min(region.start for region in regions)
        calls = [call for region in sorted(regions, key=lambda one: one.start) for call in region.calls]
        # What follows a call in the same breath can only be a guess at its result.
        return RecoveredCalls(_trim_lead(_strip_syntax(bare[:first], asked)), tuple(_each_once(calls)))
    cleaned = _strip_syntax(bare, asked)
    return RecoveredCalls(cleaned if cleaned.strip() or not text.strip() else NOTHING_LEFT)


def _find_regions(text: str, known: KnownTools) -> list[_CallRegion]:
    """Everything that may be a call, the certain kinds first; a later find inside an earlier one is the same."""
    found: list[_CallRegion] = []
    for match in islice(_TAGGED.finditer(text), _MAX_CANDIDATES):
        found.append(_CallRegion(match.start(), match.end(), _tagged_calls(match, known), certain=True))
    fences = list(islice(_FENCED.finditer(text), _MAX_CANDIDATES))
    for match in fences:
        if match["kind"].lower() in _CALL_FENCES and not _is_within(match.start(), found):
            found.append(_CallRegion(match.start(), match.end(), find_text_calls(match["body"], known), certain=False))
    for match in islice(_OBJECT.finditer(text), _MAX_CANDIDATES):
        fenced = any(fence.start() <= match.start() < fence.end() for fence in fences)
        if not fenced and not _is_within(match.start(), found):
            value, end = _object_at(text, match.start())
            found.append(_CallRegion(match.start(), end, find_json_calls(value, known), certain=False))
    return [*found, *_line_calls(text, known, found)]


def _tagged_calls(match: re.Match[str], known: KnownTools) -> list[LeakedCall]:
    if match["name"] is not None:
        call = parse_tagged_call(match["name"], match["inner"] or "", known)
        return [] if call is None else [call]
    body = next((match[group] for group in ("body", "rest", "list") if match[group] is not None), "")
    inner = _TAGGED.search(body)
    if inner is not None and inner["name"] is not None:
        return _tagged_calls(inner, known)
    return find_text_calls(body, known)


def _line_calls(text: str, known: KnownTools, found: list[_CallRegion]) -> list[_CallRegion]:
    """Python calls on a line of their own, at the start or the end of the answer; in between they illustrate."""
    lines = [match for match in re.finditer(r"^.*\S.*$", text, re.MULTILINE) if not _is_within(match.start(), found)]
    edges = {match.start(): match for match in (*lines[:1], *lines[-1:])}
    calls = ((match, parse_python_call(match[0], known)) for match in edges.values())
    return [_CallRegion(match.start(), match.end(), [call], certain=False) for match, call in calls if call is not None]


def _object_at(text: str, start: int) -> tuple[object, int]:
    try:
        value, end = cast("tuple[object, int]", json.JSONDecoder().raw_decode(text, start))
    except (ValueError, RecursionError):
        return None, start + 1
    return value, end


def _is_example(region: _CallRegion, text: str, asked: str) -> bool:
    """Whether the person is meant to read this call rather than to have it made."""
    written = text[region.start : region.end].strip()
    if _without_spaces(written) in _without_spaces(asked) or any(
        _without_spaces(_written_arguments(call)) in _without_spaces(asked) for call in region.calls
    ):
        return True
    before = text[: region.start].rstrip()
    lead = before.rsplit("\n", 1)[-1][-200:]
    words, follows = _examples(), text[region.end : region.end + 200]
    if lead.lstrip().startswith(">") or words.announced.search(lead) or words.explained.match(follows):
        return True
    return not region.certain and words.asked_for.search(asked) is not None


def _is_quoted(written: str, read: Sequence[str]) -> bool:
    """Whether a call was read somewhere: what others wrote is told, not done."""
    plain = _unescaped(_FENCE_SIGNS.sub("", written.strip()))
    return any(plain in _unescaped(text) for text in read)


def _unescaped(text: str) -> str:
    """Without blanks, and without what JSON makes of blanks and quotes."""
    return _ESCAPES.sub("", _without_spaces(text))


def _written_arguments(call: LeakedCall) -> str:
    """What of a call the person may have written: a call without arguments is in every text that names its tool."""
    return json.dumps(call.arguments, ensure_ascii=False) if call.arguments else "\0"


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _strip_syntax(text: str, asked: str) -> str:
    """The text without call syntax that nobody can read, unless it is what the person asks about."""
    if _ASKS_FOR_TAGS.search(asked):
        return text
    return _outside_code(text, lambda piece: _SPECIAL.sub("", _WRAPPING.sub("", _TAGGED.sub(_unless_shown, piece))))


def _trim_lead(text: str) -> str:
    """What was said before a call, without the opening of the block the call stood in."""
    text = text.strip()
    while (opening := _DANGLING.search(text, max(0, len(text) - 40))) is not None:
        text = text[: opening.start()].rstrip()
    return text


def _unless_shown(match: re.Match[str]) -> str:
    """Tags in quotes are spoken of, not used."""
    before = match.string[: match.start()]
    return match[0] if before.endswith(("`", '"', "'")) else ""


def _without_reasoning(text: str, asked: str) -> str:
    if "think" not in text or "<think" in asked:
        return text
    if "</think>" in text and "<think>" not in text:
        # Some chat templates open the thoughts themselves, so that only their end is in the answer.
        text = text.rpartition("</think>")[2].lstrip()
    return _outside_code(text, lambda piece: _REASONING.sub("", piece))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    pieces: list[str] = []
    position = 0
    for match in _FENCED.finditer(text):
        pieces += [change(text[position : match.start()]), match[0]]
        position = match.end()
    return "".join([*pieces, change(text[position:])])


def _is_within(position: int, regions: list[_CallRegion]) -> bool:
    return any(region.start <= position < region.end for region in regions)


def _each_once(calls: list[LeakedCall]) -> list[LeakedCall]:
    kept: dict[str, LeakedCall] = {}
    for call in calls:
        kept.setdefault(json.dumps([call.name, call.arguments], sort_keys=True, default=str), call)
    return list(kept.values())
