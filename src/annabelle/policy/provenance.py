"""Tracks where content came from. Foreign content taints, a person's own words do not (POL-04, TRU-03).

An agent that has read a page, a mail or a file may repeat it unknowingly. What it writes down afterwards is untrusted,
unless it contains only what the person said in the same conversation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Provenance, Trust

_WORD = re.compile(r"\w+(?:[.@:/+-]+\w+)*")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")  # the name of a value, too short to hold content
_SUFFIXES = ("ingly", "edly", "ing", "ies", "ied", "ic", "ed", "es", "ly", "s", "e", "y")
_STEM_LETTERS = 3
# Words that any note about somebody may contain. "Not" and "never" are missing because they reverse a sentence.
_FRAME_WORDS = """
a an the and or of to in on at for from by with as about into than that this these those it its is are was were be been
being am has have had do does did will would can could should may might i me my mine we our us you your yours he him his
she her hers they them their theirs who whose which what where when user users person human owner s name named called
like likes prefer prefers enjoy enjoys love loves want wants need needs use uses also very chat conversation message
said says say stated states told tells mentioned asked asks requested request remember note fact
"""
_FRAME = frozenset(_FRAME_WORDS.split())
# These arguments identify an owner and hold no content.
_NOT_CONTENT = frozenset({"agent_id"})


def trust_after(origins: Sequence[str]) -> Trust:
    """How far an agent can be trusted after seeing results of these tools."""
    return "untrusted" if origins else "trusted"


def provenance_of(origins: Sequence[str], texts: Iterable[str], said: Sequence[str]) -> Provenance:
    """Provenance of texts an agent writes, from the tools it has read and what the person said."""
    if not origins or is_backed(texts, said):
        return Provenance()
    return Provenance(trust="untrusted", origins=tuple(origins))


def is_backed(texts: Iterable[str], said: Sequence[str]) -> bool:
    """Whether the person said every content word of the texts."""
    heard = _plain("\n".join(said))
    words = _WORD.findall(heard)
    known, stems = set(words), {_stem(word) for word in words}
    return all(_is_known(word, known, stems, heard) for text in texts for word in _WORD.findall(_plain(text)))


def _is_known(word: str, known: set[str], stems: set[str], heard: str) -> bool:
    if word in _FRAME or word in known:
        return True
    if not word.isascii() and word in heard:
        return True  # in scripts without spaces, a word is part of a longer run
    # A number or address with another ending is a different one.
    return word.isalpha() and _stem(word) in stems


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_LETTERS:
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > _STEM_LETTERS and word[-1] == word[-2] else word


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"['’]s\b", "", text).replace("'", "").replace("’", "")


def collect_free_texts(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """The texts in a call's arguments that a model writes freely; enum values are left out."""
    defined = cast("JsonObject", schema.get("$defs") or {})
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    found: list[str] = []
    for name, value in arguments.items():
        if name not in _NOT_CONTENT and not _is_choice(properties.get(name, {}), defined):
            found += _strings(value)
    return found


def _is_choice(schema: JsonObject, defined: JsonObject) -> bool:
    """Whether the schema only allows listed values."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = cast("JsonObject", defined.get(reference.rpartition("/")[2]) or {})
    choices = cast("list[JsonObject]", schema.get("anyOf") or schema.get("oneOf") or [])
    if choices:
        return all(choice.get("type") == "null" or _is_choice(choice, defined) for choice in choices)
    items = schema.get("items")
    if isinstance(items, dict):
        return _is_choice(cast("JsonObject", items), defined)
    return "enum" in schema or "const" in schema


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        keys = [key for key, _ in pairs if not _FIELD.fullmatch(key)]
        return [*keys, *(text for _, one in pairs for text in _strings(one))]
    if isinstance(value, list):
        return [text for one in cast("list[object]", value) for text in _strings(one)]
    return []
