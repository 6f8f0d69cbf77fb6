"""Compiles a person's sentence into a standing rule (TRU-05). Deterministic; refuses what it does not understand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Final, Literal, TypeVar, cast, get_args

from annabelle.core.trust import ToolClass
from annabelle.language.lexicon import Lexicon, load_lexicon
from annabelle.policy.intent.grammar import SENTENCE
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.rules.phrases import RulePhrase, parse_phrase, strip_lead
from annabelle.policy.rules.rule import RuleMatch

RuleAction = Literal["delete", "send", "write", "change", "run", "pay", "book", "read", "download", "remember", "act"]
RuleObject = Literal[
    "mail", "event", "file", "note", "todo", "contact", "chat", "memory", "code", "money", "travel", "page", "settings"
]

ACTING: Final[tuple[ToolClass, ...]] = ("write_inside", "send_outside", "destroy", "execute", "control")

K = TypeVar("K", bound=str)
_ACTIONS: Final = cast("tuple[RuleAction, ...]", get_args(RuleAction))
_OBJECTS: Final = cast("tuple[RuleObject, ...]", get_args(RuleObject))


class RuleWords:
    """The words that rules are made of (language/*/rules.toml)."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.actions: Mapping[RuleAction, re.Pattern[str]] = {
            action: lexicon.whole_words(f"actions.{action}", re.IGNORECASE) for action in _ACTIONS
        }
        self.objects: Mapping[RuleObject, re.Pattern[str]] = {
            thing: lexicon.whole_words(f"objects.{thing}", re.IGNORECASE) for thing in _OBJECTS
        }
        self.everything = lexicon.words("everything")
        self.fillers = lexicon.words("fillers") | self.everything
        self.leading_to_a_name = lexicon.words("leading")
        self.conditions = lexicon.words("conditions")
        self.not_a_name = lexicon.words("nobody")
        self.before_inflected_names = lexicon.words("bending")
        self.name_endings = tuple(sorted(lexicon.words("endings")))
        leading = "|".join(sorted(self.leading_to_a_name))
        # "In Photos" names a folder. German capitalizes every noun, so only English words count.
        self.folder = re.compile(
            rf"\b(?i:{leading}) (?=[A-Z])(?P<folder>(?i:{lexicon.files[0].alternation('objects.file')}))\b"
        )
        # Where another clause may begin.
        self.clause = re.compile(rf"(?<=[,;–—])\s+|\s+(?=-\s|{lexicon.alternation('contrast')}\b)", re.IGNORECASE)


@cache
def rule_words() -> RuleWords:
    return RuleWords(load_lexicon("rules"))


@cache
def _tools() -> Mapping[str, tuple[str, ...]]:
    text = files("annabelle.policy.rules").joinpath("tools.toml").read_text(encoding="utf-8")
    return {name: tuple(cast("list[str]", globs)) for name, globs in tomllib.loads(text).items()}


CLASSES: Final[Mapping[RuleAction, tuple[ToolClass, ...]]] = {
    "delete": ("destroy",),
    "send": ("send_outside",),
    "write": ("write_inside", "destroy", "send_outside"),
    "change": ("write_inside", "destroy"),
    "run": ("execute",),
    "pay": ("send_outside",),
    "book": ("send_outside", "write_inside"),
    "read": (),
    "download": ("write_inside", "execute"),
    "remember": ("write_inside", "control"),
    "act": ACTING,
}
ACTION_NAMES: Final[Mapping[RuleAction, str]] = {
    "delete": "deletes",
    "send": "sends out",
    "write": "writes or sends",
    "change": "changes or deletes",
    "run": "runs",
    "pay": "spends",
    "book": "books",
    "read": "opens",
    "download": "downloads",
    "remember": "remembers",
    "act": "does something",
}
OBJECT_NAMES: Final[Mapping[RuleObject, str]] = {
    "mail": "mail",
    "event": "events",
    "file": "files",
    "note": "notes",
    "todo": "to-dos",
    "contact": "contacts",
    "chat": "messages",
    "memory": "memories",
    "code": "code",
    "money": "money",
    "travel": "a journey or a table",
    "page": "pages",
    "settings": "settings",
}


# Unlike an order, a rule may start after a number with a period. The person is told about a truncated rule, but not
# about one that was merged into the previous sentence.
_SENTENCE: Final = re.compile(rf"{SENTENCE.pattern}|(?<=[\d\s]\.)\s+", re.IGNORECASE)
_LITERAL: Final = re.compile(
    r"[\"“„«‘']\s*(?P<quoted>[^\"“”„«»‘']{1,120}?)\s*[\"”“»’'](?!\w)"
    r"|(?P<plain>[\w.+%-]*@[\w.-]+\w|(?:https?://|www\.)\S+\w|(?:~|\.{1,2})?/[^\s,;]+|\w+(?:/[\w.-]+)+|\w+\.\w{2,4}\b)"
)
_WORD: Final = re.compile(r"[\w'@.+-]+")
_GAP: Final = "\x00"
_MOST_IN_ONE_MESSAGE: Final = 20
"""Keeps pasted text from creating many rules."""


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule as understood. `reading` states it in plain words; `standing` means it is permanent."""

    kind: Literal["ask", "never"]
    words: str
    match: RuleMatch
    reading: str
    standing: bool


class RuleNotUnderstood(Exception):
    """The sentence states no enforceable rule; the message says what is missing."""


def compile_rule(sentence: str) -> CompiledRule:
    """Compile a sentence; raises RuleNotUnderstood. What another clause orders is no part of the rule."""
    stated = [clause for clause in _split_clauses(sentence) if parse_phrase(clause) is not None]
    if len(stated) > 1:
        raise RuleNotUnderstood("There are several rules in it: say them one by one.")
    return _compile_clause(*stated or [sentence])


def _compile_clause(sentence: str) -> CompiledRule:
    phrase = parse_phrase(sentence)
    if phrase is None:
        raise RuleNotUnderstood("This is not a rule of the form “ask me before …” or “never …”.")
    about = _RuleSubject.parse(phrase.rest)
    if phrase.kind == "never" and about.vague and not rule_words().everything & set(_WORD.findall(phrase.rest.lower())):
        raise RuleNotUnderstood("It does not say what it is about: mail, files, a name, or anything.")
    match = about.match()
    return CompiledRule(phrase.kind, sentence.strip(), match, _describe_rule(phrase, about), phrase.standing)


def find_stated_rules(message: str) -> list[CompiledRule]:
    """The standing rules in the person's own words; quoted or pasted text states none."""
    found: list[CompiledRule] = []
    for clause in (part for sentence in _SENTENCE.split(own_words(message)) for part in _split_clauses(sentence)):
        try:
            compiled = _compile_clause(clause)
        except RuleNotUnderstood:
            continue
        if compiled.standing:
            found.append(compiled)
        if len(found) == _MOST_IN_ONE_MESSAGE:
            break
    return found


def _split_clauses(sentence: str) -> list[str]:
    """`Never touch Taxes, just read Reports` has two; `never delete, move or rename files` is one."""
    first, *rest = rule_words().clause.split(sentence)
    clauses = [first]
    for part in rest:
        # The part first: it is short, while what no clause follows grows to the whole message.
        if (parse_phrase(part) is not None or _is_order(part)) and _is_complete(clauses[-1]):
            clauses.append(part)
        else:
            clauses[-1] += f" {part}"
    return [clause.strip(" ,;–—-") for clause in clauses] if len(clauses) > 1 else [sentence]


def _is_complete(clause: str) -> bool:
    phrase = parse_phrase(clause)
    if phrase is None:
        return _is_order(clause)
    try:
        return phrase.kind == "never" and not _RuleSubject.parse(phrase.rest).vague
    except RuleNotUnderstood:
        return False


def _is_order(clause: str) -> bool:
    """Whether it begins with what is to be done. Of several deeds the last ones are listed: `send mail or run code`."""
    own, actions = strip_lead(clause), rule_words().actions.values()
    if not any(pattern.match(own) for pattern in actions):
        return False
    deeds = (found for pattern in actions for found in pattern.finditer(own))
    return len(list(islice(deeds, 2))) == 1


@dataclass(frozen=True, slots=True)
class _RuleSubject:
    """What a rule is about: actions, kinds of things, and names that must appear in the call."""

    actions: tuple[RuleAction, ...]
    things: tuple[RuleObject, ...]
    names: tuple[str, ...]

    @classmethod
    def parse(cls, rest: str) -> _RuleSubject:
        literals = [next(filter(None, match.groups())).strip(" .,;:!") for match in _LITERAL.finditer(rest)]
        folders = [match["folder"] for match in rule_words().folder.finditer(rest)]
        text = rule_words().folder.sub(f" {_GAP} ", _LITERAL.sub(f" {_GAP} ", rest))
        deeds, text = _extract_words(rule_words().actions, text, most=3)
        things, text = _extract_words(rule_words().objects, text, most=3)
        names = [*literals, *folders, *_find_names(text)]
        deeds, things = (deeds, things) if deeds else _nouns_as_verbs(things)
        if not deeds:
            raise RuleNotUnderstood("It does not say what is to be done or left: delete, send, change, run, buy …")
        return cls(deeds, things, tuple(dict.fromkeys(names)))

    @property
    def vague(self) -> bool:
        """Whether the rule names neither things nor names. Actions such as paying or running are clear without them."""
        return not self.things and not self.names and not set(self.actions) <= {"pay", "book", "run", "act"}

    def match(self) -> RuleMatch:
        classes: set[ToolClass] = {one for deed in self.actions for one in CLASSES[deed]}
        if "pay" in self.actions or "book" in self.actions:
            if set(self.actions) - {"pay", "book"}:
                raise RuleNotUnderstood("Spending and something else in one rule: say them as two.")
            return RuleMatch(
                tools=(*_tools()["paying"], *(_tools()["booking"] if "book" in self.actions else ())),
                classes=_sort_classes(classes),
                mentions=self.names,
            )
        if "settings" in self.things:
            return RuleMatch(classes=("control",), mentions=self.names)
        if "read" in self.actions:
            return (
                RuleMatch(tools=self._tools(), mentions=self.names) if self.things or self.names else _refuse_too_wide()
            )
        if set(self.things) & {"money", "travel"}:
            raise RuleNotUnderstood(
                "Which tools that would be is not known. Say it as “ask me before you pay” or “book”."
            )
        if self.names and set(self.things) <= {"file"}:
            # A file can also be sent or reached by a script, and a person by a forwarding filter.
            wider: set[ToolClass] = {"control"} if set(self.actions) & {"send", "write"} else set()
            wider |= {"execute", "send_outside"} if "change" in self.actions and self.things else set()
            return RuleMatch(classes=_sort_classes(classes | wider), mentions=self.names)
        if classes == {"send_outside"} and set(self.things) & {"file", "note", "contact", "memory", "code"}:
            raise RuleNotUnderstood(
                "What is in a message can not be told from the call alone. Say whom it must not go to."
            )
        if classes == {"execute"}:
            return RuleMatch(classes=("execute",), mentions=self.names)
        return RuleMatch(tools=self._tools(), classes=_sort_classes(classes), mentions=self.names)

    def _tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(glob for thing in self.things for glob in _tools()[thing]))


def _refuse_too_wide() -> RuleMatch:
    raise RuleNotUnderstood("It does not say what must not be opened.")


def _extract_words(forms: Mapping[K, re.Pattern[str]], text: str, *, most: int) -> tuple[tuple[K, ...], str]:
    """The lexicon entries found in the text, and the text without them."""
    found: list[K] = []
    for name, pattern in forms.items():
        hits = list(pattern.finditer(text))
        if hits and len(found) < most:
            found.append(name)
            for hit in reversed(hits):
                text = f"{text[: hit.start()]} {_GAP} {text[hit.end() :]}"
    return tuple(found), text


def _nouns_as_verbs(things: tuple[RuleObject, ...]) -> tuple[tuple[RuleAction, ...], tuple[RuleObject, ...]]:
    """ "Never mail Bob", "never contact Bob", "no purchases": the noun says what is done."""
    if "mail" in things:
        return ("send",), ("mail",)
    if "chat" in things or "contact" in things:
        return ("send",), ()
    return (("pay",), ()) if "money" in things else ((), things)


def _find_names(text: str) -> list[str]:
    """Names among the words that are left; raises RuleNotUnderstood for anything else."""
    names: list[str] = []
    run: list[str] = []
    led, words = "", rule_words()
    for word in [*_WORD.findall(text.replace(_GAP, " . ")), "."]:
        bare = word.strip("'.")
        low = bare.lower()
        if low in words.conditions:
            raise RuleNotUnderstood(f"The condition “{bare}” can not be held; a rule holds always.")
        if not bare or low in words.fillers or low in words.leading_to_a_name:
            if run:
                names += _name_variants(run, led)
                run = []
            led = low if low in words.leading_to_a_name else "" if bare else _GAP
            continue
        run.append(bare)
    return names


def _name_variants(words: list[str], led: str) -> list[str]:
    """Forms of a name that may appear in a call. `led` is the word before the name, which a lower-case name needs."""
    name, known = " ".join(words), rule_words()
    if any(word.lower() in known.not_a_name for word in words):
        raise RuleNotUnderstood(f"Who or what “{name}” is can not be seen in a call. Say the name or the address.")
    if not led and not any(word[0].isupper() or word[0].isdigit() for word in words):
        raise RuleNotUnderstood(f"“{name}” is not understood. Put a name in quotes if it is one.")
    bent = led in known.before_inflected_names and name[0].isupper() and len(name) > 3
    return [name, *(name.removesuffix(end) for end in known.name_endings if bent and name.endswith(end))]


def _sort_classes(classes: Iterable[ToolClass]) -> tuple[ToolClass, ...]:
    wanted = set(classes)
    return tuple(one for one in ACTING if one in wanted)


def _describe_rule(phrase: RulePhrase, about: _RuleSubject) -> str:
    deeds = " or ".join(ACTION_NAMES[deed] for deed in about.actions)
    things = " or ".join(OBJECT_NAMES[thing] for thing in about.things if thing != "money")
    names = " or ".join(f"“{name}”" for name in about.names)
    what = f"anything that {deeds}{f' {things}' if things else ''}{f' and mentions {names}' if names else ''}"
    return f"Before {what}: ask you." if phrase.kind == "ask" else f"Never: {what}."
