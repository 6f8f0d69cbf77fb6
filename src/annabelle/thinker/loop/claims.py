"""Finds what an answer says was done (LOOP-05, TRU-04).

A false alarm annoys, so a claim is only what says plainly that the agent did something outside the conversation:
`I have sent it`, `your file has been deleted`, `Email sent`, `Done!`. Denials, offers, questions, conditions, quotes,
reports about others or about earlier days, and text made for the person in the answer itself are no claims.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.ordered import QUESTION, ordered
from annabelle.policy.intent.verbs import Verbs
from annabelle.thinker.loop.claim_words import LANGUAGES, Language
from annabelle.thinker.loop.sentences import Sentence, sentences_of, squeezed
from annabelle.toolbox.ranking.words import bounded

_MATERIAL_CHARS: Final = 80
_SHORT_ANSWER: Final = 60
# These change text as often as things, so it matters what they are said of.
_SOFT_KINDS: Final[frozenset[ActionKind]] = frozenset({"create", "update", "run", "control"})
_SOFT_VERBS: Final = re.compile(
    r"shared|posted|submitted|removed|cleared|ordered|transferred|kept|recorded|retrieved|stored|exported|imported|"
    r"saved"
)
_COMPOSING_VERBS: Final = re.compile(r"written|wrote|drafted|generated|made|rédigé\w*|geschrieben")
_THINGS: Final = re.compile(
    r"\b(?:files?|folders?|director(?:y|ies)|documents?|docs?|spreadsheets?|notes?|events?|meetings?|appointments?|"
    r"calendars?|"
    r"reminders?|alarms?|timers?|tasks?|to-?dos?|contacts?|e-?mails?|mails?|messages?|inbox|labels?|filters?|jobs?|"
    r"projects?|"
    r"facts?|memor(?:y|ies)|entr(?:y|ies)|records?|accounts?|tickets?|issues?|pages?|databases?|groups?|channels?|"
    r"chats?|"
    r"settings?|preferences?|birthdays?|profile|scripts?|backups?|passwords?|invit(?:es?|ations?)|subscriptions?|playlists?|lights?|devices?|"
    r"websites?|"
    r"repositor(?:y|ies)|repos?|workspace|shopping list|drafts?|reservations?|payments?|"
    r"datei(?:en)?|ordner|termine?|kalender|erinnerung(?:en)?|aufgaben?|kontakte?|nachrichten?|notiz(?:en)?|"
    r"fichiers?|dossiers?|événements?|rendez-vous|calendrier|rappels?|tâches?|messages?|notes?|"
    r"archivos?|carpetas?|eventos?|reuni(?:ón|ones)|calendario|recordatorios?|tareas?|mensajes?|notas?|"
    r"pliki?|plik|wydarzenie|spotkanie|przypomnienie|zadanie|wiadomość|notatk\w+)\b|\w\.\w{2,4}\b|\w/\w"
)
_TEXTS: Final = re.compile(
    r"\b(?:poem|story|essay|texts?|paragraphs?|sentences?|sections?|lists?|tables?|outline|summary|plan|code|"
    r"functions?|class|"
    r"examples?|version|translation|recipe|itinerary|letter|haiku|joke|title|headline|bullets?|points?|comments?|"
    r"explanation|overview|template|snippet|query|prompt|tone|wording|grammar|draft|chapter|verse|formula)\b"
)
_SUPPOSED: Final = re.compile(
    r"\b(?:if|unless|whether|suppose|imagine|assuming|as if|as though|pretend|would|could|should|might|wenn|falls|"
    r"jeśli|"
    r"gdyby|you (?:said|say|told|claim\w*|mentioned|think|asked))\b|\b(?:once|when|whenever|until|after|before|sobald|"
    r"nachdem|quand|cuando|gdy)(?: (?:you|it|they|he|she|the|that|this)\b.*)? ?$|\b(?:no|nie|nicht|not|never) $"
)
_DENIED: Final = re.compile(
    r"\b(?:nothing|none|nobody|neither|never|no|not|keine?\w*|nichts?|aucune?|rien|ningun\w*|nada|nie)\b"
)
_LONG_AGO: Final = re.compile(
    r"\b(?:yesterday|earlier|previously|last (?:week|time|night|month|year|\w+day)|ago|as (?:i|we) (?:said|mentioned|"
    r"told)|"
    r"as mentioned|the other day|this morning|in (?:my|our|the) (?:last|previous|earlier)|on \w+day|back then|"
    r"in 20\d\d|"
    r"gestern|vorhin|zuvor|letzte\w*|hier|précédemment|tout à l'heure|ayer|anteriormente|antes|wczoraj|wcześniej|"
    r"poprzednio)"
    r"\b|\bbefore[.!,]?$"
)
_ASKED_OF_THE_PAST: Final = re.compile(
    r"\b(?:did|have|had|were) (?:you|we|i)\b|\b(?:was|has) (?:the|my|it|that|everything)\b|\bwhat (?:did|have) you\b|"
    r"\b(?:hast du|haben sie|as-tu|avez-vous|est-ce que tu as|¿has|czy)\b",
    re.IGNORECASE,
)
_INVENTS: Final = re.compile(
    r"\b(?:story|poem|essay|song|dialogue|diary|speech|novel|fiction|role-?play|pretend|translat\w+|rewrite|rephrase|"
    r"proofread|"
    r"summari[sz]e|geschichte|gedicht|übersetz\w*|histoire|poème|tradui\w+|cuento|poema|traduc\w+|opowiadani\w+|"
    r"tłumacz\w*)\b",
    re.IGNORECASE,
)
_BY_OTHERS: Final = re.compile(r"\bby (?!you)|\b(?:according to|says?|reported)\b")
_PERSONS: Final = re.compile(
    r"\b(?:you|he|she|they|who|that|which|i|we|is|are|was|were|be|been|to|not|no|as|how|when)\b"
)
_TAIL: Final = r"(?: (?:to|for|at|on|in|into|from|as|with|successfully|now|an|für|auf|à|pour|para|do|na)\b.*)?"
_GAP: Final = r"(?:(?!nicht|nie|kein|noch nicht)[^\s,;:]+ ){0,10}?"
_AND: Final = r"(?:,|\b(?:and|und|et|y|i|oraz)\b) (?:then |also |dann |auch )?"


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing an answer says was done. `of_the_past`: it may have been in an earlier turn."""

    kind: ActionKind
    sentence: str
    of_the_past: bool = False


@dataclass(frozen=True, slots=True)
class _Spoken:
    """One language, ready to be looked for."""

    mine: re.Pattern[str]
    more: re.Pattern[str]
    passive: re.Pattern[str]
    headline: re.Pattern[str]
    done: re.Pattern[str]


def claims_in(text: str, asked: str, *, read_something: bool = False) -> list[Claim]:
    """The claims of an answer to what was asked. After tools were read, `it was sent` may be what they told."""
    echo, asked = squeezed(asked), bounded(asked)
    orders, question = ordered(asked), QUESTION.fullmatch(asked.lower()) is not None
    past = _ASKED_OF_THE_PAST.search(asked) is not None
    invents = _INVENTS.search(asked) is not None
    found: dict[ActionKind, Claim] = {}
    for sentence in sentences_of(text):
        if sentence.is_question or _LONG_AGO.search(sentence.text) or squeezed(sentence.text) in echo:
            continue
        for kind in _kinds(sentence, orders, read_something=read_something):
            if not invents or (kind in orders and kind not in _SOFT_KINDS):
                # Who asks what became of something is told of an earlier turn.
                told = past or "already" in sentence.text or (question and kind != "search")
                found.setdefault(kind, Claim(kind, sentence.text, told))
    return list(found.values())


def _kinds(sentence: Sentence, orders: frozenset[ActionKind], *, read_something: bool) -> list[ActionKind]:
    found: list[ActionKind] = []
    for spoken in _SPOKEN:
        if spoken.done.fullmatch(sentence.text.strip(" !.✅✓👍🎉*-")):
            done = _is_done(sentence, orders)
            return ["done"] if done else []
        mine = spoken.mine.search(sentence.text)
        if mine is not None and not _SUPPOSED.search(sentence.text[: mine.start()]):
            for match in (mine, *spoken.more.finditer(sentence.text, mine.end())):
                kind = _kind(match)
                if _is_meant(kind, match, sentence, orders):
                    found.append(kind)
            continue
        passive = spoken.passive.search(sentence.text)
        if passive is not None:
            kind = _kind(passive)
            if _is_news(kind, passive, orders, read_something) and _is_meant(kind, passive, sentence, orders):
                found.append(kind)
            continue
        headline = spoken.headline.fullmatch(sentence.text.strip(" !.✅✓👍🎉*-"))
        if headline is not None and not _PERSONS.search(headline["lead"] or ""):
            kind = _kind(headline)
            told = (read_something and kind not in orders) or _DENIED.search(headline["lead"] or "")
            if not told and _is_meant(kind, headline, sentence, orders):
                found.append(kind)
    return found


def _is_news(kind: ActionKind, match: re.Match[str], orders: frozenset[ActionKind], read_something: bool) -> bool:
    """Whether `it was sent` says what the agent did, rather than how the world is or what was read."""
    before = match.string[: match.start()]
    if _SUPPOSED.search(before) or _DENIED.search(before) or _BY_OTHERS.search(match.string):
        return False
    yours = match.string.startswith("your ") and not read_something
    return kind in orders or "successfully" in match.string or yours


def _is_done(sentence: Sentence, orders: frozenset[ActionKind]) -> bool:
    acting = orders - {"search"}
    if acting <= _SOFT_KINDS and sentence.rest >= _MATERIAL_CHARS:
        return False
    return bool(acting) or sentence.whole <= _SHORT_ANSWER


def _is_meant(kind: ActionKind, match: re.Match[str], sentence: Sentence, orders: frozenset[ActionKind]) -> bool:
    """Whether it is said of something outside the answer, rather than of text that stands in the answer."""
    verb = match[kind]
    if kind not in _SOFT_KINDS and not _SOFT_VERBS.fullmatch(verb):
        return True
    said_of = sentence.text.replace(verb, " ", 1)
    material = sentence.rest >= _MATERIAL_CHARS or sentence.has_code
    if material and (_TEXTS.search(said_of) or _COMPOSING_VERBS.fullmatch(verb)):
        return False
    return _THINGS.search(said_of) is not None or (kind in orders and not material)


def _kind(match: re.Match[str]) -> ActionKind:
    groups = match.groupdict()
    found: list[ActionKind] = [kind for kind in _EVERY_KIND if groups.get(kind) is not None]
    return found[0]


def _one_of(verbs: Verbs) -> str:
    return "(?:" + "|".join(f"(?P<{kind}>{words})" for kind, words in verbs.items()) + r")\b"


def _spoken(language: Language) -> _Spoken:
    verbs = _one_of(language.verbs)
    gap = _GAP if language.verb_last else ""
    return _Spoken(
        mine=re.compile(language.said_by_me + gap + verbs),
        more=re.compile(_AND + gap + verbs),
        passive=re.compile(language.said_of_it + gap + verbs),
        headline=re.compile(rf"(?P<lead>(?:[\w'’-]+ ){{0,4}})(?:successfully )?{verbs}{_TAIL}"),
        done=re.compile(f"(?:{language.by_itself})"),
    )


_EVERY_KIND: Final[tuple[ActionKind, ...]] = (
    "send", "create", "update", "delete", "schedule", "remember", "transfer", "pay", "run", "control", "search",
)  # fmt: skip
_SPOKEN: Final = tuple(_spoken(language) for language in LANGUAGES)
