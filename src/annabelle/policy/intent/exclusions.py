"""What a person speaks of only to have it left alone: `delete old.md, but keep cv.md` names cv.md for nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from annabelle.policy.intent.grammar import NOT_TO_FORGET

# A clause ends where the next begins; a point inside of a file's name ends none.
_END: Final = (
    r"(?=\s*(?:[,;!?\n)]|[.:](?:\s|$)|$)|\s+(?:and|then|but|und|dann|aber|sondern|et|puis|mais|y|luego|pero|sino|i|"
    r"potem|"
    r"ale)\s)"
)
_REST: Final = r"(?:(?![,;!?\n)]|[.:](?:\s|$)|\s(?:and|then|but|und|dann|aber|et|puis|mais|y|pero|i|ale)\s).)"
_KEPT: Final = re.compile(
    # "Not the one from Alice", "except cv.md"; "I do not know" loses nothing but what it says. `not-this.md` is a name.
    r"(?<!if )(?<!wenn )(?<!falls )(?<![\w/.-])(?:not(?! (?:forget|need))|never(?! forget)|don'?t(?! (?:forget|need))|"
    r"do not touch|except(?: for)?|apart from|other than|without|instead of|"
    r"rather than|"
    r"nicht(?! mehr)|außer|ohne|bis auf|statt|anstatt|pas(?! besoin)|sauf|sans|nothing|nichts|rien|nada|nic|"
    r"au lieu de|excepto|salvo|menos|sin|en vez de|"
    r"no (?=(?:el|la|los|las|lo|de|a)\b)|nie(?! potrzebuj)|oprócz|poza|bez|zamiast)\b(?!-|\.\w)"
    rf"(?: (?:to|an|à|a|do)\b)?{_REST}{{1,80}}?(?:{_END}|(?=\s+(?:to|an|à|do)\s))"
    # "Keep the one from Alice", but "keep it in my notes" is an order.
    r"|(?<![\w/.-])(?:keep|spare|behalte|behalt|verschone|je garde|on garde|gardez|garde|conserva|mantén|zostaw|"
    r"zachowaj)\b(?!-|\.\w)"
    r"(?! (?:in mind|track|an? |it short|me\b|us\b|un\w* |eine?n? ))"
    rf"(?:(?!\b(?:in|as|on|into|under|als|auf|dans|comme|en|como|jako|w)\b){_REST}){{1,80}}?{_END}"
    rf"|\b(?:leave|lass(?:e|en)?|laisse[rz]?|deja)\b {_REST}{{1,60}}? (?:alone|as (?:it |they )?(?:is|are)|"
    rf"where (?:it|they) (?:is|"
    r"are)|be|there|untouched|in place|out|un(?:read|opened|answered|marked|changed)|open|in (?:the|my) inbox|in ruhe|"
    r"stehen|liegen|drin|ungelesen|offen|tranquille|non lue?s?|en paz|como está|sin leer)\b"
    r"|\b(?:hands off|finger weg von|ne touche[sz]? pas (?:à|au|aux)|no toques|nie ruszaj)\b"
    rf"{_REST}{{1,60}}?{_END}",
    re.IGNORECASE,
)
_STAYS: Final = re.compile(
    rf"{_REST}{{1,60}}?\s(?:stays?|remains?|has to stay|must stay|is to stay|bleib(?:t|en)|reste(?:nt)?|se quedan?|"
    rf"zostaj\w+|"
    r"(?:is|are) (?:none of|not) (?:his|her|their|your|its|anybody's|anyone's) (?:business|concern)|"
    r"geht (?:\w+ )?(?:sie|ihn|niemanden|keinen) nichts an|ne (?:la|le|les) regarde(?:nt)? pas|"
    r"(?:is|are) (?:off limits|not to be touched|taboo|tabu)|no se tocan?|se dejan? como|nicht anfassen|"
    r"on n'y touche pas)\b",
    re.IGNORECASE,
)


_CLAUSE: Final = re.compile(r"((?:[,;!?\n]|[.:](?=\s|$))\s*|\s(?:but|and|aber|und|mais|et|pero|y|ale|i)\s)")


def without_spared(text: str) -> str:
    """The text without the clauses that only say what is to be left alone."""
    return _parted(text)[0]


def only_spared(text: str) -> str:
    """Those clauses alone."""
    return _parted(text)[1]


@lru_cache(maxsize=256)
def _parted(text: str) -> tuple[str, str]:
    """A turn asks for both of the same words, and more than once."""
    text = NOT_TO_FORGET.sub(" ", text)
    spared = [match.group() for match in _KEPT.finditer(text)]
    rest: list[str] = []
    for clause in _CLAUSE.split(_KEPT.sub(" ", text)):
        (spared if _STAYS.match(clause) else rest).append(clause)
    return "".join(rest), "\n".join(spared)
