"""How people state a standing rule, in five languages: "ask me before …", "never …", "never … without asking".

Each pattern leaves in `rest` what the rule is about. Orders for the moment ("don't send it yet") look alike; only what
says always, never or from now on is a rule by itself, the others are when they are given as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

_LEAD: Final = re.compile(
    r"^[\s\W]*(?P<lead>(?:(?:please|from now on|in (?:the )?future|ok(?:ay)?|hey|annabelle|remember|new rule|rule|note|"
    r"important|and|also|but|so|listen|just|bitte|ab (?:jetzt|sofort)|künftig|in zukunft|merk(?:e)? dir|wichtig|regel|"
    r"und|aber|s'il te plaît|s'il vous plaît|à partir de maintenant|désormais|dorénavant|règle|et|mais|por favor|"
    r"a partir de ahora|de ahora en adelante|regla|y|pero|proszę|od teraz|od dziś|zasada|ale)\b[\s,:!.–-]*)*)",
    re.IGNORECASE,
)
_FROM_NOW_ON: Final = re.compile(
    r"from now on|in (?:the )?future|rule|ab (?:jetzt|sofort)|künftig|in zukunft|regel|à partir de maintenant|"
    r"désormais|dorénavant|règle|a partir de ahora|de ahora en adelante|regla|od teraz|od dziś|zasada",
    re.IGNORECASE,
)

_PERMISSION: Final = r"(?:permission|approval|consent|okay|ok|confirmation|agreement|go-?ahead|say-?so)"
_ASK: Final = (
    # English
    r"(?:you (?:must|should|have to|need to) )?(?:please )?(?:always )?(?:first )?"
    r"(?:ask|check with|confirm with|consult)"
    rf"(?: me)?(?: first| for (?:my )?{_PERMISSION})*,? (?:always )?before (?:you )?(?:ever )?(?P<rest>.+)",
    rf"(?:always )?get my {_PERMISSION} before (?:you )?(?P<rest>.+)",
    r"i (?:always )?(?:want|would like|'d like) to be asked (?:first )?before (?:you )?(?P<rest>.+)",
    r"(?:always )?before (?:you )?(?P<rest>.+?),? (?:please )?(?:you (?:must|should) )?(?:always )?"
    r"(?:ask|check with|confirm with) me(?: first)?",
    r"(?:you (?:must|may) )?(?:never|do not ever|don't ever|do not|don't|not) (?:ever )?(?P<rest>.+?),? "
    r"(?:without (?:first )?(?:asking|checking with|confirming with|my|having)"
    rf"(?: {_PERMISSION}| me| asked)*(?: first)?|"
    r"(?:unless|until|before) i(?:'ve| have)? (?:say|said|confirm|confirmed|approve|approved|agree|agreed|ok)"
    r"(?: so| it)?|unless you ask(?:ed)?(?: me)?(?: first)?)",
    # German
    r"(?:immer )?(?:frag|frage|fragen|nachfragen)(?: mich)?"
    r"(?: bitte| immer| stets| jedes mal| zuerst| vorher| erst| nach)*,? (?:immer )?bevor du (?P<rest>.+)",
    r"bevor du (?P<rest>.+?),? (?:frag|frage)(?: mich)?(?: bitte| immer| stets| zuerst| vorher| erst| nach)*",
    r"vor (?:dem |der |jedem |jeder )?(?P<rest>.+?) (?:immer |stets |bitte )*(?:mich )?(?:fragen|nachfragen|frag mich|"
    r"frage mich)",
    r"(?P<rest>.+?),? ohne (?:mich |dass du mich )?(?:vorher |zuerst )?(?:zu fragen|nachzufragen|fragst|"
    r"meine (?:erlaubnis|zustimmung|freigabe|bestätigung)|mein (?:ok|okay|einverständnis))",
    # French
    r"(?:toujours )?(?:demande|demandez|demander|consulte|consultez)(?:-moi| moi)?(?: toujours| d'abord| la permission|"
    r" mon accord| ma permission| confirmation)* avant (?:de |d'|que tu )(?P<rest>.+)",
    r"(?:toujours )?me demander avant (?:de |d')(?P<rest>.+)",
    r"avant (?:de |d')(?P<rest>.+?),? (?:toujours )?demande(?:-moi| moi)(?: toujours)?",
    r"(?P<rest>(?:ne |n').+?) sans (?:me |m')?(?:demander|mon accord|ma permission|mon autorisation|mon ok|"
    r"ma confirmation|avoir demandé|l'avoir demandé)",
    # Spanish
    r"(?:siempre )?(?:pregúntame|preguntame|pregunta|consúltame|consulta|pídeme (?:permiso|confirmación)|pide permiso)"
    r"(?: siempre| primero)* antes de (?:que )?(?P<rest>.+)",
    r"antes de (?P<rest>.+?),? (?:siempre )?(?:pregúntame|preguntame|consúltame|pídeme permiso)(?: siempre| primero)*",
    r"(?:nunca|no|jamás) (?P<rest>.+?) sin (?:antes )?(?:preguntarme|preguntar|consultarme|pedirme permiso|"
    r"mi (?:permiso|aprobación|consentimiento|ok))(?: antes| primero)?",
    # Polish
    r"(?:zawsze )?(?:pytaj|zapytaj|spytaj)(?: mnie)?(?: zawsze| najpierw| o zgodę)*,? (?:zanim|przed tym,? jak|przed) "
    r"(?P<rest>.+)",
    r"zanim (?P<rest>.+?),? (?:zawsze )?(?:pytaj|zapytaj|spytaj)(?: mnie)?(?: najpierw| o zgodę)?",
    r"(?:nigdy )?nie (?P<rest>.+?) bez (?:pytania|zapytania|mojej zgody|mojego pozwolenia|mojego potwierdzenia)"
    r"(?: mnie)?",
)
_NEVER: Final = (
    r"(?:you (?:must|may|should|can|are to) )?(?:never(?: ever)?|don't ever|do not ever|under no circumstances) "
    r"(?!mind\b)(?P<rest>.+)",
    r"(?:du (?:darfst|sollst) )?(?P<rest>(?!ich\b|wir\b|er\b|sie\b|es\b).*\b(?:nie|niemals|auf keinen fall|"
    r"unter keinen umständen)\b.*)",
    r"(?P<rest>(?:ne |n').*\bjamais\b.*|jamais .+|\w+ jamais .+)",
    r"(?:nunca|jamás) (?P<rest>.+)",
    r"nigdy(?: więcej)?(?: nie)? (?P<rest>.+)",
)
_NOT: Final = (
    r"(?:do not|don't|you (?:must|may|should|can) not|you (?:mustn't|can't|shouldn't)|you are not allowed to) "
    r"(?P<rest>.+)",
    r"(?:du (?:darfst|sollst) )?(?P<rest>(?!ich\b|wir\b|er\b|sie\b|es\b).*\b(?:nicht|nichts|keine?[mnrs]?)\b.*)",
    r"(?P<rest>(?:ne |n').*\b(?:pas|rien|aucune?|personne)\b.*)",
    r"no (?P<rest>.+)",
    r"nie (?P<rest>.+)",
)
_HANDS_OFF: Final = (
    r"(?:(?:stay|keep) (?:away from|out of|off)|(?:keep your )?hands off|finger weg von) (?P<rest>.+)",
    r"leave (?P<rest>.+) alone",
)
_OF_ONESELF: Final = re.compile(
    r"^\W*(?:i|we|he|she|they|it|you)\b(?!'d like to be asked| want to be asked| would like to be asked|"
    r" always want to be asked| must| should| may| have to| need to| can(?:not|'t)?| are not allowed| are to|"
    r" mustn't| shouldn't)|^\W*(?:ich|wir|je|j'|nous|il|elle|yo|nosotros|ja|my)\b",
    re.IGNORECASE,
)
# Who says "it", "this" or "now" speaks of what lies on the table, not of all days.
_AT_HAND: Final = re.compile(
    r"\b(?:it|this|that|these|those|them|yet|now|today|jetzt|noch|heute|ça|cela|maintenant|eso|esto|ahora|tego|teraz)\b",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r",? (?:because|since|as i|it's|it is|it matters|that's|weil|denn|da ich|parce que|car|porque|ya que|bo|"
    r"ponieważ)\b.*$",
    re.IGNORECASE,
)
# Few sentences have one of these, and every message is looked at.
_WORTH_A_LOOK: Final = re.compile(
    r"\b(?:ask|check|confirm|consult|asked|before|never|not|no|off|out|leave|under|get|frag\w*|nachfrag\w*|bevor|vor|"
    r"ohne|nie\w*|auf|unter|finger|kein\w*|jamais|avant|sans|demand\w*|consult\w*|ne|pas|rien|aucune?|personne|"
    r"antes|nunca|jamás|sin|pregunta\w*|pregúnt\w*|pide|pídeme|consúltame|pytaj|zapytaj|spytaj|zanim|nigdy|bez)\b|n't|n'",
    re.IGNORECASE,
)
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class RulePhrase:
    """What a sentence restricts, and how. `standing`: its own words say that it is for good."""

    kind: Literal["ask", "never"]
    rest: str
    standing: bool


def _compile_patterns(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"{pattern}\W*", re.IGNORECASE) for pattern in patterns)


_ASK_FIRST, _NEVER_EVER, _NOT_NOW = _compile_patterns(_ASK), _compile_patterns(_NEVER), _compile_patterns(_NOT)
_LET_BE = _compile_patterns(_HANDS_OFF)


def parse_phrase(sentence: str) -> RulePhrase | None:
    """The rule a sentence states, or None when it states none."""
    text = re.sub(r"\s+", " ", sentence.replace("’", "'")).strip()
    if len(text) > _LONGEST or text.endswith("?") or not _WORTH_A_LOOK.search(text):
        return None
    text = _REASON.sub("", text)
    lead = _LEAD.match(text)
    for_good = lead is not None and _FROM_NOW_ON.search(lead["lead"]) is not None
    text = text if lead is None else text[lead.end() :]
    if _OF_ONESELF.match(text):
        return None
    return next(_readings(text, for_good=for_good), None)


def _readings(text: str, *, for_good: bool) -> Iterator[RulePhrase]:
    for pattern in _ASK_FIRST:
        if match := pattern.fullmatch(text):
            yield RulePhrase("ask", match["rest"], standing=not _AT_HAND.search(match["rest"]))
    for pattern in _LET_BE:
        if match := pattern.fullmatch(text):
            yield RulePhrase("never", f"touch {match['rest']}", standing=for_good)
    for patterns, standing in ((_NEVER_EVER, True), (_NOT_NOW, for_good)):
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                yield RulePhrase("never", match["rest"], standing=standing and not _AT_HAND.search(match["rest"]))
