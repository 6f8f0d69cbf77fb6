"""Where content came from, and what follows: seen foreign content taints, a person's own words do not (POL-04, TRU-03).

An agent that has read a page, a mail or a file may repeat what stands there without knowing it. So whatever it writes
down afterwards is untrusted, unless it says nothing but what the person said in the same conversation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Provenance, Trust

_WORD = re.compile(r"\w+(?:[.@:/+-]+\w+)*")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")  # a name for a value, not a place to say something
_SUFFIXES = ("ingly", "edly", "ing", "ies", "ied", "ic", "ed", "es", "ly", "s", "e", "y")
_STEM_LETTERS = 3
# Words a note about somebody is made of, whatever was said. "Not" and "never" turn a sentence round: they are missing.
_FRAME_WORDS = """
a an the and or of to in on at for from by with as about into than that this these those it its is are was were be been
being am has have had do does did will would can could should may might i me my mine we our us you your yours he him his
she her hers they them their theirs who whose which what where when user users person human owner s name named called
like likes prefer prefers enjoy enjoys love loves want wants need needs use uses also very chat conversation message
said says say stated states told tells mentioned asked asks requested request remember note fact
"""
_FRAME = frozenset(_FRAME_WORDS.split())
# Names another owner or a fixed thing; nothing is written down from it.
_NOT_CONTENT = frozenset({"agent_id"})


def trust_after(origins: Sequence[str]) -> Trust:
    """How far what an agent says may be trusted after it has seen what these tools gave back."""
    return "untrusted" if origins else "trusted"


def provenance_of(origins: Sequence[str], texts: Iterable[str], said: Sequence[str]) -> Provenance:
    """What is known of texts an agent writes down: the tools it has read from, and what the person said before."""
    if not origins or is_backed(texts, said):
        return Provenance()
    return Provenance(trust="untrusted", origins=tuple(origins))


def is_backed(texts: Iterable[str], said: Sequence[str]) -> bool:
    """Whether every word of content in the texts was said by the person."""
    heard = _plain("\n".join(said))
    words = _WORD.findall(heard)
    known, stems = set(words), {_stem(word) for word in words}
    return all(_is_known(word, known, stems, heard) for text in texts for word in _WORD.findall(_plain(text)))


def _is_known(word: str, known: set[str], stems: set[str], heard: str) -> bool:
    if word in _FRAME or word in known:
        return True
    if not word.isascii() and word in heard:
        return True  # where no spaces stand between words, a word stands inside a longer run
    # A number or an address with another ending is another one.
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
    """The texts in a call's arguments that a model may write as it likes; words to choose from are not among them."""
    defined = cast("JsonObject", schema.get("$defs") or {})
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    found: list[str] = []
    for name, value in arguments.items():
        if name not in _NOT_CONTENT and not _is_choice(properties.get(name, {}), defined):
            found += _strings(value)
    return found


def _is_choice(schema: JsonObject, defined: JsonObject) -> bool:
    """Whether only listed words fit the schema."""
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
