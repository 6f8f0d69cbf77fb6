"""The form in which words are compared: without case and accents, writing that has no spaces cut into pairs."""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = re.compile("[\u0300-\u036f]+")
# Letters that no decomposition takes apart.
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})
# Japanese, Chinese, Korean and Thai: no word ends with a space, so a run is indexed as its overlapping pairs.
_RUN = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_WORD = re.compile(r"\w+")


def fold(text: str) -> str:
    """The text as it is indexed and as a query is; any string at all is taken."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()).translate(_LETTERS)
        text = _RUN.sub(_pairs, unicodedata.normalize("NFC", text))
    else:
        text = text.lower()
    return text.replace("\x00", " ")


def words(text: str) -> list[str]:
    """The words of a text in folded form, in their order. Only letters and digits are left in them."""
    return _WORD.findall(fold(text).replace("_", " "))


def _pairs(run: re.Match[str]) -> str:
    letters = run.group()
    if len(letters) == 1:
        return f" {letters} "
    return f" {' '.join(letters[n : n + 2] for n in range(len(letters) - 1))} "
