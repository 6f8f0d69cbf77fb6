"""Passwords and codes told in a sentence: "my password is …", "das WLAN-Passwort lautet …", "PIN 1234"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from annabelle.core.secret_shapes import ASSIGNED
from annabelle.servers.memory.secret_words import ABOUT, AMBIGUOUS, CODES, KEYS, PASSWORDS, SEEDS, Names

PASSWORD = "password"  # noqa: S105  the kind's name
CODE = "PIN or access code"
SEED = "recovery phrase"
KEY = "secret key or token"
AWS_SECRET = "AWS secret key"  # noqa: S105  the kind's name

_IS = r"(?:is|are|was|be|equals|becomes|to|ist|lautet|war|es|est|e|era|esta|ar|er|on|to jest|это)"
# "for the guest wifi", "of my router", "am Server": what a secret may belong to, between its name and its value.
_WHOSE = r"(?:[ ]+(?:for|of|to|at|on|in|fur|vom|von|des|der|am|de|del|du|da|do|para|per|til)\b[^\n.:=;!?]{1,40}?)?"
_VERB = rf"[ \t]+(?P<verb>{_IS})\b[: \t]+(?:now |still |set to |jetzt )?|[ \t]*[是는은は][ \t]*"
_SAID = rf"[ \t]*(?P<sign>[:=]|->)[ \t]*|{_VERB}"
_BETWEEN = rf"(?:{_WHOSE}(?:[ \t]+(?:now|currently|still|jetzt)\b)?(?:{_SAID})|[ \t]+(?P<bare>))"
_VALUE = r"(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;]+)"


def _told(names: Names, value: str = _VALUE) -> re.Pattern[str]:
    # Another word may be joined before ("wifi_password", "WLAN-Passwort"); a longer word is another word.
    return re.compile(rf"(?i)(?<![a-z])(?:{names.pattern})(?![a-z]){_BETWEEN}{value}")


_PASSWORD, _AMBIGUOUS, _CODE, _KEY = _told(PASSWORDS), _told(AMBIGUOUS), _told(CODES), _told(KEYS)
_SEED = _told(SEEDS, r"(?P<value>(?:[a-z]+[ ,]+){5,}[a-z]+)")
_AFTER = re.compile(
    rf"(?i)(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;:]{{4,60}})(?P=quote)[ ]+(?:is|as|ist|als|es|como|est|comme)[ ]+"
    rf"(?:[a-z]+(?:'s)?[ ]+){{0,3}}(?:{PASSWORDS.pattern}|{CODES.pattern})"
    r"(?=[ ]*(?:$|[.,;!?)]|(?:for|of|to|on|at|in)\b))"
)
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=_-])")
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile(r"\d"))
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d(?:-\d\d.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d.*|(?:19|20)\d\d")
_PARTICIPLE = re.compile(r"[a-z]+(?:ly|ed|ing)|(?:ge|be|ver|zuruck)[a-z]+(?:t|en)")
_ENDS_HERE = re.compile(r"\s*(?:$|[.!?\n,;)])")
_PHRASE = re.compile(r"(?: [a-z]+){2,7}(?=[.!?\n,;)]|\s*$)")

Found = Iterator[tuple[str, int, int]]


def told_in(text: str) -> Found:
    """Every secret told in words: its kind, and where its value begins and ends."""
    lowered = text.lower()
    for kind, names, pattern, is_one in _RULES:
        if names.may_be_in(lowered):
            for match in pattern.finditer(text):
                if is_one(match):
                    yield kind, match.start("value"), match.end("value")
    for match in ASSIGNED.finditer(text):
        if _made_up(_clean(match[3])):
            yield KEY, match.start(3), match.end(3)
    for match in _AWS_SECRET.finditer(text):
        if all(part.search(match[0]) for part in _MIXED) and re.search("[a-z]{8}", match[0]) is None:
            yield AWS_SECRET, match.start(), match.end()


def _is_password(match: re.Match[str]) -> bool:
    value = _clean(match["value"])
    if not value or _DATE_OR_TIME.fullmatch(value):
        return False
    if _made_up(value):
        return True
    if match["bare"] is not None:
        return False
    if match["quote"]:
        return True
    if (phrase := _PHRASE.match(match.string, match.end("value"))) and ABOUT.isdisjoint(phrase[0].lower().split()):
        return True  # words that make no sentence are how passphrases are made
    if len(value) < 3 or value.lower() in ABOUT or _PARTICIPLE.fullmatch(value.lower()):
        return False
    return match["sign"] is not None or _ENDS_HERE.match(match.string, match.end("value")) is not None


def _is_likely_password(match: re.Match[str]) -> bool:
    return match["bare"] is None and _made_up(_clean(match["value"]))


def _is_code(match: re.Match[str]) -> bool:
    value = _clean(match["value"])
    if re.search(r"(?i)pin[ _-]?code", match[0]) and re.fullmatch(r"[1-9]\d{5}", value):
        return False  # the postal codes of India are called so
    return re.fullmatch(r"(?!\d{4}-\d\d-)(?=.*\d{3})[\w#*-]{3,16}|\d{1,3}-\d{1,3}-\d{1,3}", value) is not None


def _is_key(match: re.Match[str]) -> bool:
    value = _clean(match["value"])
    if match["sign"] == "=":
        return len(value) >= 4 and value.lower() not in ABOUT
    return len(value) >= 8 and _made_up(value)


def _is_named_after(match: re.Match[str]) -> bool:
    return bool(match["quote"]) or _made_up(_clean(match["value"]))


def _clean(value: str) -> str:
    return value.strip("().,!?:;<>[]{}\"'`*")


def _made_up(value: str) -> bool:
    """Not a word of any language: digits or signs among letters, or four digits and more."""
    if _DATE_OR_TIME.fullmatch(value) or "://" in value:
        return False
    letters, digits = sum(c.isalpha() for c in value), sum(c.isdigit() for c in value)
    signs = sum(not c.isalnum() and c not in "-'./_&" for c in value)
    return (letters > 0 and (digits + signs) > 0 and len(value) >= 4) or digits >= 4


def _always(match: re.Match[str]) -> bool:
    return True


_RULES = (
    (PASSWORD, PASSWORDS, _PASSWORD, _is_password),
    (PASSWORD, PASSWORDS, _AFTER, _is_named_after),
    (PASSWORD, AMBIGUOUS, _AMBIGUOUS, _is_likely_password),
    (CODE, CODES, _CODE, _is_code),
    (KEY, KEYS, _KEY, _is_key),
    (SEED, SEEDS, _SEED, _always),
)
