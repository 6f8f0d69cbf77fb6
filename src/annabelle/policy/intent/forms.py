"""The forms in which a verb gives an order, made from one entry of a word list by the rules of its language: a verb
that is known is known in all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind

_PLAIN_LETTERS: Final = str.maketrans("áàâäãåèêëíìîïóòôöõúùûüñçąćęłńśźż", "aaaaaaeeeiiiiooooouuuuncacelnszz")
# Not at the end of a word: "archivé" and "borré" say what was done, "archive" and "borre" what to do.
_INNER_ACCENT: Final = re.compile(r"é(?!e?s?\b)")
_GERMAN_CLITIC: Final = "(?:'?s)?"  # "schicks an Bob"
_LONG: Final = 5
_FRENCH_CLITICS: Final = r"(?:[- ](?:le|la|les|lui|leur|moi|nous|en|y)\b){0,2}"
_SPANISH_CLITICS: Final = r"(?:me|te|le|les|nos|se)?(?:l[oa]s?)?"
_SOFTENED: Final = {"z": "c", "c": "qu", "g": "gu"}


@dataclass(frozen=True, slots=True)
class Imperatives:
    """Regular expressions by kind of action, for whole words in lower case, and words that tell the language. `plain`
    ones are verbs wherever they stand; `placed` ones are nouns as well, and count only where a verb stands: "mail Ann"
    orders, "the mail from Ann" does not. `asked` are forms that order where somebody is addressed: "can you …"."""

    marks: str
    before: str
    """What an order may stand behind, besides a beginning and a comma."""
    condition: str
    """A condition an order may stand behind with no comma."""
    plain: Mapping[ActionKind, str]
    placed: Mapping[ActionKind, str]
    asked: Mapping[ActionKind, str]
    told: Mapping[ActionKind, str]
    """Forms that are nothing but an order, and so may stand behind what it is about: "den Termin lösch"."""


@dataclass(frozen=True, slots=True)
class VerbForms:
    """Of one kind of action: how it is ordered, how it is asked for, and the forms that are nothing but an order."""

    ordered: str
    asked: str
    told: str = ""


def folded(text: str) -> str:
    """As long as before and without most accents, which people leave out in a hurry."""
    return _INNER_ACCENT.sub("e", text.translate(_PLAIN_LETTERS))


def german(verbs: str, phrases: str = "") -> VerbForms:
    """`schick+ab|los` is a stem and the prefixes it may end with, `wirf/werf` one that changes, `antworte` one that
    keeps its e. With prefixes it is not this verb without one."""
    ordered: list[str] = []
    asked: list[str] = []
    told: list[str] = []
    for verb in verbs.split():
        stems, _, prefixes = verb.partition("+")
        changed, _, stem = stems.rpartition("/")
        imperative = (changed or (stem if stem.endswith("e") else f"{stem}e?")) + _GERMAN_CLITIC
        infinitive = stem + ("n" if stem.endswith(("e", "er", "el")) and not stem.endswith("ier") else "en")
        if not prefixes:
            ordered += [imperative, infinitive]
            asked += [infinitive, f"{stem.removesuffix('e')}e?st du"]
            # The short ones are nouns as well, "Plan" and "Kauf", and those in -er adjectives, "sicher".
            told += [stem] if len(stem) >= _LONG and not stem.endswith(("e", "er")) else []
            continue
        ordered.append(rf"{imperative} (?:.{{0,80}}? )?(?:{prefixes})")
        ordered.append(rf"(?:{prefixes}){infinitive}")
        asked += [rf"(?:{prefixes}){infinitive}", rf"{stem}e?st du .{{0,80}}? (?:{prefixes})"]
    return _forms(ordered, asked, phrases, told)


def french(verbs: str, phrases: str = "") -> VerbForms:
    """`ajouter` is a verb that is regular, `réponds/répondez/répondre` one that is not, `note~r` one that is a noun as
    well, and none where something of it follows."""
    ordered: list[str] = []
    asked: list[str] = []
    for verb in verbs.split():
        told, infinitive = _french_forms(verb)
        ordered += [told + _FRENCH_CLITICS, infinitive]
        asked.append(infinitive)
    return _forms(ordered, asked, phrases)


def _french_forms(verb: str) -> tuple[str, str]:
    if "/" in verb:
        *told, infinitive = verb.split("/")
        return f"(?:{'|'.join(told)})", infinitive
    if "~" in verb:
        infinitive = verb.replace("~", "")
        return rf"{infinitive[:-1]}z?(?! (?:de|du|des) | d')", infinitive
    return f"{verb[:-1]}z?", verb


def spanish(verbs: str, phrases: str = "") -> VerbForms:
    """`guardar` is a verb that is regular, `mover/muev` one whose stem changes, `reservar~` one that is a noun as well,
    `pon/ponga/poner` one that is not regular."""
    ordered: list[str] = []
    asked: list[str] = []
    for verb in verbs.split():
        told, infinitive = _spanish_forms(verb)
        ordered += [told, infinitive + _SPANISH_CLITICS]
        asked.append(infinitive + _SPANISH_CLITICS)
    return _forms(ordered, asked, phrases)


def _spanish_forms(verb: str) -> tuple[str, str]:
    if verb.count("/") > 1:
        *told, infinitive = verb.split("/")
        return f"(?:{'|'.join(told)}){_SPANISH_CLITICS}", infinitive
    infinitive, _, stem = verb.rstrip("~").partition("/")
    of_nothing = r"(?! (?:de|del) )" if verb.endswith("~") else ""
    stem = stem or infinitive[:-2]
    if infinitive.endswith("ar"):
        soft = stem[:-1] + _SOFTENED.get(stem[-1], stem[-1])
        return f"(?:{stem}a|{soft}e){_SPANISH_CLITICS}{of_nothing}", infinitive
    return f"{stem}[ea]{_SPANISH_CLITICS}{of_nothing}", infinitive


def polish(verbs: str, phrases: str = "") -> VerbForms:
    """`wyślij/wysłać` is how it is ordered, and how it is asked for."""
    pairs = [verb.partition("/") for verb in verbs.split()]
    ordered = [f"{told}(?:cie)?" for told, _, _ in pairs]
    asked = [infinitive for _, _, infinitive in pairs if infinitive]
    return _forms([*ordered, *asked], asked, phrases, ordered)


def _forms(ordered: Iterable[str], asked: Iterable[str], phrases: str, told: Iterable[str] = ()) -> VerbForms:
    return VerbForms("|".join([*([phrases] if phrases else []), *ordered]), "|".join(asked), "|".join(told))


def spoken(marks: str, before: str, condition: str, forms: Mapping[ActionKind, VerbForms]) -> Imperatives:
    """A language whose verbs are told by their forms alone."""
    return Imperatives(
        marks=marks,
        before=before,
        condition=condition,
        plain={kind: form.ordered for kind, form in forms.items()},
        placed={},
        asked={kind: form.asked for kind, form in forms.items() if form.asked},
        told={kind: form.told for kind, form in forms.items() if form.told},
    )
