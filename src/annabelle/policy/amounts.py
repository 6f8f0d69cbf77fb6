"""Whether a text names a sum other than the one the person named: to agree to 240 euros is not to agree to 2,400."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CURRENCY: Final = (
    r"(?:€|\$|£|¥|eur\b|euros?\b|usd\b|dollars?\b|bucks\b|gbp\b|pounds?\b|chf\b|francs?\b|franken\b|zł|pln\b)"
)
_NUMBER: Final = r"\d{1,3}(?:[.,' ]\d{3})*(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?"
_SUM: Final = re.compile(rf"{_CURRENCY}\s?({_NUMBER})(?!\d)|(?<![\d.,])({_NUMBER})\s?{_CURRENCY}", re.IGNORECASE)
_CENTS: Final = re.compile(r"[.,]0{1,2}$")


def contradicts(words: str, texts: Iterable[str]) -> bool:
    """Whether the words name sums of money, and the texts others."""
    named = _sums(words)
    return bool(named) and not set().union(*map(_sums, texts)) <= named


def _sums(text: str) -> set[str]:
    """Sums by their digits: 2,400 and 2400.00 are the same."""
    found = (match[1] or match[2] for match in _SUM.finditer(text[:20_000]))
    return {re.sub(r"\D", "", _CENTS.sub("", number)) for number in found}
