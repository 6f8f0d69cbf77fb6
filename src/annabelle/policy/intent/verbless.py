"""Orders without a verb of their own: `eggs on the list`, `old.md can go`, `dentist to Thursday`, `note: …`."""

from __future__ import annotations

import re
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.grammar import NAME, QUOTED, hidden

_PLEASE: Final = (
    r"(?:pls|plz|please|asap|thanks|thx|too|as well|now|bitte|danke|damit|noch|auch|rein|dazu|drauf|stp|svp|merci|"
    r"aussi|por favor|porfa|porfi|gracias|también|proszę|dzięki|też)"
)
# An order begins here, or behind what it hangs on: "if yes todo 'bike to work'".
_BEGINS: Final = (
    r"^\W*(?:(?:and|then|also|ok|okay|hey|hi|please|pls|if (?:yes|so|not|it is)|in that case|und|dann|auch|bitte|"
    r"(?:wenn|falls) ja|et|puis|si oui|y|luego|si (?:es )?así|i|potem|jeśli tak)[,:]? )*"
)
_SMALL: Final = (
    r"(?:(?:an?|one|another|new|quick|short|brief|little|nice|(?:happy )?birthday|thank[- ]you|eine?n?|ne|neue[nr]?|"
    r"kurze[nr]?|kleine[nr]?|une?|nouve\w+|petite?|una?|nuev[oa]|breve|pequeñ[oa]|now\w+|krótk\w+|mał\w+) )*"
)
_KEEPER: Final = (
    r"(?:[\w-]*lists?|to-?dos?(?:[ -]list[es]?)?|tasks?|groceries|shopping|(?:[\w'-]+ ){0,1}notes?|cal|cal[ae]nd[ae]r|"
    r"diary|planner|[\w-]*listen?|aufgaben?|[\w-]*kalender|[\w-]*notiz(?:en)?|liste|tâches|calendrier|agenda|listas?|"
    r"tareas|calendario|notas?|list[ęaey]|zada[ńn]|kalendarz\w?|notat\w+)"
    r"(?: de (?:las? )?(?:courses|compras?|tâches|tareas)| zakupów| zadań)?"
)
_WHOSE: Final = (
    r"(?:(?:the|my|our|an?|die|den|der|dem|das|meine?[nmr]?|unsere?[nmr]?|eine?[nmr]?|ne|la|le|les|ma|mon|mes|mi|mis|"
    r"el|las|los|una?|une|moj\w+) )?"
)
_AT: Final = r"(?:on|onto|in|into|to|auf|ins?|im|zu[rm]?|sur|dans|à|en|a|al|na|do|w)"
_THERE: Final = rf"\b{_AT} {_WHOSE}(?:(?!his\b|her\b|their\b|your\b)[\w'-]+(?<!'s) ){{0,2}}?{_KEEPER}"
# Until when, and with what: "on the todo list, by Friday"; "in my calendar with the recipe in the description".
_AND_HOW: Final = (
    r"(?:,? ?(?:for|by|until|till|at|on|w|w/|with|from|every|bis|am|um|für|mit|ab|jeden|pour|avec|à|pour|para|con|"
    r"z|o|od|(?:aux?|el|le|dès|avant|antes) )\b[^?]{0,80}|: [^?]{0,200})?"
)
_ENDS: Final = rf"\W*(?:{_PLEASE}\W*)*$"
# Where nothing is asked or looked at, to say where something belongs is to say that it be put there.
_PLACED_THERE: Final = re.compile(rf"{_THERE}(?:\W+{_PLEASE})*{_AND_HOW}{_ENDS}|, ?{_KEEPER}\W+{_PLEASE}{_ENDS}")
_AS_SOMETHING: Final = re.compile(
    r"(?:\b(?:as|into|als|comme|en|como|jako|in|w|dans) (?:an? |one |eine?n? |ne |une |una? )?|(?:→|->|=>) ?(?:my |"
    r"the )?)"
    r"(?:(?:short|quick|new|kurze|neue|nueva|nouvelle) )?(?:notes?|to-?dos?|tasks?|(?:\w+ )?lists?|reminders?|notiz|"
    r"aufgabe|erinnerung|"
    rf"entwurf|tâche|rappel|brouillon|nota|tarea|recordatorio|borrador|notatk[aęi]|zadanie){_ENDS}"
)
_BELONGS: Final = re.compile(
    r"\b(?:(?:goes|go|belongs?|(?:should|needs? to|has to|have to|must|ought to) (?:go|be)|ha[sv]e? to be)|"
    r"(?:geh(?:ört|ören|en|t)|kommt|kommen|muss|müssen|sollen?|sollten?)(?: (?:noch|auch|bitte))?|"
    r"(?:va|vont|doi(?:t|vent) (?:aller|être)|van|tienen? que ir|debería ir|ma|mają|musi|muszą|powin\w+)"
    rf"(?: (?:aussi|también|też|być|trafić))?) {_AT} {_WHOSE}(?:[\w'-]+ ){{0,2}}?{_KEEPER}\b|"
    rf"\b(?:auf|in) {_WHOSE}(?:[\w'-]+ ){{0,2}}?{_KEEPER}(?: [\w-]+)? (?:gehör(?:t|en)|kommt|kommen|muss|müssen|"
    rf"fehl\w+)\b|\b{_KEEPER}(?: [\w-]+)? (?:(?:also|still|auch|noch) )?(?:needs|lacks|misses|braucht)\b"
)
# "I want the eggs on my list."
_WANTED_THERE: Final = re.compile(
    rf"\b(?:i(?:'d like| want| need| would like)(?! to\b| you\b)|(?:brauche?|will|möchte|hätte)(?: gerne?)? ich|"
    rf"je (?:veux|voudrais)|quiero|chcę) (?:[\w'-]+ ){{0,5}}?{_THERE}{_ENDS}"
)
_ARCHIVED: Final = re.compile(
    rf"\b(?:to|into|in) (?:the |my )?archives?{_ENDS}|\bins archiv{_ENDS}|\baux? archives?{_ENDS}|\bal archivo{_ENDS}|"
    rf"\bdo archiwum{_ENDS}"
)
# "Shopping list: milk."
_KEPT_THERE: Final = re.compile(
    rf"{_BEGINS}(?:\w+ )?(?:\w*list|to-?dos?|groceries|tasks?|reminder|note|\w*liste(?: de courses)?|aufgabe|"
    r"erinnerung|notiz|rappel|pense-bête|tâche|"
    r"lista(?: de la compra| zakupów)?|tarea|recordatorio|nota|zadanie|przypomnienie|notatka)"
    r"(?: (?:to self|to myself|for me|an mich|für mich|pour moi|para mí|dla mnie))?\s?:\s*_|"
    rf"{_BEGINS}(?:cal[ae]nd[ae]r|kalender|agenda|calendario|kalendarz|(?:things|stuff) to (?:buy|get|do))\s?:\s*\w"
)
# A thing that is made, called for by its name alone: "screenshot of the page, please"; "new list Gifts with a book".
_CALLED_FOR: Final = re.compile(
    rf"{_BEGINS}{_SMALL}(?!(?:notes|drafts|events|reminders)\b)(?:screen ?shot|screen ?grab|qr(?:[ -]?code)?|reminder|"
    rf"to-?do|draft|note|(?:calendar )?(?:event|entry)|bildschirmfoto|erinnerung|notiz|"
    r"entwurf|termin|kalendereintrag|capture d'écran|rappel|brouillon|captura(?: de pantalla)?|recordatorio|borrador|"
    r"nota|zrzut ekranu|przypomnienie|"
    r"notatka)s?(?: (?:of|for|to|about|with|from|von|für|an|mit|pour|avec|de|à|para|con|a|z|ze|dla|o)\b|\s?:\s|"
    r" [_'\"“„«])"
    rf"|{_BEGINS}(?:an? )?(?:new|another|neue[rsn]?|nouve(?:lle|au)|nuev[oa]|now[aąey]) (?:[\w-]+ )?"
    r"(?:list[aeę]?|to-?do|task|note|notiz|aufgabe|tâche|tarea|nota|notatk[aę]|zadanie)\b"
    rf"|{_BEGINS}(?:an? |eine? |une? |una? )?(?:appointment|meeting|termin|besprechung|rdv|rendez-vous|réunion|cita|"
    r"reunión|wizyta|spotkanie)\b[^?]{0,60}\b(?:at |um |à |a las? |o |godz\w*)?\d{1,2}(?:[:.h]\d\d| ?(?:am|pm|uhr|"
    r"h))?\b"
)
_CAN_GO: Final = re.compile(
    r"(?:^\W*_\S*|\b(?:the|this|that|these|those|my|our|all|old)\b(?! (?:kids|children|boys|girls|guests|team|family|"
    r"parents)\b)(?: [\w'-]+){1,5}) (?:can|may|could|should|has to|needs to) (?:all )?(?:go|be (?:deleted|removed|"
    rf"binned|trashed|thrown (?:out|away))){_ENDS}|\b(?:can|may|should) go from (?:the|my|our) \w+|"
    r"(?<!ich )(?<!wir )(?<!er )\b(?:kann|können|muss|müssen|darf|dürfen)(?: \w+){0,2} (?:weg|raus|gelöscht werden)\b|"
    rf"^\W*_\S* (?:out|raus|weg|fuera){_ENDS}|"
    r"\b(?:raus|weg) damit\b|\b(?:peut|peuvent) (?:partir|sauter|disparaître|être (?:supprim|effac)é\w*)\b|"
    r"\b(?:puede|pueden) (?:borrarse|irse|eliminarse)\b|\b(?:można|może) (?:usunąć|skasować|wyrzucić|zniknąć)\b|"
    r"\b(?:(?:in|into|to) the (?:trash|bin)|in den (?:papierkorb|müll)|à la (?:poubelle|corbeille)|a la (?:basura|"
    rf"papelera)|do (?:kosza|usunięcia)){_ENDS}"
)
_DAY: Final = (
    r"(?:(?:next |this |nächsten |kommenden |el |le |la |las |am )?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|"
    r"sun)(?:day)?|tomorrow|(?:\w+tag|mittwoch|sonnabend|morgen)|demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|"
    r"dimanche|mañana|lunes|martes|miércoles|jueves|viernes|sábado|domingo|jutro|poniedziałek|wtorek|środę|czwartek|"
    r"piątek|sobotę|niedzielę|\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|uhr|h)?)"
)
# "Dentist to Thursday", "den Zahnarzt eine Stunde nach hinten".
_MOVED: Final = re.compile(
    rf"{_BEGINS}(?!(?:from|i|we|he|she|they|ich|wir|je|open|welcome|von|de|od)\b|{_DAY}\b|"
    rf"(?:\w+ )?{_KEEPER}\b)(?:[^\W\d][\w'-]* ){{1,4}}?"
    rf"(?:(?:needs to|has to|should|must|muss|soll) (?:go |move )?)?(?:(?:to|till|until|auf|à|au|al|a|na|->|→) {_DAY}\b"
    rf"[^?,]{{0,30}}|(?:(?:at|on|am|um|à|le|el|a las?|o|w) )?{_DAY} (?:instead|rather|statt|plutôt|au lieu|mejor|"
    rf"en vez|zamiast)\b[^?,]{{0,30}}|(?:statt|anstatt|zamiast) \S+ {_DAY}\b[^?,]{{0,30}}|"
    r"(?:an? |\d+ |half an |two |eine |zwei |une |deux |una |dos |o )?(?:hours?|days?|weeks?|minutes|min|"
    r"stunden?|tage?|wochen?|minuten|heures?|jours?|semaines?|horas?|días?|semanas?|godzin\w*|dzień|tydzień) "
    r"(?:later|earlier|back|forward|nach hinten|nach vorne?|später|früher|plus (?:tard|tôt)|más (?:tarde|temprano)|"
    rf"antes|później|wcześniej)){_ENDS}"
)
# Somebody is to have it: "minutes to bob@example.com please", "bob soll das Protokoll kriegen", "yes to bob".
_SENT_THERE: Final = re.compile(
    r"\b(?:to|an|à|a|do) \S+ (?:as an? attachments?|by e?-?mail|via e?-?mail|per e?-?mail|als anhang|par mail|"
    r"por correo|mailem)\b|^\W{0,5}\w\S*(?: \S+){0,3} (?:to|an|à|a|do) \S+,? (?:pls|plz|please|asap|bitte|stp|svp|"
    r"por favor|porfa|proszę)(?:\W*$|,)|\b(?:and|und|et|y|i|please|pls|bitte|stp|porfa)(?: then| dann| puis| luego|"
    r" potem)?(?: over| off)? (?:to|an|à|a|do) \S+@\S+(?: with it)?\s*$|"
    rf"^\W*{_SMALL}(?:e-?mail|mail|message|nachricht|courriel|correo|mensaje|wiadomość) (?:to|an|à|a|do) \w+|"
    r"\b(?:soll|sollen|should|doit|debe|ma) (?:[\w'-]+ ){1,4}(?:kriegen|bekommen|erhalten|recevoir|recibir|dostać)\W*$|"
    r"^\S+@\S+ should (?:get|have|receive) \w+|"
    r"^\W*(?:yes|ja|oui|sí|tak) (?:to|an|für|à|a|dla) (?!me\b|that\b|this\b|it\b|all\b|the\b)\w+"
)
_TOLD: Final = re.compile(r"\s?:\s|\b(?:that|saying|to say|dass|daß|pour dire|que|że)\b")
_STATES: Final = re.compile(
    r"\b(?:that|it|there|here|who|what)'s\b|\b(?:is|are|was|were|has|have|had|will|may|might|ist|sind|war|waren|hat|"
    r"est|sont|était|es|son|está|era|jest|są|"
    r"był\w*|said|says|wants|told|asked|asks|sagt|will|dit|veut|dice|quiere|chce|prosi|put|puts|sent|wrote|writes|"
    r"added|moved|saved|saw|found|got|gets|we|he|she|they|ich|wir|er|je|j'ai|il|elle|yo)\b|(?:^\W*|[,;] |\b(?:and|"
    r"that|because|as|what|when|"
    r"if|but|which|stuff|things) )i\b(?!(?:'d like| want| need| would like) (?:it|this|that|them|these|those)\b)|"
    r"^\W*(?:if|when|whether|that|"
    r"because|wenn|falls|ob|weil|si|quand|cuando|czy|jeśli|no|not|don't|nicht|kein\w*|pas|nie)\b"
)
# "What Bob wants" is a thing: of it, nothing is said yet.
_WHATEVER: Final = re.compile(
    r"\b(?:what|whatever|(?:the |all )?(?:things?|stuff)(?: that)?|was|alles was|ce que|lo que|"
    r"to co) [\w'-]+ (?:wants?|"
    r"needs|asks(?: for)?|wrote|says|will|braucht|schreibt|möchte|veut|demande|quiere|pide|chce)\b"
)
_IF_SO: Final = re.compile(
    r"^\W*(?:if (?:yes|so|not|it is)|(?:wenn|falls) ja|si oui|si (?:es )?así|jeśli tak|in that case)\b"
)


def belongs(clause: str) -> bool:
    """Whether it says that something is to go somewhere: `my open points go on the todo list`."""
    return _BELONGS.search(_things(clause)) is not None


def verbless(clause: str) -> frozenset[ActionKind]:
    """What is ordered by a clause in which no verb orders."""
    if clause.rstrip().endswith("?"):
        return frozenset()
    bare = QUOTED.sub(hidden, NAME.sub(hidden, clause))
    said = _things(bare)
    kinds: set[ActionKind] = set()
    if _CAN_GO.search(bare):
        kinds.add("delete")
    told = _TOLD.split(clause, maxsplit=1)[0]
    if _SENT_THERE.search(told) and not _STATES.search(told):
        kinds.add("send")
    if _WANTED_THERE.search(said):
        kinds |= {"create", "update"}
    if not _STATES.search(_IF_SO.sub("", said)):
        if _PLACED_THERE.search(said) or _BELONGS.search(said):
            kinds |= {"create", "update"}
        if _AS_SOMETHING.search(said) or _KEPT_THERE.search(said) or _CALLED_FOR.search(said):
            kinds.add("create")
        if _MOVED.search(said) or _ARCHIVED.search(said):
            kinds.add("update")
    return frozenset(kinds)


def _things(clause: str) -> str:
    return _WHATEVER.sub("things", clause)
