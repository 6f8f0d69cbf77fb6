"""Foreign text as a person may safely look at it: nothing unseen in it, and nothing that moves what is seen."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from typing import Final, cast

# What is written between the lines, turns the writing around or can not be seen at all.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank like a space, and taken for a letter by whoever compares.
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: str) -> str:
    """The text with everything spelled out that a reader would not see or that moves what they see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if hidden(char) else char for char in text)


def visible_data(value: object) -> str:
    """A value as JSON on one line, with nothing unseen in it."""
    return visible(json.dumps(value, ensure_ascii=False))


def hidden(char: str) -> bool:
    """Whether a reader would not see this character, or not see it for what it is."""
    return unicodedata.category(char) in _UNSEEN or char in _BLANK


def _spelled(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


# What is kept of unseen signs, for the text would read otherwise without it: a flag made of tags, the joiner within an
# emoji, the choice between an emoji and its plain form, and joiners within words that need them.
_MEANT: Final = (
    "(?P<meant>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    "|(?<=[\u00a9-\u3299\U0001f000-\U0001faff\ufe0f])\u200d(?=[\u2190-\u3299\U0001f000-\U0001faff])"
    "|(?<=[#*0-9\u00a9-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<=[\u0600-\u1cff])[\u200c\u200d](?=[\u0600-\u1cff]))"
)
_UNSEEN_NAMES: Final = ("VARIATION SELECTOR", "FILLER", "GRAPHEME JOINER")


def without_unseen(text: str) -> tuple[str, int]:
    """The text as a person reads it, and how many signs nobody would have seen were taken out.

    Models read tags, joiners, selectors and marks of direction as well as letters: orders can be written in them.
    """
    if text.isascii():
        return text, 0
    signs = "".join(sign for sign in set(text) if _never_seen(sign))
    if not signs:
        return text, 0
    expression = re.compile(f"{_MEANT}|[{re.escape(signs)}]")
    kept = expression.sub(lambda found: found["meant"] or "", text)
    return kept, len(text) - len(kept)


def data_without_unseen(value: object) -> tuple[object, int]:
    """The same for every text in nested data, its keys included."""
    if isinstance(value, str):
        return without_unseen(value)
    if isinstance(value, dict):
        pairs = [
            (data_without_unseen(key), data_without_unseen(one))
            for key, one in cast("dict[object, object]", value).items()
        ]
        return {key[0]: one[0] for key, one in pairs}, sum(key[1] + one[1] for key, one in pairs)
    if isinstance(value, list | tuple):
        items = [data_without_unseen(one) for one in cast("list[object]", value)]
        return [one for one, _ in items], sum(count for _, count in items)
    return value, 0


@lru_cache(maxsize=4096)
def _never_seen(sign: str) -> bool:
    """Whether a sign has no shape of its own. Some signs of format have one: the Arabic sign of a number."""
    category = unicodedata.category(sign)
    if category == "Cf":
        return unicodedata.bidirectional(sign) != "AN"
    if category == "Cn":
        return "\U000e0000" <= sign < "\U000f0000"  # kept for signs without a shape
    return category in ("Mn", "Lo") and any(part in unicodedata.name(sign, "") for part in _UNSEEN_NAMES)
