"""How often an order can be carried out: `save it as a note` means one note, and `a note for each` has no end."""

from __future__ import annotations

import re
from typing import Final

from annabelle.policy.intent.grammar import NAME, QUOTED
from annabelle.policy.intent.orders import Order

_NUMBER: Final = (
    r"(?:[2-9]|[1-9]\d|two|three|four|five|six|seven|eight|nine|ten|zwei|drei|vier|fünf|deux|trois|quatre|cinq|dos|"
    r"tres|"
    r"cuatro|cinco|dwa|dwie|trzy|cztery|pięć)"
)
_TIME: Final = (
    r"(?:am|pm|o'clock|uhr|h|heures?|horas?|godzin\w*|minut\w*|hours?|days?|weeks?|months?|years?|stunden?|tagen?|"
    r"wochen?|"
    r"monaten?|jahren?|jours?|semain\w+|mois|ans|días?|seman\w+|meses|años|dni|tygodni\w*|miesi\w+|lat|percent|euros?|"
    r"dollars?|pounds?|(?:jan|feb|mar|apr|may|mai|maj|jun|jul|aug|sep|oct|okt|nov|dec|dez|janv|fév|avr|juil|aoû|"
    r"déc|ene|abr|ago|dic|sty|lut|kwi|cze|lip|sie|wrz|paź|lis|gru)\w*|in|on|and|to|at|with|for|or|mit|und|bis|à|a|i|"
    r"do)\b"
)
_FOR_EACH: Final = re.compile(
    r"\b(?:each|every (?:one|single|mail|message)|both|all of them|separate\w*|individual\w*|several|multiple|"
    r"one by one|jede[mnrs]?|beide\w*|einzeln\w*|getrennt\w*|mehrere|chacun\w*|chaque|séparé\w*|plusieurs|cada|"
    r"ambos|ambas|separad\w+|varios|varias|każd\w+|obydwa|osobn\w+|kilka)\b"
    # Several of the very thing; "in my notes" is a place.
    r"|(?<!in my )(?<!in the )(?<!to my )(?<!into my )\b(?:mails|e-?mails|messages|notes|drafts|replies|answers|codes|"
    r"invites|invitations|files|mails an|nachrichten|notizen|entwürfe|antworten|dateien|fichiers|brouillons|réponses|"
    r"correos|mensajes|notas|borradores|respuestas|archivos|wiadomości|notatki|pliki)\b"
    rf"|\b{_NUMBER} (?!{_TIME})\w"
)
_TO_SEVERAL: Final = re.compile(
    r"\b(?:them|everyone|everybody|all|people|guests|attendees|participants|parents|team|family|friends|colleagues|"
    r"ihnen|alle\w*|leur|tous|toutes|todos|todas|diles|\w+les|wszyst\w+)\b"
)
# Of what lies one beside the other, each has a place of its own: "put everything on the list".
_SPREAD: Final = re.compile(
    r"\b(?:all|everything|every|some|many|few|couple|them|these|those|stuff|things|whatever|what|lists?|groceries|"
    r"shopping|schedule|timetable|programme|itinerary|alle\w*|einige|viele|diese|\w*liste|einkauf\w*|stundenplan|"
    r"programm|tous|toutes|tout|quelques|les|ces|des|courses|todos|todas|algun[oa]s|los|las|estos|estas|lista|compras?|"
    r"wszyst\w+|wiele|te|list[aęy]|zakup\w*)\b"
    r"|\b(?:the|my|our|his|her|their|any|new|important|upcoming|next|and) (?:\w+ )?(?!news\b)\w{2,}[^\Wsui']s\b(?!')"
    r"|\b(?:die|meine|unsere|neue) (?:\w+ )?[\w-]{3,}(?:en|er|e)\b"
)
_ONLY_ONE: Final = re.compile(
    r"\bremind me\b|\b(?:a|an|one|single|eine?n?|une?|una) (?:\w+ )?(?:to-?do|task|reminder|item|entry|event|"
    r"appointment|"
    r"meeting|note|file|contact|aufgabe|erinnerung|termin|eintrag|tâche|rappel|tarea|recordatorio|cita|zadanie)\b"
)
_ANOTHER: Final = re.compile(
    r",|;|&|\+|\b(?:and|n|plus|as well as|und|sowie|et|ainsi que|y|e|oraz|too|auch|aussi|también|też)\b|"
    r"\bi\b(?! (?:am|'m|have|will|can|can't|need|want|like|was|had|do|don't|would|should|got|get|think|could|may)\b)"
)
_LAST: Final = re.compile(r"(?:[\s,;&+]|\b(?:and|then|also|und|dann|et|puis|y|luego|i|potem))+$")


def times(order: Order, *, spreads: bool = False) -> int | None:
    """How many calls it can mean; None where there is no telling. `spreads`: each thing gets one of its own, as on a
    list or in a calendar, where a mail or a note holds them all."""
    words = QUOTED.sub(" ", NAME.sub(" x ", _LAST.sub("", order.words)))
    if _FOR_EACH.search(words) or ("send" in order.kinds and _TO_SEVERAL.search(words)):
        return None
    if spreads and _SPREAD.search(words) and not _ONLY_ONE.search(words):
        return None
    return 1 + len(_ANOTHER.findall(words))
