"""The part of a message that is the person's own: what they paste in is somebody else's, and gives no orders."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 20_000
_SLACK: Final = 30
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|<<<.*?(?:>>>|\Z)|\"\"\".*?(?:\"\"\"|\Z)", re.DOTALL)
_QUOTE_LINE: Final = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_LONG_QUOTE: Final = re.compile(r"\"[^\"]{60,}\"|“[^“”]{60,}”|«[^«»]{60,}»|„[^„“”]{60,}[“”]")
_QUOTED: Final = re.compile(r"\"[^\"]{12,}\"|“[^“”]{12,}”|«[^«»]{12,}»|„[^„“”]{12,}[“”]")
# Behind these stand somebody else's words; behind the others what is to be written.
_OTHERS_SAY: Final = re.compile(
    r"\b(?:wrote|writes|said|says|told me|sent me|got|received|schrieb|schreibt|sagte?|geschrieben|bekommen|erhalten|"
    r"écrit|dit|reçu|escribi[óo]|dice|dijo|recibí|napisał\w*|pisze|dostał\w*)\b[^\"“«„\n;.]{0,25}$",
    re.IGNORECASE,
)
_DICTATES: Final = re.compile(
    r"\b(?:write|reply|respond|answer|say|tell|send|text|note|add|type|post|save|remember|put|with|saying|schreib\w*|"
    r"antworte\w*|"
    r"sag\w*|notier\w*|speicher\w*|écris|réponds|dis|note|ajoute|escribe|responde|dile|anota|añade|napisz|odpisz|"
    r"zapisz|dodaj)\b[^\"“«„\n]{0,60}$",
    re.IGNORECASE,
)
_PASTED: Final = 200
_RULER: Final = re.compile(
    r"^[^\S\n]*(?:[-=_*#~]{3,}.*|-+ ?(?:forwarded|original|weitergeleitet).*)$", re.MULTILINE | re.I
)
# "Summarise this mail: …": what follows is the mail. So it is below "What do you think of this?" and an empty line.
_HANDED_OVER: Final = re.compile(
    r"\b(?:this|the following|following|these|below|diese[sr]?n?|folgende\w*|ce(?:ci|t|tte)?|suivant\w*|este|esta|"
    r"siguiente\w*|ten|te|następując\w*)\b[^:\n]{0,60}(?::(?!//|\d)|\n[^\S\n]*\n)"
    # "Translate into German: …", "what I got: …": words that are worked on, or somebody else's.
    r"|\b(?:summari[sz]e|translate|proofread|paraphrase|übersetze?n?|traduis|traduire|résume|traduce|resume|"
    r"przetłumacz|"
    r"podsumuj|got|received|told (?:me|us|him|her)|asks?|asked|tells me|wrote|writes|said|says|schrieb|schreibt|"
    r"sagte?|écrit|dit|escribi[óo]|dice|napisała?|pisze)\b[^:\n]{0,40}:(?=\s)",
    re.IGNORECASE,
)
# The head and the greeting of a letter, and whatever stands below a question: nobody writes to an assistant like that.
_LETTER: Final = re.compile(
    r"^[^\S\n]*(?:(?:from|to|subject|date|sent|von|an|betreff|de|à|objet|para|asunto|od|do|temat)[^\S\n]*:[^\S\n]\S.*|"
    r"(?<=\n)(?:dear|hi|hello|hey|good (?:morning|day|evening)|sehr geehrte\w*|liebe\w?|hallo|guten tag|bonjour|"
    r"ch[eè]re?s?|estimad[oa]s?|hola|szanown\w+|cześć|dzień dobry)\b[^.!?\n]{0,60},.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_BELOW_A_QUESTION: Final = re.compile(r"\A[^\n]{1,200}\?[^\S\n]*\n[^\S\n]*\n")
_ITEM: Final = re.compile(r"[^\S\n]*(?:[-*•]|\d{1,2}[.)])[^\S\n]+\S.{0,100}")


def own_words(text: str) -> str:
    """The text without what stands in fences, quotes and below a line, and without a text that is handed over."""
    text = _RULER.split(_LONG_QUOTE.sub(" ", _QUOTE_LINE.sub("", _FENCE.sub("\n", text[:_MOST]))), maxsplit=1)[0]
    letter = _LETTER.search(text)
    if letter is not None:
        text = text[: letter.start()]
    handed_over = _HANDED_OVER.search(text) or _BELOW_A_QUESTION.match(text)
    if handed_over is not None:
        return text[: handed_over.end()] + _items(text[handed_over.end() :])
    colon = re.search(r":[^\S\n]*\n", text)
    if colon is None:
        return text
    return text[: colon.end()] + _items(text[colon.end() :])


def holds_others(text: str) -> bool:
    """Whether there are words of others in it: a mail to be summed up, a text to be translated. A quoted text that is
    dictated orders nothing, and is no sign of anybody else."""
    if len(dictated(text)) < len(_quotes(text)):
        return True
    whole = _LONG_QUOTE.sub(" ", text[:_MOST])
    return len("".join(whole.split())) - len("".join(own_words(text).split())) > _SLACK


def dictated(text: str) -> list[str]:
    """The texts in quotation marks that the person wants written, rather than those somebody else wrote."""
    return [quote.group() for quote in _quotes(text) if not _is_others(quote, text)]


def _quotes(text: str) -> list[re.Match[str]]:
    return list(_QUOTED.finditer(text[:_MOST]))


def _is_others(quote: re.Match[str], text: str) -> bool:
    before = text[max(0, quote.start() - 100) : quote.start()]
    if _OTHERS_SAY.search(before):
        return True
    long = len(quote.group()) >= _PASTED or "\n" in quote.group().strip()
    return long and _DICTATES.search(before) is None


def _items(rest: str) -> str:
    """Of what is handed over, a list of things is still what the person says: `delete these:` and three names."""
    items: list[str] = []
    for line in rest.strip("\n").split("\n"):
        if not line.strip():
            continue
        if not _ITEM.fullmatch(line):
            break
        items.append(line)
    return "\n".join(items)
