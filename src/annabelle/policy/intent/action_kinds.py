"""The kinds of action people ask for, and the verbs they ask with, by language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

ActionKind = Literal[
    "send", "create", "update", "delete", "schedule", "remember", "transfer", "pay", "run", "control", "search", "done"
]


Verbs = Mapping[ActionKind, str]
"""Regular expressions that fit whole words."""

ENGLISH: Final[Verbs] = {
    "send": r"send|e-?mail|mail|text|message|reply|answer|forward|post|publish|share|notify|inform|tell|submit|"
    r"write to",
    "create": r"create|make|write|add|generate|draft|set up|open",
    "update": r"update|change|edit|modify|rename|move|replace|correct|mark|archive|restore|copy|adjust|label|"
    r"assign",
    "delete": r"delete|remove|erase|clear|cancel|trash|unsubscribe|get rid of|throw away|purge",
    "schedule": r"schedule|book|reschedule|remind|reminder|alarm|timer|every (?:day|week|morning|hour)|calendar|"
    r"set",
    "remember": r"save|store|remember|memori[sz]e|note|keep|record|write down",
    "transfer": r"download|upload|install|export|import|back up|fetch",
    "pay": r"pay|order|purchase|buy|transfer",
    "run": r"execute|run|start",
    "control": r"turn|switch|enable|disable|activate|deactivate|start|stop|restart",
    "search": r"search|look|check|find|browse|fetch|read|what|who|when|where|how",
}

GERMAN: Final[Verbs] = {
    "send": r"send\w*|schick\w*|verschick\w*|antworte?\w*|leite",
    "create": r"erstell\w*|leg\w*|füg\w*|richte|schreib\w*|mach\w*",
    "update": r"aktualisier\w*|änder\w*|benenn\w*|verschieb\w*|bearbeit\w*|ersetz\w*|kopier\w*",
    "delete": r"lösch\w*|entfern\w*|stornier\w*|sag\w* .{1,80} ab",
    "schedule": r"plan\w*|buch\w*|trag\w*|erinner\w*|termin\w*",
    "remember": r"speicher\w*|merk\w*|notier\w*",
    "transfer": r"lad\w*|installier\w*|exportier\w*|importier\w*",
    "pay": r"bezahl\w*|überweis\w*|bestell\w*|kauf\w*",
    "run": r"führ\w*|start\w*",
    "control": r"schalt\w*|aktivier\w*|deaktivier\w*|stopp\w*",
    "search": r"such\w*|schau\w*|such|sieh\w*|was|wer|wann|wo|wie",
}

FRENCH: Final[Verbs] = {
    "send": r"envo\w+|transme\w+|répond\w*|publi\w+",
    "create": r"cré\w+|ajout\w+|rédig\w+",
    "update": r"modifi\w+|renomm\w+|déplac\w+|chang\w+|mets",
    "delete": r"supprim\w+|effac\w+|annul\w+|retir\w+",
    "schedule": r"planifi\w+|programm\w+|réserv\w+|rappel\w+",
    "remember": r"enregistr\w+|sauvegard\w+|mémoris\w+|note\w*|retien\w*",
    "transfer": r"télécharg\w+|install\w+|import\w+|export\w+",
    "pay": r"pay\w+|command\w+|achèt\w+|achet\w+",
    "run": r"exécut\w+|lanc\w+",
    "search": r"cherch\w+|recherch\w+|vérifi\w+|regard\w+",
}

SPANISH: Final[Verbs] = {
    "send": r"env[ií]\w*|mand\w+|respond\w+|reenv[ií]\w*|public\w+",
    "create": r"cre\w+|añad\w+|agreg\w+",
    "update": r"actualiz\w+|modific\w+|cambi\w+|muev\w+|renombr\w+",
    "delete": r"elimin\w+|borr\w+|cancel\w+|quit\w+",
    "schedule": r"program\w+|reserv\w+|agend\w+|recuérd\w+",
    "remember": r"guard\w+|almacen\w+|anot\w+|recuerd\w+",
    "transfer": r"descarg\w+|sub\w+|instal\w+|import\w+|export\w+",
    "pay": r"pag\w+|compr\w+|pid\w+",
    "run": r"ejecut\w+",
    "search": r"busc\w+|consult\w+|revis\w+|mir\w+",
}

POLISH: Final[Verbs] = {
    "send": r"wyślij|odpisz|prześlij|opublikuj",
    "create": r"utwórz|stwórz|dodaj",
    "update": r"zaktualizuj|zmień|przenieś",
    "delete": r"usuń|skasuj|odwołaj",
    "schedule": r"zaplanuj|zarezerwuj|ustaw|przypomnij",
    "remember": r"zapisz|zapamiętaj",
    "transfer": r"pobierz|zainstaluj",
    "pay": r"zapłać|kup|zamów",
    "run": r"uruchom|wykonaj",
    "search": r"wyszukaj|sprawdź|znajdź",
}

ASKED: Final = (ENGLISH, GERMAN, FRENCH, SPANISH, POLISH)


QUESTION: Final = re.compile(
    r"\W*(?:what|who|whose|why|how|when|where|which|explain|describe|was|wer|warum|wie|wann|wo|qui|pourquoi|comment|"
    r"qué|quién|cómo|co|kto|jak|dlaczego)\b[^.!?\n]*[?.!]*\s*"
)
_ASKED: Final[tuple[dict[ActionKind, re.Pattern[str]], ...]] = tuple(
    {kind: re.compile(rf"\b(?:{words})\b") for kind, words in verbs.items()} for verbs in ASKED
)


def requested_kinds(asked: str) -> frozenset[ActionKind]:
    """The kinds of action a person's message may ask for."""
    text = asked.lower()
    if QUESTION.fullmatch(text):
        return frozenset({"search"})
    kinds: set[ActionKind] = set()
    for language in _ASKED:
        kinds |= {kind for kind, verbs in language.items() if verbs.search(text)}
    return frozenset(kinds)
