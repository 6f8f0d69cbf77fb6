"""Finds card, account and id numbers; check digits and format tell them from phone, order and barcode numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

CARD = "card number"
ACCOUNT = "bank account number"
ID = "id number"

NumberCheck = Callable[[str], bool]

_FEWEST_DIGITS = 5


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A format, and the check that tells real numbers from lookalikes."""

    kind: str
    shape: re.Pattern[str]
    check: NumberCheck


_DIGIT_GROUPS = re.compile(r"(?<![\w+])\d+(?:[ .-]{1,2}\d+)*(?!\w)")
# Printed formats of cards: in one piece, in fours (the rest at the end), 4-6-5 and 4-6-4, or digit by digit.
_PRINTED = re.compile(r"\d{13,19}|\d{4}(?:\D+\d{4}){2,3}(?:\D+\d{1,4})?|\d{4}\D+\d{6}\D+\d{4,5}|\d(?:\D+\d)+")
_FIRST_GROUPS = frozenset({1, 4, *range(13, 20)})
_LONGEST = 19 + 18 * 2  # digits, and separators between them
_NAMED_CARD = re.compile(
    r"(?i)\b(?:credit|debit|bank|visa|master|kredit|giro)?[ -]?(?:cards?|karten?)[ -]?(?:number|no\.?|nr\.?|nummer|#)?"
    r"[ :=]*(?:is|ist)?[ :=]*(\d(?:[ -]?\d){12,18})(?!\d)"
)
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile("4"), frozenset({13, 16, 19})),
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)"), frozenset({16})),
    (re.compile("3[47]"), frozenset({15})),
    (re.compile(r"3(?:0[0-5]|[689])"), frozenset({14, 16})),
    (re.compile("35(?:2[89]|[3-8])"), frozenset({16})),
    (re.compile("6(?:011|4[4-9]|5)"), frozenset({16, 19})),
    (re.compile("62"), frozenset({16, 17, 18, 19})),
    (re.compile("5[0678]|6"), frozenset({16, 18, 19})),
)
# A number of unusual length is rarely a card if the text calls it something else.
_SOMETHING_ELSE = re.compile(
    r"(?i)(?:phone|tel|mobile|cell|fax|call|whatsapp|order|tracking|parcel|invoice|ticket|barcode|ean|isbn|imei|serial)"
    r"\W*(?:number|no|nr|id|code|#)?\W*(?:is|at|on)?\W*$"
)
_COMMON_LENGTHS = frozenset({14, 15, 16})


def is_luhn_valid(digits: str) -> bool:
    """Checks the check digit of cards and of several countries' ids."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _strip_separators(text: str) -> str:
    return "".join(filter(str.isalnum, text)).upper()


def _find_cards(text: str) -> Iterator[tuple[str, int, int]]:
    for run in _DIGIT_GROUPS.finditer(text):
        groups = [(run.start() + group.start(), run.start() + group.end()) for group in re.finditer(r"\d+", run[0])]
        for first, (start, end) in enumerate(groups):
            if end - start not in _FIRST_GROUPS or text[start] not in "23456":
                continue
            for _, last in groups[first : first + 19]:  # an expiry date may follow, so every length is tried
                if 13 <= last - start <= _LONGEST and _is_card(text, start, last):
                    yield CARD, start, last
    for match in _NAMED_CARD.finditer(text):
        yield CARD, match.start(1), match.end(1)


def _is_card(text: str, start: int, end: int) -> bool:
    printed = text[start:end]
    digits = _strip_separators(printed)
    if not any(len(digits) in lengths and prefix.match(digits) for prefix, lengths in _ISSUERS):
        return False
    if _PRINTED.fullmatch(printed) is None or len(set(digits)) == 1 or not is_luhn_valid(digits):
        return False
    return len(digits) in _COMMON_LENGTHS or not _SOMETHING_ELSE.search(text[max(0, start - 40) : start])


def _is_iban(found: str) -> bool:
    bare = _strip_separators(found)
    return 15 <= len(bare) <= 34 and int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _is_spanish_id(found: str) -> bool:
    bare = _strip_separators(found)
    number = bare[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == bare[-1]


_ITALIAN_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
         10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip


def _is_italian_id(found: str) -> bool:
    bare = found.upper()
    even = sum(int(c) if c.isdigit() else ord(c) - 65 for c in bare[1:15:2])
    return chr(65 + (even + sum(_ITALIAN_ODD[c] for c in bare[0:15:2])) % 26) == bare[15]


def _is_french_id(found: str) -> bool:
    bare = _strip_separators(found)
    number = bare[:13].replace("2A", "19").replace("2B", "18")
    return 97 - int(number) % 97 == int(bare[13:])


def _is_brazilian_id(found: str) -> bool:
    digits = [int(c) for c in _strip_separators(found)]
    if len(set(digits)) == 1:
        return False
    for count in (9, 10):
        rest = sum(d * w for d, w in zip(digits[:count], range(count + 1, 1, -1), strict=True)) * 10 % 11 % 10
        if rest != digits[count]:
            return False
    return True


def _is_chinese_id(found: str) -> bool:
    bare = found.upper()
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    rest = sum(int(c) * w for c, w in zip(bare[:17], weights, strict=True)) % 11
    return _is_date(bare[6:14]) and "10X98765432"[rest] == bare[17]


def _is_swedish_id(found: str) -> bool:
    digits = _strip_separators(found)[-10:]
    return _is_date("20" + digits[:6]) and is_luhn_valid(digits)


def _is_date(digits: str) -> bool:
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True


def _accept_any_number(found: str) -> bool:
    return True


def _make_kind(kind: str, shape: str, check: NumberCheck = _accept_any_number) -> NumberKind:
    return NumberKind(kind, re.compile(rf"(?<![\w.+-])(?:{shape})(?![\w-]*\w)"), check)


_KINDS: tuple[NumberKind, ...] = (
    _make_kind(ACCOUNT, r"[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?", _is_iban),
    _make_kind(ID, r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}"),  # United States
    _make_kind(ID, r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]"),  # United Kingdom
    _make_kind(ID, r"(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z]", _is_spanish_id),
    _make_kind(ID, r"(?i:[a-z]{6}\d{2}[a-z]\d{2}[a-z]\d{3}[a-z])", _is_italian_id),
    _make_kind(ID, r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}", _is_french_id),
    _make_kind(ID, r"\d{3}\.\d{3}\.\d{3}-\d{2}", _is_brazilian_id),
    _make_kind(ID, r"[1-9]\d{16}[\dXx]", _is_chinese_id),
    _make_kind(ID, r"(?:19|20)?\d{6}[-+]\d{4}", _is_swedish_id),
)

# Numbers without a check digit count if the text names them.
_NAMED_ID = re.compile(
    r"(?i)\b(?:ssn|social security|passport|national id(?:entity)?|identity card|id card|tax(?:payer)? id|itin|nhs|"
    r"driv(?:er'?s?|ing) licen[cs]e|personalausweis|reisepass|ausweis|steuer-?id\w*|sozialversicherung\w*|"
    r"aadhaar|pan card|dni|nie|nif|curp|cpf|bsn|pesel|codice fiscale|passeport|pasaporte|numero de securite sociale)"
    r"[ -]?(?:card )?(?:number|no\.?|nr\.?|nummer|numero|#)?[ :=#]*(?:is|ist|lautet|es|est|e)?[ :=#]*"
    r"([A-Z]{0,4}\d(?:[ .-]?[A-Z0-9]){5,17})(?!\w)"
)
_DATE = re.compile(r"(?:19|20)\d\d[ .-]\d{1,2}[ .-]\d{1,2}(?:\D.*)?|\d{1,2}[ .-]\d{1,2}[ .-](?:19|20)?\d\d(?:\D.*)?")


def find_id_numbers(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields the kind, start and end of every such number."""
    if sum(map(str.isdigit, text)) < _FEWEST_DIGITS:
        return
    yield from _find_cards(text)
    for known in _KINDS:
        for match in known.shape.finditer(text):
            if known.check(match[0]):
                yield known.kind, match.start(), match.end()
    for match in _NAMED_ID.finditer(text):
        if sum(map(str.isdigit, match[1])) >= _FEWEST_DIGITS and _DATE.fullmatch(match[1]) is None:
            yield ID, match.start(1), match.end(1)
