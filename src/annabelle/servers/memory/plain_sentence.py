"""A sentence reduced to what it states: without adverbs, contractions, "since 2019" and "no longer"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from annabelle.servers.memory.folding import fold

MAX_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words that are left, whether they are denied, and whether a change was spoken of."""

    words: str
    denied: bool
    changed: bool


_SHORT_FORMS = (
    (re.compile(r"\bcan(?:no|')t\b"), "can not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
)
# More than one thing is said, or it is wished, planned, past or only partly so.
_TOO_RICH = re.compile(
    r"[;\n?]|[.!] |\b(?:and|but|or|because|although|though|while|who|which|when|if|unless|except|also|too|as well|"
    r"either|neither|both|sometimes|often|occasionally|partly|part-time|half|second|another|was|were|had|used to|"
    r"formerly|previously|will|would|might|may|could|should|must|wants?|plans?|hopes?|thinks?|thinking|considers?|"
    r"considering|dreams?|maybe|perhaps|possibly|probably|almost|wishes|intends?|going to|about to)\b"
)
_BORN = re.compile(r"\bwas born\b")
_CHANGED = re.compile(r"\b(?:now|meanwhile|from now on|nowadays|as of (?:today|now)|changed)\b")
_ADVERBS = re.compile(
    r"\b(?:now|currently|still|already|just|recently|actually|really|always|meanwhile|nowadays|finally|today|"
    r"these days|from now on|at the moment|right now|at present|for now|as of (?:today|now)|again|officially|"
    r"permanently)\b,?"
)
_SINCE = re.compile(r",? (?:\(?since|as of|starting|effective) .*$")
_DENIED = (
    (re.compile(r"\b(is|am|are) (?:not|no longer|never)\b"), r"\1"),
    (re.compile(r"\b(?:no longer|does not|do not|has stopped|have stopped|stopped|gave up|quit|never)\b"), ""),
)
_ANY_MORE = re.compile(r"\b(?:any ?more|any longer)\b")


def plain_sentence(text: str) -> Sentence | None:
    """The sentence without its trimmings; None when it is long, or says more than one thing."""
    if len(text) > MAX_CHARACTERS:
        return None
    words = fold(text).text.lower().strip().rstrip(".! ")
    for short, long in _SHORT_FORMS:
        words = short.sub(long, words)
    words = _BORN.sub("is born", words)
    if _TOO_RICH.search(words):
        return None
    changed = _CHANGED.search(words) is not None
    words = _SINCE.sub("", _ADVERBS.sub("", words))
    denied = False
    for denial, kept in _DENIED:
        words, count = denial.subn(kept, words)
        denied = denied or count > 0
    words = " ".join(_ANY_MORE.sub("", words).split()).rstrip(",")
    return Sentence(words, denied, changed or denied)
