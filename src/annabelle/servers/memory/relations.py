"""The relations that hold one value at a time, and the ways English states them."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
class Read:
    """A relation as it was read from a sentence."""

    subject: str
    relation: str
    value: str


@dataclass(frozen=True, slots=True)
class Form:
    """One way to state a relation. `{thing}` and `{value}` in its name are taken from the sentence."""

    relation: str
    pattern: re.Pattern[str]
    denies: bool = False
    decides: bool = True

    def read(self, words: str) -> Read | None:
        match = self.pattern.fullmatch(words)
        if match is None:
            return None
        parts = match.groupdict(default="")
        subject, value = _subject(parts.get("subject", "")), _plain(parts.get("value", ""))
        thing = _plain(parts.get("thing", ""))
        if subject is None or not value or "," in thing or len(value.split()) > 8:
            return None
        if "other" in parts:
            thing = " / ".join(sorted((value, _plain(parts["other"]))))
        if "verb" in parts:
            stem = re.sub(r"(?:ing|e?s|e)$", "", parts["verb"])
            thing = _LIKES.get(stem, stem)
        return Read(subject, self.relation.format(thing=_SAME.get(thing, thing), value=value), value)


def _subject(said: str) -> str | None:
    """Whose relation it is: "user" for the one who speaks; None where only the conversation would tell."""
    words = said.strip().removeprefix("the ")
    if words in _USER:
        return "user"
    words = re.sub(r"^(?:my|our|user's) ", "user ", words)
    words = words.replace("'s", "").rstrip("'")
    if not words or len(words.split()) > 5 or not _UNCLEAR.isdisjoint(words.split()):
        return None
    return "user" if words in ("my", "our") else words


def _plain(value: str) -> str:
    value = _ARTICLE.sub("", value.strip(" \"'():")).strip(" \"'.")
    return " ".join(re.sub(r"[^\w@.+:/ -]", " ", value).split())


def _form(relation: str, pattern: str, *, denies: bool = False, decides: bool = True) -> Form:
    return Form(relation, re.compile(pattern.replace("{IS}", "(?:is|am|are)")), denies, decides)


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

FORMS: tuple[Form, ...] = (
    _form("home", rf"{_S}(?:lives?|living|resides?|{{IS}} (?:living|based)) in {_PLACE}"),
    _form("home", rf"{_S}(?:has |have )?(?:moved|relocated)(?: house)?(?: from [^,]+?)? to {_PLACE}"),
    _form("employer", rf"{_S}(?:works?|working|{{IS}} (?:working|employed)) (?:at|for|by) {_PLACE}"),
    _form("employer", rf"{_S}(?:has |have )?started (?:working |a job |a new job )?(?:at|for) {_PLACE}"),
    _form("job", rf"{_S}(?:works?|working|{{IS}} working) as {_PLACE}"),
    _form("job", rf"{_S}{{IS}} (?:an? )?(?P<value>[\w -]+?) by (?:profession|trade)"),
    _form("name", rf"{_S}(?:{{IS}} (?:called|named)|goes by|prefers to be called) {_V}"),
    _form("birth date", rf"{_S}{{IS}} born (?:on|in) (?P<value>.*\d.*)"),
    _form("birth place", rf"{_S}{{IS}} born in (?P<value>\D+)"),
    _form("age", rf"{_S}{{IS}} (?P<value>\d{{1,3}}) years old"),
    _form("spouse", rf"{_S}{{IS}} (?:happily )?married to {_V}"),
    _form("favourite {thing}", rf"{_OWNER} favou?rite (?P<thing>[\w ]{{2,30}}?)(?: {{IS}}|:) {_V}"),
    _form("favourite {thing}", rf"(?:the )?favou?rite (?P<thing>[\w ]{{2,30}}?)(?: {{IS}}|:) {_V}"),
    _form("{thing}", rf"{_OWNER} (?P<thing>{_OWNED})(?: {{IS}}|:) {_V}"),
    _form("{thing}", rf"(?:the )?(?P<thing>{_OWNED}) (?:of|for) (?P<subject>[\w.' -]{{1,60}}?)(?: {{IS}}|:) {_V}"),
    _form("{thing}", rf"(?:the )?(?P<thing>{_PERSONAL})(?: {{IS}}|:) {_V}"),
    _form(
        "prefers {thing}", rf"{_S}prefers? (?P<value>[^,]+?) (?:over|to|rather than|instead of) (?P<other>[^,]+)"
    ),
    _form("uses as {thing}", rf"{_S}uses? (?P<value>[^,]+?) as (?:(?:her|his|their|my|the|an?) )?(?P<thing>[^,]+)"),
    _form("number of {thing}", rf"{_S}ha(?:s|ve) {_NUMBER} (?P<thing>{_THINGS})"),
    _form("allergic to {value}", rf"{_S}{{IS}} allergic to {_V}"),
    _form("{thing} {value}", rf"{_S}(?P<verb>likes?|loves?|liking|enjoys?) {_V}"),
    _form("{thing} {value}", rf"{_S}(?P<verb>(?:drink|eat|smok|us|play)(?:e?s|e|ing)?) {_V}"),
    _form("like {value}", rf"{_S}(?:dislikes?|hates?|can not stand) {_V}", denies=True),
    _form("is {thing}", rf"(?P<subject>{_SOMETHING}) {{IS}} (?P<thing>in|at|near) {_V}", decides=False),
)  # fmt: skip
