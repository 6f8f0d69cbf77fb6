"""What the packaged model wrote, as a call or as words for the person (FST-01).

A value of a call has to stand in the conversation, or be one that the phrases of the tool mean by other words: what
nobody said is asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Protocol, cast

from jsonschema import Draft202012Validator
from pydantic_ai.messages import TextPart, ToolCallPart

from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.embedded.adapter import about_adapter
from annabelle.llm.types import FROM_MEMORY

CALL: Final = re.compile(r"^(\w+) (\{.*\})$", re.DOTALL)
_LIKE_A_CALL: Final = re.compile(r"[{<\[]|\w+_\w+")
_NUMBER_OR_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_NAME: Final = re.compile(r"\w+(?:[^\w\s]+\w+)*")
_SIGNS: Final = re.compile(r"[\W_]+")
_PLAIN_WORDS: Final = re.compile(r"[a-z ]+")
_SHORTEST_STEM, _LONGEST_ENDING = 3, 3
_NOT_UNDERSTOOD: Final = "I did not understand what to do. Please say it in other words, one thing at a time."
NOT_KNOWN: Final = (
    "I cannot tell you that: the model that comes with Annabelle is small and knows little. Ask me to search the web "
    "for it, or run `annabelle init` to connect a larger model or a service with a key."
)
_OWN_NAME: Final = "annabelle"
_SENTENCE: Final = re.compile(r".+?(?:[.!?](?=\s|$)|$)", re.DOTALL)
_MOST_SENTENCES, _LONGEST_TALK = 2, 240


class _SchemaValidator(Protocol):
    """The part of jsonschema that is used here; the library's own types are incomplete."""

    def is_valid(self, instance: object) -> bool: ...


def read_reply(written: str, tools: Sequence[ToolSpec], said: str) -> TextPart | ToolCallPart:
    """A call whose arguments fit the tool and stand in the conversation; else words for the person."""
    written = written.strip()
    found = CALL.match(written)
    tool = next((tool for tool in tools if found and tool.name == found[1]), None)
    if found is None or tool is None:
        return TextPart(_NOT_UNDERSTOOD) if not written or _LIKE_A_CALL.match(written) else talk_honestly(written, said)
    try:
        arguments = cast("object", json.loads(found[2]))
    except ValueError:
        return TextPart(_NOT_UNDERSTOOD)
    schema = tool.input_schema
    required = cast("list[str]", schema.get("required") or [])
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    kept: JsonObject = {}
    for name, value in cast("JsonObject", arguments).items():
        given = GivenValues.of(tool.name, name)
        value = value if given.mean(value, _spoken_words(said)) else as_said(value, said)
        if name in properties and is_said(value, said, properties[name], given):
            kept[name] = value
        elif name in required and isinstance(value, str) and (shorter := said_part(value, said)):
            kept[name] = shorter
        elif name in required:
            return TextPart(_ask_for(name, properties.get(name, {})))
    missing = next((name for name in required if name not in kept), None)
    if missing is not None:
        return TextPart(_ask_for(missing, properties.get(missing, {})))
    if not cast("_SchemaValidator", Draft202012Validator(schema)).is_valid(kept):
        return TextPart(_NOT_UNDERSTOOD)
    return ToolCallPart(tool.name, json.dumps(kept, ensure_ascii=False), tool_call_id=new_id("call"))


def has_said_enough(written: str) -> bool:
    """Whether these are words for the person, and of what comes after them none would be said."""
    over = islice(_SENTENCE.finditer(written.lstrip()), _MOST_SENTENCES, None)
    return not _LIKE_A_CALL.match(written.lstrip()) and next(over, None) is not None


def talk_honestly(written: str, said: str) -> TextPart:
    """A few words from memory, marked as such. Names and numbers that nobody said are made up, so nothing is said."""
    sentences = [found[0].strip() for found in _SENTENCE.finditer(written)][:_MOST_SENTENCES]
    known = {*split_value(said), _OWN_NAME}
    # A capital at the beginning of a sentence says nothing.
    words = [word for sentence in sentences for word in _NUMBER_OR_WORD.findall(sentence)[1:]]
    words += [word for sentence in sentences for word in _NUMBER_OR_WORD.findall(sentence)[:1] if word[0].isdigit()]
    named = [word for word in words if word[0].isdigit() or (word[0].isupper() and len(word) > 1)]
    if any(split_value(word)[0] not in known for word in named):
        return TextPart(NOT_KNOWN)
    text = " ".join(sentences)
    short = text if len(text) <= _LONGEST_TALK else text[:_LONGEST_TALK].rsplit(" ", 1)[0] + " …"
    return TextPart(short, provider_details={FROM_MEMORY: True})


@dataclass(frozen=True, slots=True)
class GivenValues:
    """What the phrases of a tool mean by other words: values as JSON, with words for each, and words around slots."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    words: Collection[str] = ()

    @classmethod
    def of(cls, tool: str, argument: str) -> GivenValues:
        given = cast("dict[str, dict[str, dict[str, Any]]]", about_adapter().get("given") or {})
        found = given.get(tool, {}).get(argument, {})
        return cls(found.get("values", {}), found.get("words", ()))

    def mean(self, value: object, said: Collection[str]) -> bool:
        """Whether words for this value were said."""
        forms = self.values.get(json.dumps(value, ensure_ascii=False), ())
        return any(all(word in said for word in form.split()) for form in forms)


def as_said(value: object, said: str) -> object:
    """With every name as it was said, which small models write with other signs: `packing-txt` is `packing.txt`."""
    if isinstance(value, list):
        return [as_said(one, said) for one in cast("list[object]", value)]
    return _NAME.sub(lambda found: _said_name(found[0], said), value) if isinstance(value, str) else value


def _said_name(name: str, said: str) -> str:
    letters = _SIGNS.sub("", name.lower())
    names = _said_names(said).get(letters, ())
    return names[0] if len(names) == 1 and names[0].lower() != name.lower() and not letters.isdecimal() else name


def is_said(value: object, said: str, schema: JsonObject, given: GivenValues) -> bool:
    """Whether a value stands in the conversation, or is one that the tool's phrases mean without saying it."""
    spoken = _spoken_words(said)
    if isinstance(value, bool) or value is None or given.mean(value, spoken):
        return True
    if isinstance(value, list):
        return all(is_said(one, said, schema, given) for one in cast("list[object]", value))
    if isinstance(value, dict):
        return all(is_said(one, said, {}, given) for one in cast("JsonObject", value).values())
    if value in cast("list[object]", schema.get("enum") or []):
        return True
    if isinstance(value, str) and "@" in value and value.lower() not in said.lower():
        return False  # an address is said as a whole
    known, words = {*spoken, *given.words}, split_value(f"{value:g}" if isinstance(value, float) else str(value))
    inflected = isinstance(value, str) and _PLAIN_WORDS.fullmatch(value) is not None
    return all(word in known or (inflected and any(_is_form_of(word, other) for other in known)) for word in words)


def said_part(value: str, said: str) -> str:
    """The longest run of words that were said, where it is most of the value: `a.txt` of `Documents/a.txt`."""
    known, runs = _spoken_words(said), [list[re.Match[str]]()]
    words = list(_NUMBER_OR_WORD.finditer(value))
    for found in words:
        if split_value(found[0])[0] in known:
            runs[-1].append(found)
        else:
            runs.append([])
    longest = max(runs, key=len)
    if "@" in value or len(longest) * 2 <= len(words):
        return ""
    start, end = longest[0].start(), longest[-1].end()
    is_cut_out = value[:start][-1:] in ("", " ", "/") and value[end:][:1] in ("", " ", "/")
    return value[start:end] if is_cut_out else ""


def _is_form_of(word: str, other: str) -> bool:
    """As "cup" is of "cups": names and paths have to be said as they are."""
    short, long = sorted((word, other), key=len)
    return len(short) >= _SHORTEST_STEM and len(long) - len(short) <= _LONGEST_ENDING and long.startswith(short)


@lru_cache(maxsize=1)
def _said_names(said: str) -> dict[str, list[str]]:
    """Words with the signs in them, by their letters; in small or large ones they are the same."""
    names: dict[str, dict[str, str]] = {}
    for found in _NAME.findall(said):
        names.setdefault(_SIGNS.sub("", found.lower()), {}).setdefault(found.lower(), found)
    return {letters: [*spelled.values()] for letters, spelled in names.items()}


@lru_cache(maxsize=1)
def _spoken_words(said: str) -> frozenset[str]:
    """Kept for all values of a call, because an earlier answer may be long."""
    return frozenset(split_value(said))


def split_value(text: str) -> list[str]:
    """Words, and numbers by their digits alone: 17.5 % is 0.175, and 1,250 is 1250."""
    return [word.replace(".", "").replace(",", "").strip("0") for word in _NUMBER_OR_WORD.findall(text.lower())]


def _ask_for(name: str, schema: JsonObject) -> str:
    what = str(schema.get("description") or name.replace("_", " ")).split(". ")[0].rstrip(".")
    return f"For that I need to know one more thing: {what[:1].lower()}{what[1:]}. Please say it all in one message."
