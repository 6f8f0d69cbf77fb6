"""What a person orders, read strictly: a verb used as one, not denied, and not in a question about the world.

Permission follows from this, so a doubt is no order. `intent/ordered` reads the same words generously.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from annabelle.policy.intent.imperatives import IMPERATIVES, Imperatives
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.own_words import own_words

_SENTENCE: Final = re.compile(r"(?<=[^\d\s][.!?…])\s+|(?<=[!?…])\s+|\n+|;\s")
_BEFORE_A_VERB: Final = (
    r"(?:^\W*|[,;:(–—-]\s*(?:to\s+)?|\b\d{1,2}[.)]\s*|\b(?:and|then|please|also|just|now|you|or|plz|pls|ok|okay|hey|hi|"
    r"annabelle|kindly|afterwards|thanks|thx|so|um|uh|well|hmm|alright|yes|yeah|let's|lets|gotta|"
    r"(?:you|u) (?:can|could|may|should)|if (?:not|so|yes)|(?:if|in case) (?:i'm|i am|it's|it is|we're|that's|"
    r"there's) \w+(?: \w+)?|otherwise|else|today|tomorrow|tonight|quickly|immediately|simply|always|and to|"
    r"(?:i|we|you|u)(?:'d| would| just| really| also)* (?:like|want|need|have) (?:you )?to|"
    r"(?:like|want|need|help|ask|trouble|bother) (?:you|me) to|so (?:good|kind) as to)[,:]?\s+)"
)
# The same elsewhere. An infinitive orders only where somebody is addressed.
_BEFORE_OTHERS: Final = (
    r"(?:^\W*|[,;:(–—-]\s*|\b\d{1,2}[.)]\s*|\b(?:und|dann|auch|noch|jetzt|mal|danach|anschließend|et|puis|ensuite|"
    r"aussi|"
    r"alors|y|luego|después|también|entonces|i|oraz|potem|też|teraz|ok|okay|hey|hallo|salut|hola|cześć|ja|oui|sí|tak|"
    r"danke|merci|gracias|dzięki|annabelle)[,:]?\s+)"
)
_NO_OBJECT: Final = r"(?!\s+(?:from|of|by|about|sent|i got|that (?:came|arrived)|says?|is|are|was|were)\b)"
_ABOUT_THE_WORLD: Final = re.compile(
    r"\W*(?:what|what's|whats|who|who's|whose|why|how|when|where|which|did|does|has|is|are|was|were|should|"
    r"whether|was|wer|warum|wieso|wie|wann|wo|welche\w*|hat|haben|ist|sind|wurde\w*|qui|que|quoi|quel\w*|pourquoi|"
    r"comment|quand|est-ce|qué|quién|cómo|cuándo|cuál\w*|co|kto|jak|kiedy|dlaczego|czy|"
    # What the person wants to know whether they may do it is not what they want done.
    r"(?:can|could|may|shall|must|would|will|do|am|might) i|(?:shall|should|must) we|"
    r"(?:soll|sollte|kann|darf|muss) ich|(?:sollen|müssen|dürfen) wir|puis-je|dois-je|peut-on|faut-il|puedo|debo|"
    r"debería|se puede|mogę|powinien\w*|powinn\w+)\b"
)
_ASKS: Final = re.compile(r"\?[^\w\s]*\s*$")
_TAGGED: Final = re.compile(r",? (?:ok|okay|right|yes|alright|will you|would you|ja|oder|d'accord|vale|dobrze)\?$")
_ADDRESSED: Final = re.compile(
    r"\b(?:(?:can|could|would|will|won't) (?:you|u)|(?:trouble|bother|ask|bid) you to|kindly|"
    r"be so (?:good|kind)|please|pls|kannst du|könntest du|können sie|würdest du|bitte|peux-tu|"
    r"pouvez-vous|pourrais-tu|s'il te plaît|s'il vous plaît|stp|svp|puedes|podrías|por favor|możesz|proszę)\b"
)
_DENIED: Final = re.compile(
    r"(?:(?<!if )(?<!wenn )(?<!falls )\b(?:\w+n't|dont|do not|never|without|not|no need to|cannot|avoid|refrain|nicht|"
    r"kein\w*|ohne|nie|niemals|ne|jamais|sans|no|sin|nunca|bez|nigdy)\b|\bn')\s*(?:\w+\s+){0,4}$"
)
# What others want, what is only thought of, and what the person does themselves.
_REPORTED: Final = re.compile(
    r"\b(?:(?:says?|said|asks?|asked|tells?|told|wants|wanted|wrote|writes)\s+(?:(?!you\b)\w+\s+){0,2}to|"
    r"(?:what|how|whether|when|where|whom?|which)\s+(?:\w+\s+)?to|"
    r"i(?:'ll| will|'m going to| am going to| already| can| could| did| have already)|"
    r"(?:before|after|when|once|while|until|unless|if|bevor|nachdem|wenn|falls|sobald|avant que|quand|si|cuando|"
    r"antes de que|zanim|gdy|jeśli) (?:i|we|ich|wir|je|nous|yo)(?: \w+){0,2})\s+$"
)
_NOT_TO_FORGET: Final = re.compile(
    r"\b(?:don't|dont|do not|never) forget to\b|\bvergiss (?:bitte )?nicht,?\b|\bn'oublie(?:z)? pas (?:de|d')|"
    r"\bno (?:te )?olvides\b|\bnie zapomnij\b"
)
# "Add a todo: send Bob the report" orders a todo, and "remind me to send it" a reminder.
_TO_BE_KEPT: Final = re.compile(
    r"((?:to-?dos?|tasks?|lists?|reminders?|notes?|items?|entry|aufgaben?|liste|notiz|erinnerung|tâche|tarea|lista|"
    r"nota|"
    r"zadani\w+|list\w+|notatk\w+)\b[^:.!?\n]{0,30}:|"
    r"\b(?:remind me|reminder|note|to-?do|task|erinnere mich|rappelle-moi|recuérdame|przypomnij mi)\b[^.!?\n]{0,40}?"
    r"\b(?:to|that|about|daran|de|que|żeby|o)\s)([^.!?\n]+)"
)
# A question may end in an order: "what does the page say and save the important parts as news.md".
_THEN_WRITE: Final = re.compile(
    r"(?<=\band )(?:then |also |please |pls )*(?:save|put|add|write|note|record|jot|make|create|copy|list)"
    r" (?:the|it|them|that|this|a|an|my|all|everything|down)\b[^?]*$"
)
# "Ich überlege, es zu löschen", "die Antworten": neither an infinitive nor a noun orders anything.
_NO_IMPERATIVE: Final = re.compile(
    r"\b(?:zu|die|der|den|dem|das|eine?r?|einen|meine|deine|seine|ihre|unsere|von|la|le|les|el|los|las|una|un|à|de|"
    r"en|para|por|"
    r"pour|musiał\w*|muszę|trzeba|chyba)\s+$|\bd'$"
)
# What is weighed, planned or would happen.
_SUPPOSED: Final = re.compile(
    r"\b(?:whether|happens|who (?:can|may|could|should|will|would)|how to|"
    r"if (?:i|you|we|he|she|they|somebody|someone))\b(?!')[^,;]*\b(?:and|or|then)\s+$|\bmy plan\b.*$"
)
_NOT_YET: Final = re.compile(
    r"\b(?:but|aber|mais|pero|ale) (?:first|before|zuerst|vorher|erst|d'abord|avant|primero|antes|najpierw)\b"
)
_DENIED_AFTER: Final = re.compile(r"^\s*(?:\S+\s+){0,5}(?:nicht|pas|keine?\w*)\b")
# Verbs that only look. Where one stands, the order before it is over.
_LOOKING: Final = re.compile(
    _BEFORE_A_VERB
    + r"(?P<verb>read|look|check|find|search|summari[sz]e|tell|show|list|compare|translate|open|fetch|see|go through|"
    r"lies|schau|such|finde|fasse?|zeig|lis|regarde|cherche|résume|montre|lee|mira|busca|resume|muestra|przeczytaj|"
    r"sprawdź|"
    r"znajdź|podsumuj|pokaż)\b"
)
# Behind these stands what it is taken from or about, not what it is done to.
_FROM: Final = re.compile(
    r"\b(?:of|from|about|that|which|with|regarding|von|vom|aus|über|mit|du|des|de|sobre|con|z|ze|o)\b"
)
_TOWARDS: Final = (
    r"\b(?:into|onto|in|on|to|as|for|under|ins?|im|auf|zu[rm]?|als|an|unter|dans|sur|à|au|aux|comme|en|a|al|como|na|"
    r"do|w|"
    r"jako)\s+"
)
_INTO: Final = re.compile(rf"{_TOWARDS}(?:(?!{_TOWARDS})\S+\s*){{1,3}}")
# A verb at the end is about what stands before it: "swim class every Tuesday at four, please add".
_LAST: Final = re.compile(
    r"\S{1,40}\W*(?:(?:it|this|that|them|one|too|pls|plz|please|thanks|thx|asap|now|for me|bitte|danke|das|es|merci|"
    r"gracias|"
    r"por favor|proszę|dzięki)\W*)*"
)
_SET_BEFORE: Final = re.compile(
    r"\W*(?:in|on|at|im|in der|auf|dans|sur|en|w|na) (?:the|my|our|der|dem|le|la|el|mon|ma|mi)\b"
)
_POINTS_BACK: Final = re.compile(r"\S+ (?:it|this|that|them|those|sie|es|das|le|la|les|lo|los|las|go|ją|je)\b")
# Where nothing is asked or looked at, to say where something belongs is to say that it be put there.
_PLACED_THERE: Final = re.compile(
    r"\b(?:on|onto|in|into|to|auf|sur|dans|en|a|na|do) (?:the|my|our|die|den|meine?n?|unsere?n?|la|le|ma|mon|mi|el|"
    r"moj\w+) (?:[\w'-]+ ){0,2}?(?:lists?|to-?dos?|groceries|shopping|notes?|cal[ae]nd[ae]r|diary|liste|einkaufsliste|"
    r"kalender|notizen|calendrier|agenda|lista|calendario|list[ęa]|kalendarza)\W*(?:pls|plz|please|thanks|thx|bitte|"
    r"merci|gracias|por favor|proszę)?\W*$"
)
_STATES: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|may|might|ist|sind|war|waren|hat|est|sont|était|es|son|está|era|jest|"
    r"są|był\w*)\b"
)
_SENT_THERE: Final = re.compile(
    r"\b(?:to|an|à|a|do) \S+ (?:as an? attachments?|by e?-?mail|via e?-?mail|per e?-?mail|als anhang|par mail|"
    r"por correo|mailem)\b|"
    r"^\W{0,5}\w\S*(?: \S+){0,3} (?:to|an|à|a|do) \S+,? (?:pls|plz|please|asap|bitte|por favor|proszę)\W*$"
)

_NEAR: Final = 80
_NAME: Final = re.compile(r"(?<!\S)\S*(?:[@/\\]|\.\w)\S*")
# What is quoted names something, and orders nothing.
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|(?<!\w)'[^'\n]{3,}'(?!\w)")
# Ordered only where an order stands: "nobody may delete it" has the verb, too, and "is there an update" the noun.
_PLACED: Final[frozenset[ActionKind]] = frozenset({"send", "delete", "pay", "run", "create", "update", "transfer"})

_Verbs = dict[ActionKind, tuple[re.Pattern[str], ...]]


@dataclass(frozen=True, slots=True)
class Order:
    """One order: its kinds of action, its words, and those for what it is done to and where it is to go."""

    kinds: frozenset[ActionKind]
    words: str
    objects: str


@lru_cache(maxsize=256)
def orders_in(message: str) -> tuple[Order, ...]:
    """The orders of a message, one after the other."""
    text = _NOT_TO_FORGET.sub("please ", own_words(message).replace("’", "'").casefold())
    text = _TO_BE_KEPT.sub(lambda match: match[1] + "_" * len(match[2]), text)
    languages = _languages(text)
    found: list[Order] = []
    for sentence in _SENTENCE.split(text):
        asks = _ABOUT_THE_WORLD.match(sentence) or (_ASKS.search(sentence) and not _TAGGED.search(sentence))
        if not asks or _ADDRESSED.search(sentence):
            found += _orders(sentence, languages)
        elif then := _THEN_WRITE.search(sentence):
            found += _orders(then.group(), languages)
    return tuple(found)


def orders(message: str) -> frozenset[ActionKind]:
    """The kinds of action this message orders."""
    return frozenset(kind for order in orders_in(message) for kind in order.kinds)


def _orders(sentence: str, languages: list[list[_Verbs]]) -> list[Order]:
    begun: dict[int, set[ActionKind]] = {}
    # A file may be called `old-draft.md`, which orders no draft.
    bare = _QUOTED.sub(_hidden, _NAME.sub(_hidden, sentence))
    addressed = _ADDRESSED.search(sentence) is not None
    for language in languages:
        for kind, verbs in language[addressed].items():
            for start in (start for verb in verbs for start in _meant(verb, bare)):
                begun.setdefault(start, set()).add(kind)
    looks = [_start(match) for match in _LOOKING.finditer(bare)]
    if not begun and not looks:
        return _without_a_verb(sentence)
    stops = sorted({*begun, *looks, len(sentence)})
    found: list[Order] = []
    over = 0
    for start, kinds in sorted(begun.items()):
        end = next(stop for stop in stops if stop > start)
        words = sentence[start:end]
        looked = any(over <= look < start for look in looks)
        before = _LAST.fullmatch(words) or ((_POINTS_BACK.match(words) or _SET_BEFORE.match(sentence)) and not looked)
        about = sentence[over:end] if before else words
        found.append(Order(frozenset(kinds), words, _objects(about)))
        over = end
    return found


def _without_a_verb(sentence: str) -> list[Order]:
    """`Eggs and milk on the shopping list`; `the letter to Bob by mail, please`."""
    kinds: set[ActionKind] = set()
    if sentence.rstrip().endswith("?") or _STATES.search(sentence):
        return []
    if _PLACED_THERE.search(sentence):
        kinds.add("create")
    if _SENT_THERE.search(sentence):
        kinds.add("send")
    return [Order(frozenset(kinds), sentence, sentence)] if kinds else []


def _hidden(match: re.Match[str]) -> str:
    """As long as before, and with the sign behind it: `read a.md, then send it`."""
    name = match.group().rstrip(",;:.!?)")
    return "_" * len(name) + match.group()[len(name) :]


def _objects(words: str) -> str:
    """What it is done to, and where it goes: `put the lunch from Bob's mail into my calendar` is about no mail."""
    words = words.replace(" rid of ", " rid ")  # which is one verb
    taken_from = _FROM.search(words)
    if taken_from is None:
        return words
    targets = (match.group() for match in _INTO.finditer(words, taken_from.start()))
    return " ".join((words[: taken_from.start()], *targets))


def _languages(text: str) -> list[list[_Verbs]]:
    """Those it may be written in: a verb of one language is a noun of another, as "note" is in French and English."""
    words = re.findall(r"\w+", text)
    marks = [sum(word in known for word in words) for known, *_ in _SPOKEN]
    return [verbs for count, (_, *verbs) in zip(marks, _SPOKEN, strict=True) if 2 * count >= max(marks)]


def _meant(verb: re.Pattern[str], sentence: str) -> list[int]:
    """Where the verb stands and is meant."""
    meant: list[int] = []
    for match in verb.finditer(sentence):
        start = _start(match)
        before, after = sentence[max(0, start - _NEAR) : start], sentence[match.end() : match.end() + _NEAR]
        denied = _DENIED.search(before) or _DENIED_AFTER.match(after) or _NOT_YET.search(sentence, match.end())
        if not (denied or _REPORTED.search(before) or _NO_IMPERATIVE.search(before) or _SUPPOSED.search(before)):
            meant.append(start)
    return meant


def _start(match: re.Match[str]) -> int:
    return match.start("verb") if "verb" in match.re.groupindex else match.start()


def _compiled(spoken: Imperatives, *, addressed: bool) -> _Verbs:
    found: _Verbs = {}
    english = bool(spoken.placed)
    elsewhere = r"\b" if addressed else _BEFORE_OTHERS
    for kind, verbs in spoken.plain.items():
        place = (_BEFORE_A_VERB if kind in _PLACED else r"\b") if english else elsewhere
        found[kind] = (re.compile(rf"{place}(?P<verb>{verbs})\b"),)
    for kind, verbs in spoken.placed.items():
        placed = re.compile(rf"{_BEFORE_A_VERB}(?P<verb>{verbs})\b{_NO_OBJECT}")
        found[kind] = (*found.get(kind, ()), placed)
    return found


_SPOKEN: Final = tuple(
    (frozenset(spoken.marks.split()), _compiled(spoken, addressed=False), _compiled(spoken, addressed=True))
    for spoken in IMPERATIVES
)
