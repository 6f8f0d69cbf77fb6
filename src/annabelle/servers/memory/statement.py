"""What one sentence states, so that a new value can take the place of an old one (MEM-09).

Only sentences that say one thing in one of a few known ways are read. Whatever is richer than that ("lives in Berlin
and works at the bakery") states nothing here, because replacing it would lose the other half.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from annabelle.core.text import fold_with_positions

_USER = frozenset({"", "i", "user", "me", "the user"})
_UNCLEAR = frozenset(
    ("he", "she", "they", "we", "it", "you", "this", "that", "there", "who", "his", "her", "their", "its", "these")
)
_ARTICLE = re.compile(r"^(?:an? |the |(?:her|his|their|my) |called |named )+")
_SAME = {
    "e-mail": "email",
    "e-mail address": "email",
    "email address": "email",
    "phone number": "phone",
    "mobile": "phone",
    "mobile number": "phone",
    "telephone": "phone",
    "telephone number": "phone",
    "cell": "phone",
    "cell number": "phone",
    "timezone": "time zone",
    "date of birth": "birth date",
    "birthday": "birth date",
    "job title": "job",
    "occupation": "job",
    "profession": "job",
    "mother tongue": "native language",
    "home town": "hometown",
    "full name": "name",
}
_LIKES = {"like": "like", "love": "like", "enjoy": "like", "lik": "like", "lov": "like"}


@dataclass(frozen=True, slots=True)
class RelationRead:
    """A relation as it was read from a sentence."""

    subject: str
    relation: str
    value: str


@dataclass(frozen=True, slots=True)
class RelationForm:
    """One way to state a relation. `{thing}` and `{value}` in its name are taken from the sentence."""

    relation: str
    pattern: re.Pattern[str]
    denies: bool = False
    decides: bool = True

    def read(self, words: str) -> RelationRead | None:
        match = self.pattern.fullmatch(words)
        if match is None:
            return None
        parts = match.groupdict(default="")
        subject, value = _read_subject(parts.get("subject", "")), _clean_value(parts.get("value", ""))
        thing = _clean_value(parts.get("thing", ""))
        if subject is None or not value or "," in thing or len(value.split()) > 8:
            return None
        if "other" in parts:
            thing = " / ".join(sorted((value, _clean_value(parts["other"]))))
        if "verb" in parts:
            stem = re.sub(r"(?:ing|e?s|e)$", "", parts["verb"])
            thing = _LIKES.get(stem, stem)
        return RelationRead(subject, self.relation.format(thing=_SAME.get(thing, thing), value=value), value)


def _read_subject(said: str) -> str | None:
    """Whose relation it is: "user" for the one who speaks; None where only the conversation would tell."""
    words = said.strip().removeprefix("the ")
    if words in _USER:
        return "user"
    words = re.sub(r"^(?:my|our|user's) ", "user ", words)
    words = words.replace("'s", "").rstrip("'")
    if not words or len(words.split()) > 5 or not _UNCLEAR.isdisjoint(words.split()):
        return None
    return "user" if words in ("my", "our") else words


def _clean_value(value: str) -> str:
    value = _ARTICLE.sub("", value.strip(" \"'():")).strip(" \"'.")
    return " ".join(re.sub(r"[^\w@.+:/ -]", " ", value).split())


def _relation_form(relation: str, pattern: str, *, denies: bool = False, decides: bool = True) -> RelationForm:
    return RelationForm(relation, re.compile(pattern.replace("{IS}", "(?:is|am|are)")), denies, decides)


_S = r"(?:(?P<subject>[^,:]+?) )?"
_V = "(?P<value>[^,]+)"
# A place or a firm, and nothing about when, with whom or as what.
_PLACE = r"(?P<value>(?:(?! (?:in|with|as|for|during|on|at|near|by) )[^,])+(?:, [\w .-]+)?)"
_NUMBER = r"(?P<value>\d{1,3}|no|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_THINGS = r"children|kids|sons?|daughters?|brothers?|sisters?|siblings|child|dogs?|cats?|pets|cars?|bikes?|employees"
# No roles of people: "my wife is a doctor" and "my wife is tired" are both true.
_PERSONAL = (
    r"e-?mail(?: address)?|(?:phone|mobile|telephone|cell)(?: number)?|address|website|age|time ?zone|birthday|"
    r"date of birth|employer|job|job title|occupation|profession|nickname|pronouns|name|full name|"
    r"last name|first name|user ?name|nationality|native language|mother tongue|diet|blood type|height|weight|"
    r"shoe size|salary|licen[cs]e plate|home ?town|marital status|rent"
)
_OWNED = rf"{_PERSONAL}|deadline|due date|budget|status|version|price|priority|host|port|repository"
_SOMETHING = r"(?:the (?!user )|my |our |(?:[\w.-]+ )?[\w.-]+'s )[\w' -]{2,60}?"
_OWNER = r"(?P<subject>my|our|(?:[\w.-]+ ){0,4}[\w.-]+'s?)"

FORMS: tuple[RelationForm, ...] = (
    _relation_form("home", rf"{_S}(?:lives?|living|resides?|{{IS}} (?:living|based)) in {_PLACE}"),
    _relation_form("home", rf"{_S}(?:has |have )?(?:moved|relocated)(?: house)?(?: from [^,]+?)? to {_PLACE}"),
    _relation_form("employer", rf"{_S}(?:works?|working|{{IS}} (?:working|employed)) (?:at|for|by) {_PLACE}"),
    _relation_form("employer", rf"{_S}(?:has |have )?started (?:working |a job |a new job )?(?:at|for) {_PLACE}"),
    _relation_form("job", rf"{_S}(?:works?|working|{{IS}} working) as {_PLACE}"),
    _relation_form("job", rf"{_S}{{IS}} (?:an? )?(?P<value>[\w -]+?) by (?:profession|trade)"),
    _relation_form("name", rf"{_S}(?:{{IS}} (?:called|named)|goes by|prefers to be called) {_V}"),
    _relation_form("birth date", rf"{_S}{{IS}} born (?:on|in) (?P<value>.*\d.*)"),
    _relation_form("birth place", rf"{_S}{{IS}} born in (?P<value>\D+)"),
    _relation_form("age", rf"{_S}{{IS}} (?P<value>\d{{1,3}}) years old"),
    _relation_form("spouse", rf"{_S}{{IS}} (?:happily )?married to {_V}"),
    _relation_form("favourite {thing}", rf"{_OWNER} favou?rite (?P<thing>[\w ]{{2,30}}?)(?: {{IS}}|:) {_V}"),
    _relation_form("favourite {thing}", rf"(?:the )?favou?rite (?P<thing>[\w ]{{2,30}}?)(?: {{IS}}|:) {_V}"),
    _relation_form("{thing}", rf"{_OWNER} (?P<thing>{_OWNED})(?: {{IS}}|:) {_V}"),
    _relation_form(
        "{thing}",
        rf"(?:the )?(?P<thing>{_OWNED}) (?:of|for) (?P<subject>[\w.' -]{{1,60}}?)(?: {{IS}}|:) {_V}"),
    _relation_form("{thing}", rf"(?:the )?(?P<thing>{_PERSONAL})(?: {{IS}}|:) {_V}"),
    _relation_form(
        "prefers {thing}", rf"{_S}prefers? (?P<value>[^,]+?) (?:over|to|rather than|instead of) (?P<other>[^,]+)"
    ),
    _relation_form(
        "uses as {thing}",
        rf"{_S}uses? (?P<value>[^,]+?) as (?:(?:her|his|their|my|the|an?) )?(?P<thing>[^,]+)"),
    _relation_form("number of {thing}", rf"{_S}ha(?:s|ve) {_NUMBER} (?P<thing>{_THINGS})"),
    _relation_form("allergic to {value}", rf"{_S}{{IS}} allergic to {_V}"),
    _relation_form("{thing} {value}", rf"{_S}(?P<verb>likes?|loves?|liking|enjoys?) {_V}"),
    _relation_form("{thing} {value}", rf"{_S}(?P<verb>(?:drink|eat|smok|us|play)(?:e?s|e|ing)?) {_V}"),
    _relation_form("like {value}", rf"{_S}(?:dislikes?|hates?|can not stand) {_V}", denies=True),
    _relation_form("is {thing}", rf"(?P<subject>{_SOMETHING}) {{IS}} (?P<thing>in|at|near) {_V}", decides=False),
)  # fmt: skip


MAX_SENTENCE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class PlainSentence:
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


def simplify_sentence(text: str) -> PlainSentence | None:
    """The sentence without its trimmings; None when it is long, or says more than one thing."""
    if len(text) > MAX_SENTENCE_CHARACTERS:
        return None
    words = fold_with_positions(text).text.lower().strip().rstrip(".! ")
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
    return PlainSentence(words, denied, changed or denied)


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value, and the sentence without it."""

    rest: str
    value: str


# Only states: "ran a marathon in 2019" stays true when there is another one in 2021.
_STATE = re.compile(r"\b(?:is|are|costs?|takes|starts?|begins?|ends?|weighs?|earns?|pays?|due|wakes|measures|lasts?)\b")
_TYPED = re.compile(
    r"(?<![\w.])(?:[$€£]\s?)?\d[\d.,:]*(?:%|\s?(?:am|pm)\b)?(?:(?:st|nd|rd|th)\b)?(?!\w)"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
)
_WORDS_AFTER = 3


def find_typed_value(words: str) -> TypedValue | None:
    """The last such value, when it stands near the end and after a verb of state."""
    state = _STATE.search(words)
    found = [match for match in _TYPED.finditer(words) if state is not None and match.start() >= state.end()]
    if not found:
        return None
    # "on 3 May at 9:30" is one value as well: everything typed after the verb changes together.
    first, last = found[0], found[-1]
    rest = words[last.end() :]
    if len(rest.split()) > _WORDS_AFTER or len(words[: first.start()].split()) < 2:
        return None
    shape = _TYPED.sub("#", words[first.start() : last.end()])
    return TypedValue(f"{words[: first.start()]}{shape}{rest}".strip(), words[first.start() : last.end()])


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation of somebody or something, with its value. Of one key, one value holds at a time."""

    key: str
    value: str
    denied: bool = False
    """It says what does not hold: "no longer", "not", "hates"."""
    decides: bool = True
    """False for what may well be said beside another value: it can be replaced, and replaces nothing."""

    def contradicts(self, other: Statement) -> bool:
        """Whether both can not hold at once. "Berlin" and "Berlin, Germany" can."""
        if self.key != other.key:
            return False
        mine, theirs = set(self.value.split()), set(other.value.split())
        agree = mine <= theirs or theirs <= mine
        return agree if self.denied != other.denied else not self.denied and not agree

    def replaces(self, other: Statement) -> bool:
        return self.decides and self.contradicts(other)


def read_statement(text: str) -> Statement | None:
    """The one relation a text states, or None when it states none that is known, or more than one."""
    sentence = simplify_sentence(text)
    if sentence is None:
        return None
    for form in FORMS:
        if stated := _match_form(sentence, form):
            return stated
    if sentence.denied or not (found := find_typed_value(sentence.words)):
        return None
    return Statement(f"…|{found.rest}", found.value)


def _match_form(sentence: PlainSentence, form: RelationForm) -> Statement | None:
    read = form.read(sentence.words)
    if read is None:
        return None
    denied = sentence.denied != form.denies
    return Statement(f"{read.subject}|{read.relation}", read.value, denied, form.decides or sentence.changed)
