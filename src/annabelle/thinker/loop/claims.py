"""Finds what an answer says was done, checks it against what was done, and words the correction where the two differ
(LOOP-05, TRU-04).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.action_kinds import QUESTION, ActionKind, Verbs, requested_kinds
from annabelle.thinker.loop.action_log import ToolAction, is_read_only, supports_claim
from annabelle.thinker.loop.claim_words import LANGUAGES, ClaimLanguage
from annabelle.toolbox.ranking.words import clip_text

_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"\"[^\"\n]{1,2000}\"|“[^”\n]{1,2000}”|«[^»\n]{1,2000}»|„[^“”\n]{1,2000}[“”]")
_INLINE: Final = re.compile(r"`([^`\n]{1,500})`")
_QUOTE_LINE: Final = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?…])[\"'”»)*_]*\s+|\n+|;\s")
_MAX_SENTENCES: Final = 400
_MAX_SENTENCE_CHARS: Final = 600


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence in lower case, with how much else the answer has to say."""

    text: str
    is_question: bool
    rest: int
    """Characters that follow it."""
    whole: int
    """Characters of the whole answer."""
    has_code: bool


def split_sentences(text: str) -> list[AnswerSentence]:
    """The sentences that are the answer's own words; quotes and code are left out."""
    has_code = "```" in text
    own = _QUOTED.sub(" it ", _QUOTE_LINE.sub("", _FENCE.sub("\n", text.replace("’", "'"))))
    own = _INLINE.sub(r"\1", own).replace("**", "").replace("__", "").strip()
    sentences: list[AnswerSentence] = []
    position = 0
    for piece in _END.split(own)[:_MAX_SENTENCES]:
        position = own.find(piece, position) + len(piece)
        plain = " ".join(piece.lower().split())[:_MAX_SENTENCE_CHARS].lstrip("-*•# ")
        if plain:
            rest = len(text.strip()) - position
            sentences.append(
                AnswerSentence(plain, plain.rstrip("*_ ").endswith("?"), rest, len(text.strip()), has_code)
            )
    return sentences


def letters_only(text: str) -> str:
    """Letters only, to see whether one text repeats another."""
    return "".join(character for character in text.lower() if character.isalnum())


_MATERIAL_CHARS: Final = 80
_SHORT_ANSWER: Final = 60
# These change text as often as things, so it matters what they are said of.
_SOFT_KINDS: Final[frozenset[ActionKind]] = frozenset({"create", "update", "run", "control"})
_SOFT_VERBS: Final = re.compile(
    r"shared|posted|submitted|removed|cleared|ordered|transferred|kept|recorded|retrieved|stored|exported|imported|"
    r"saved"
)
_COMPOSING_VERBS: Final = re.compile(r"written|wrote|drafted|generated|made|rédigé\w*|geschrieben")
_THING_WORDS: Final = re.compile(
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
_TEXT_WORDS: Final = re.compile(
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
class _LanguagePatterns:
    """One language, ready to be looked for."""

    mine: re.Pattern[str]
    more: re.Pattern[str]
    passive: re.Pattern[str]
    headline: re.Pattern[str]
    done: re.Pattern[str]


def find_claims(text: str, asked: str, *, read_something: bool = False) -> list[Claim]:
    """The claims of an answer to what was asked. After tools were read, `it was sent` may be what they told."""
    echo, asked = letters_only(asked), clip_text(asked)
    orders, question = requested_kinds(asked), QUESTION.fullmatch(asked.lower()) is not None
    past = _ASKED_OF_THE_PAST.search(asked) is not None
    invents = _INVENTS.search(asked) is not None
    found: dict[ActionKind, Claim] = {}
    for sentence in split_sentences(text):
        if sentence.is_question or _LONG_AGO.search(sentence.text) or letters_only(sentence.text) in echo:
            continue
        for kind in _claimed_kinds(sentence, orders, read_something=read_something):
            if not invents or (kind in orders and kind not in _SOFT_KINDS):
                # Who asks what became of something is told of an earlier turn.
                told = past or "already" in sentence.text or (question and kind != "search")
                found.setdefault(kind, Claim(kind, sentence.text, told))
    return list(found.values())


def _claimed_kinds(
    sentence: AnswerSentence, orders: frozenset[ActionKind], *, read_something: bool
) -> list[ActionKind]:
    found: list[ActionKind] = []
    for spoken in _LANGUAGE_PATTERNS:
        if spoken.done.fullmatch(sentence.text.strip(" !.✅✓👍🎉*-")):
            done = _is_done(sentence, orders)
            return ["done"] if done else []
        mine = spoken.mine.search(sentence.text)
        if mine is not None and not _SUPPOSED.search(sentence.text[: mine.start()]):
            for match in (mine, *spoken.more.finditer(sentence.text, mine.end())):
                kind = _kind_of_match(match)
                if _is_about_outside(kind, match, sentence, orders):
                    found.append(kind)
            continue
        passive = spoken.passive.search(sentence.text)
        if passive is not None:
            kind = _kind_of_match(passive)
            if _is_own_action(kind, passive, orders, read_something) and _is_about_outside(
                kind, passive, sentence, orders
            ):
                found.append(kind)
            continue
        headline = spoken.headline.fullmatch(sentence.text.strip(" !.✅✓👍🎉*-"))
        if headline is not None and not _PERSONS.search(headline["lead"] or ""):
            kind = _kind_of_match(headline)
            told = (read_something and kind not in orders) or _DENIED.search(headline["lead"] or "")
            if not told and _is_about_outside(kind, headline, sentence, orders):
                found.append(kind)
    return found


def _is_own_action(kind: ActionKind, match: re.Match[str], orders: frozenset[ActionKind], read_something: bool) -> bool:
    """Whether `it was sent` says what the agent did, rather than how the world is or what was read."""
    before = match.string[: match.start()]
    if _SUPPOSED.search(before) or _DENIED.search(before) or _BY_OTHERS.search(match.string):
        return False
    yours = match.string.startswith("your ") and not read_something
    return kind in orders or "successfully" in match.string or yours


def _is_done(sentence: AnswerSentence, orders: frozenset[ActionKind]) -> bool:
    acting = orders - {"search"}
    if acting <= _SOFT_KINDS and sentence.rest >= _MATERIAL_CHARS:
        return False
    return bool(acting) or sentence.whole <= _SHORT_ANSWER


def _is_about_outside(
    kind: ActionKind, match: re.Match[str], sentence: AnswerSentence, orders: frozenset[ActionKind]
) -> bool:
    """Whether it is said of something outside the answer, rather than of text that stands in the answer."""
    verb = match[kind]
    if kind not in _SOFT_KINDS and not _SOFT_VERBS.fullmatch(verb):
        return True
    said_of = sentence.text.replace(verb, " ", 1)
    material = sentence.rest >= _MATERIAL_CHARS or sentence.has_code
    if material and (_TEXT_WORDS.search(said_of) or _COMPOSING_VERBS.fullmatch(verb)):
        return False
    return _THING_WORDS.search(said_of) is not None or (kind in orders and not material)


def _kind_of_match(match: re.Match[str]) -> ActionKind:
    groups = match.groupdict()
    found: list[ActionKind] = [kind for kind in _EVERY_KIND if groups.get(kind) is not None]
    return found[0]


def _verb_alternation(verbs: Verbs) -> str:
    return "(?:" + "|".join(f"(?P<{kind}>{words})" for kind, words in verbs.items()) + r")\b"


def _compile_language(language: ClaimLanguage) -> _LanguagePatterns:
    verbs = _verb_alternation(language.verbs)
    gap = _GAP if language.verb_last else ""
    return _LanguagePatterns(
        mine=re.compile(language.first_person + gap + verbs),
        more=re.compile(_AND + gap + verbs),
        passive=re.compile(language.passive_voice + gap + verbs),
        headline=re.compile(rf"(?P<lead>(?:[\w'’-]+ ){{0,4}})(?:successfully )?{verbs}{_TAIL}"),
        done=re.compile(f"(?:{language.done_phrases})"),
    )


_EVERY_KIND: Final[tuple[ActionKind, ...]] = (
    "send", "create", "update", "delete", "schedule", "remember", "transfer", "pay", "run", "control", "search",
)  # fmt: skip
_LANGUAGE_PATTERNS: Final = tuple(_compile_language(language) for language in LANGUAGES)


_NOTHING: Final[dict[ActionKind, str]] = {
    "send": "no message was sent",
    "create": "nothing was created",
    "update": "nothing was changed",
    "delete": "nothing was deleted",
    "schedule": "nothing was scheduled",
    "remember": "nothing was saved",
    "transfer": "nothing was downloaded, uploaded or installed",
    "pay": "nothing was paid or ordered",
    "run": "nothing was run",
    "control": "nothing was switched",
    "search": "nothing was looked up",
    "done": "nothing was changed",
}
_ADMITS_DOUBT: Final = re.compile(
    r"not (?:known|clear|certain|sure)|unknown|unclear|uncertain|unsure|may(?: or may not)? have|might(?: not)? have|"
    r"can(?:'t|not| not) (?:confirm|say|tell|be sure)|could not (?:confirm|verify)|unbekannt|unklar|"
    r"nicht (?:sicher|bekannt)|inconnu|pas (?:sûr|certain)|desconocid|no (?:es seguro|sé si)|nie wiadomo",
    re.IGNORECASE,
)
_REFUSES: Final = re.compile(
    r"\b(?:don't|do not|can't|cannot|can not|(?:am|'m) (?:unable|not able) to|won't be able to)\b.{0,40}"
    r"\b(?:access|provide|get|fetch|retrieve|browse|search|look up|check)\b.{0,60}"
    r"\b(?:real-?time|current|live|up-to-date|today's|latest|internet|web|online|news|weather)\b"
    r"|\b(?:internet|web|search|tools?)\b.{0,30}\b(?:is|are) (?:currently |not )(?:un)?available\b",
    re.IGNORECASE,
)
_LOOKUP_TOOL: Final = re.compile(r"(?:^|_)(?:search|web|fetch|news|weather|browse|browser|navigate|look)(?:_|$)")


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, and the tool whose call bears it out."""

    claim: Claim
    backed_by: str | None


def check_claims(
    text: str, asked: str, actions: Sequence[ToolAction], earlier: Iterable[str] = ()
) -> list[CheckedClaim]:
    """Every claim of an answer with what backs it: a call of this turn, or of an earlier one it speaks of."""
    read = any(deed.reads_only and deed.outcome == "done" for deed in actions)
    nothing_to_do = not requested_kinds(clip_text(asked)) - {"search"}
    checked: list[CheckedClaim] = []
    for claim in find_claims(text, asked, read_something=read):
        by = next((deed.tool for deed in actions if deed.supports(claim.kind)), None)
        if by is None and claim.kind == "done" and nothing_to_do:
            # Who asked for nothing but an answer is told `done` about the looking up.
            by = next((deed.tool for deed in actions if deed.outcome == "done"), None)
        if by is None and claim.of_the_past:
            by = next(
                (tool for tool in earlier if supports_claim(tool, claim.kind, reads_only=is_read_only(tool, None))),
                None,
            )
        checked.append(CheckedClaim(claim, by))
    return checked


def find_unsupported(checked: Iterable[CheckedClaim]) -> list[Claim]:
    return [one.claim for one in checked if one.backed_by is None]


def is_needless_refusal(text: str, tools: Iterable[str]) -> bool:
    """Whether an answer says it can not look something up although there is a tool for it."""
    return _REFUSES.search(text[:1000].replace("’", "'")) is not None and any(
        _LOOKUP_TOOL.search(name) for name in tools
    )


def format_failure(claims: Iterable[Claim]) -> str:
    """What stands in place of an answer that claimed what nobody did."""
    return f"I have not done that: {_list_missing_actions(claims)}. Please ask me again, or say how it should be done."


def format_correction(claims: Iterable[Claim]) -> str:
    """The line under an answer that claims more than was done."""
    return f"Note: {_list_missing_actions(claims)} in this turn."


def format_doubt(text: str, actions: Iterable[ToolAction]) -> str:
    """The line under an answer that is sure of what nobody knows; empty when there is no need for one."""
    tools = dict.fromkeys(deed.tool for deed in actions if deed.outcome == "unknown")
    if not tools or _ADMITS_DOUBT.search(text.replace("’", "'")):
        return ""
    return f"Note: it is not known whether {' and '.join(tools)} took effect. Please check before you ask for it again."


def format_reminder(claims: Sequence[Claim]) -> str:
    """What the model is told before its second try."""
    if not claims:
        return "(You were given a tool that can find this out. Use it before you answer.)"
    return (
        "(Check of your draft, which the user has not seen: in this turn "
        f"{_list_missing_actions(claims)}. Do it now with the tool "
        "for it, or answer again and say plainly what was done and what was not.)"
    )


def _list_missing_actions(claims: Iterable[Claim]) -> str:
    return " and ".join(dict.fromkeys(_NOTHING[claim.kind] for claim in claims))
