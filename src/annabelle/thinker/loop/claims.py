"""Finds what an answer says was done, checks it against what was done, and words the correction where the two differ
(LOOP-05, TRU-04).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from annabelle.language.lexicon import Lexicon, PhraseFile, join_phrases, load_lexicon
from annabelle.policy.intent.action_kinds import QUESTION, ActionKind, requested_kinds
from annabelle.thinker.loop.action_log import ToolAction, is_read_only, supports_claim
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
_ORNAMENTS: Final = " !.✅✓👍🎉*-"
# These change text as often as things, so it matters what they are said of.
_SOFT_KINDS: Final[frozenset[ActionKind]] = frozenset({"create", "update", "run", "control"})
_KINDS: Final[tuple[ActionKind, ...]] = (
    "send", "create", "update", "delete", "schedule", "remember", "transfer", "pay", "run", "control", "search",
)  # fmt: skip
_LOOKUP_TOOL: Final = re.compile(r"(?:^|_)(?:search|web|fetch|news|weather|browse|browser|navigate|look)(?:_|$)")


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing an answer says was done. `of_the_past`: it may have been in an earlier turn."""

    kind: ActionKind
    sentence: str
    of_the_past: bool = False


@dataclass(frozen=True, slots=True)
class _LanguagePatterns:
    """How one language says that something was done."""

    mine: re.Pattern[str]
    more: re.Pattern[str]
    passive: re.Pattern[str]
    headline: re.Pattern[str]
    done: re.Pattern[str]

    @classmethod
    def compile(cls, file: PhraseFile, lexicon: Lexicon) -> _LanguagePatterns:
        between = "".join(file.phrases("between"))
        named = [f"(?P<{kind}>{file.alternation(f'verbs.{kind}')})" for kind in file.names("verbs")]
        verbs = rf"{join_phrases(named)}\b"
        also = rf"(?:,|\b{lexicon.alternation('and')}\b) (?:{lexicon.alternation('then')} )?"
        success, tail = lexicon.alternation("successfully"), lexicon.alternation("after_the_verb")
        return cls(
            mine=re.compile(file.alternation("first_person") + between + verbs),
            more=re.compile(also + between + verbs),
            passive=re.compile(file.alternation("passive_voice") + between + verbs),
            headline=re.compile(rf"(?P<lead>(?:[\w'’-]+ ){{0,4}})(?:{success} )?{verbs}(?: {tail}\b.*)?"),
            done=re.compile(file.alternation("done_phrases")),
        )


class _ClaimPatterns:
    """The words of language/*/claims.toml, compiled."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.languages = tuple(_LanguagePatterns.compile(file, lexicon) for file in lexicon.files)
        self.things = re.compile(rf"\b{lexicon.alternation('things')}\b|\w\.\w{{2,4}}\b|\w/\w")
        self.texts = lexicon.whole_words("texts")
        self.supposed = re.compile(
            rf"\b{lexicon.alternation('supposed')}\b"
            rf"|\b{lexicon.alternation('time_clauses')}(?: {lexicon.alternation('clause_subjects')}\b.*)? ?$"
            rf"|\b{lexicon.alternation('not_before_a_verb')} $"
        )
        self.denied = lexicon.whole_words("denied")
        self.long_ago = lexicon.whole_words("long_ago")
        self.asked_of_the_past = lexicon.whole_words("asked_of_the_past", re.IGNORECASE)
        self.invents = lexicon.whole_words("invents", re.IGNORECASE)
        self.by_others = lexicon.whole_words("by_others")
        self.other_subjects = lexicon.whole_words("other_subjects")
        self.already = lexicon.whole_words("already")
        self.successfully = lexicon.whole_words("successfully")
        self.yours = lexicon.whole_words("yours")
        self.soft_verbs = lexicon.whole_words("soft_verbs")
        self.composing_verbs = lexicon.whole_words("composing_verbs")
        self.admits_doubt = re.compile(lexicon.alternation("admits_doubt"), re.IGNORECASE)
        self.refuses = re.compile(lexicon.alternation("refuses"), re.IGNORECASE)


@cache
def _patterns() -> _ClaimPatterns:
    return _ClaimPatterns(load_lexicon("claims"))


def find_claims(text: str, asked: str, *, read_something: bool = False) -> list[Claim]:
    """The claims of an answer to what was asked. After tools were read, `it was sent` may be what they told."""
    patterns = _patterns()
    echo, asked = letters_only(asked), clip_text(asked)
    orders, question = requested_kinds(asked), QUESTION.fullmatch(asked.lower()) is not None
    past = patterns.asked_of_the_past.search(asked) is not None
    invents = patterns.invents.search(asked) is not None
    found: dict[ActionKind, Claim] = {}
    for sentence in split_sentences(text):
        if sentence.is_question or patterns.long_ago.search(sentence.text) or letters_only(sentence.text) in echo:
            continue
        for kind in _claimed_kinds(sentence, orders, read_something=read_something):
            if not invents or (kind in orders and kind not in _SOFT_KINDS):
                # Who asks what became of something is told of an earlier turn.
                told = past or patterns.already.search(sentence.text) is not None or (question and kind != "search")
                found.setdefault(kind, Claim(kind, sentence.text, told))
    return list(found.values())


def _claimed_kinds(
    sentence: AnswerSentence, orders: frozenset[ActionKind], *, read_something: bool
) -> list[ActionKind]:
    patterns, plain = _patterns(), sentence.text.strip(_ORNAMENTS)
    found: list[ActionKind] = []
    for spoken in patterns.languages:
        if spoken.done.fullmatch(plain):
            done = _is_done(sentence, orders)
            return ["done"] if done else []
        mine = spoken.mine.search(sentence.text)
        if mine is not None and not patterns.supposed.search(sentence.text[: mine.start()]):
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
        headline = spoken.headline.fullmatch(plain)
        if headline is not None and not patterns.other_subjects.search(headline["lead"] or ""):
            kind = _kind_of_match(headline)
            told = (read_something and kind not in orders) or patterns.denied.search(headline["lead"] or "")
            if not told and _is_about_outside(kind, headline, sentence, orders):
                found.append(kind)
    return found


def _is_own_action(kind: ActionKind, match: re.Match[str], orders: frozenset[ActionKind], read_something: bool) -> bool:
    """Whether `it was sent` says what the agent did, rather than how the world is or what was read."""
    patterns, before = _patterns(), match.string[: match.start()]
    if patterns.supposed.search(before) or patterns.denied.search(before) or patterns.by_others.search(match.string):
        return False
    yours = patterns.yours.match(match.string) is not None and not read_something
    return kind in orders or patterns.successfully.search(match.string) is not None or yours


def _is_done(sentence: AnswerSentence, orders: frozenset[ActionKind]) -> bool:
    acting = orders - {"search"}
    if acting <= _SOFT_KINDS and sentence.rest >= _MATERIAL_CHARS:
        return False
    return bool(acting) or sentence.whole <= _SHORT_ANSWER


def _is_about_outside(
    kind: ActionKind, match: re.Match[str], sentence: AnswerSentence, orders: frozenset[ActionKind]
) -> bool:
    """Whether it is said of something outside the answer, rather than of text that stands in the answer."""
    patterns, verb = _patterns(), match[kind]
    if kind not in _SOFT_KINDS and not patterns.soft_verbs.fullmatch(verb):
        return True
    said_of = sentence.text.replace(verb, " ", 1)
    material = sentence.rest >= _MATERIAL_CHARS or sentence.has_code
    if material and (patterns.texts.search(said_of) or patterns.composing_verbs.fullmatch(verb)):
        return False
    return patterns.things.search(said_of) is not None or (kind in orders and not material)


def _kind_of_match(match: re.Match[str]) -> ActionKind:
    groups = match.groupdict()
    found: list[ActionKind] = [kind for kind in _KINDS if groups.get(kind) is not None]
    return found[0]


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
    """Whether an answer says it cannot look something up although there is a tool for it."""
    return _patterns().refuses.search(text[:1000].replace("’", "'")) is not None and any(
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
    if not tools or _patterns().admits_doubt.search(text.replace("’", "'")):
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
