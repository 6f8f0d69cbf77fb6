"""How orders are written: where a verb is one, and the sentences in which it is none. Several languages in one."""

from __future__ import annotations

import re
from typing import Final

_TITLES: Final = "".join(
    rf"(?<!\b{title}\.)"
    for title in ("mr", "mrs", "ms", "dr", "prof", "st", "fr", "hr", "sr", "sra", "mme", "approx", "e.g")
)
SENTENCE: Final = re.compile(rf"(?<=[^\d\s][.!?…]){_TITLES}\s+|(?<=[!?…])\s+|\n+|;\s")
BEFORE_A_VERB: Final = (
    r"(?:^\W*|[,;:(–—-]\s*(?:to\s+)?|\s[&+]\s+|\b\d{1,2}[.)]\s*|\b(?:and|n|u|then|please|also|just|now|you|or|plz|"
    r"pls|pray|ok|okay|hey|hi|annabelle|kindly|afterwards|thanks|thx|so|um|uh|well|hmm|alright|yes|yeah|let's|lets|"
    r"gotta|(?:you|u) (?:can|could|may|should)|if (?:not|so|yes)|"
    r"otherwise|else|today|tomorrow|tonight|quickly|immediately|simply|always|and to|(?:i|we|you|u)(?:'d| would| just|"
    r" really| also)* (?:like|want|need|have) (?:you )?to|(?:like|want|need|help|ask|trouble|bother) (?:you|me) to|"
    r"so (?:good|kind) as to)[,:]?\s+)"
)
# "If it is sunny buy ice": an order behind its condition, with no comma between them.
CONDITION: Final = (
    r"(?:(?:if|in case|once) [^,;?]{3,60}? (?:is|are|isn't|aren't|has|costs|works)(?: (?!i\b|we\b|you\b|he\b|she\b|"
    r"they\b|it\b|to\b)[\w'-]+){1,3}?|(?:if|in case) (?:i'm|i am|it's|it is|we're|that's|there's) \w+(?: \w+)?|"
    r"(?:if|in case|since|because|as) (?:the|my|our|his|her|its|\w+'s) (?:[\w'-]+ ){1,3}(?:is|are|isn't|aren't|has|"
    r"was|says|works|fits|looks)(?: (?!to\b)[\w'-]+){1,2})"
)
CONDITION_BEGINS: Final = re.compile(
    r"\b(?:if|in case|once|since|because|as|wenn|falls|si|quand|cuando|jesli|jezeli|jak|gdy) "
)
# Where it is to be done may stand before: "in the letter to Bob change Friday to Saturday".
IN_SOMETHING: Final = (
    r"^\W*(?:in|on|from|at) (?:the|my|our) (?:[\w'-]+ ){1,2}?(?:(?:to|from|of|with|for|about) [\w'.@-]+ )?"
)
NO_OBJECT: Final = r"(?!\s+(?:from|of|by|about|sent|i got|that (?:came|arrived)|says?|is|are|was|were)\b)"
ABOUT_THE_WORLD: Final = re.compile(
    r"\W*(?:what|what's|whats|who|who's|whose|why|how|when|where|which|did|does|has|is|are|was|were|should|whether|"
    r"was|wer|warum|wieso|wie|wann|wo|welche\w*|hat|haben|ist|sind|wurde\w*|qui|que|quoi|quel\w*|pourquoi|comment|"
    r"quand|est-ce|qué|quién|cómo|cuándo|cuál\w*|co|kto|jak|kiedy|dlaczego|czy|"
    # What the person wants to know whether they may do it is not what they want done.
    r"(?:can|could|may|shall|must|would|will|do|am|might) i|(?:shall|should|must) we|(?:soll|sollte|kann|darf|"
    r"muss) ich|(?:sollen|müssen|dürfen) wir|puis-je|dois-je|peut-on|faut-il|puedo|debo|debería|se puede|mogę|"
    r"powinien\w*|powinn\w+)\b"
)
ASKS: Final = re.compile(r"\?[^\w\s]*\s*$")
TAGGED: Final = re.compile(r",? (?:ok|okay|right|yes|alright|will you|would you|ja|oder|d'accord|vale|dobrze)\?$")
POLITE: Final = re.compile(
    r"\b(?:kindly|be so (?:good|kind)|please|pls|plz|bitte|s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|por favor|porfa|"
    r"porfi|prosz[eę])\b"
)
PLAINLY: Final = re.compile(rf"{POLITE.pattern}|\bdamit\W*$")
REQUESTED: Final = re.compile(
    r"\b(?:(?:can|could|would|will|won't) (?:you|u|ya)|(?:trouble|bother|ask|bid) you to|(?:can|could|may) i (?:have|"
    r"get) (?:a|an|"
    r"another|the)|kannst du|kannste|könntest du|können sie|könnten sie|würdest du|würden sie|magst du|(?:du|sie) "
    r"(?:kannst|"
    r"könntest|können)|peux[- ]tu|tu (?:peux|pourrais|veux bien)|vous (?:pouvez|pourriez)|pouvez[- ]vous|pourrais[- "
    r"]tu|pourriez[- ]vous|puedes|podr[ií]as|puede usted|podr[ií]a usted|mo[zż]esz|m[oó]g[lł]by[sś]|mog[lł]aby[sś])\b"
)
# "What can you delete?" asks what there is, and "can you delete it?" for it to be done.
WONDERS: Final = re.compile(
    r"\W*(?:what|which|who|how|when|where|why|was|welche\w*|wer|wie|wann|wo|warum|qu[ei]\w*|quel\w*|comment|pourquoi|"
    r"qué|"
    r"cuál\w*|cómo|cuándo|co|który\w*|któr\w+|jak|kiedy)\b[^,;–—]*?(?:can|could|would|will|kannst|könntest|können|peux|"
    r"pourrais|pouvez|puedes|podrías|możesz|mógłbyś)\b"
)
DENIED: Final = re.compile(
    r"(?:(?<!if )(?<!wenn )(?<!falls )\b(?:\w+n't|dont|cant|wont|didnt|doesnt|shouldnt|do not|never|without|not|no "
    r"need to|cannot|avoid|refrain|nicht|"
    r"kein\w*|nichts|nix|nothing|rien|nada|nic|ohne|nie|niemals|ne|jamais|sans|no|sin|nunca|bez|nigdy)\b|"
    r"\bn')\s*(?:(?!pls\b|plz\b|please\b|bitte\b|stp\b|porfa\b|proszę\b)\w+\s+){0,4}$"
)
# What others want, what is only thought of, and what the person does themselves.
REPORTED: Final = re.compile(
    r"\b(?:(?:says?|said|asks?|asked|tells?|told|wants|wanted|wrote|writes)\s+(?:(?!you\b)\w+\s+){0,2}to|(?:what|how|"
    r"whether|when|where|whom?|which)\s+(?:\w+\s+)?to|i(?:'ll| will|'m going to| am going to| already| can| could|"
    r" did| have already)|(?:before|after|when|once|while|until|unless|if|bevor|nachdem|wenn|falls|sobald|avant que|"
    r"quand|si|cuando|antes de que|zanim|gdy|jeśli) (?:i|we|ich|wir|je|nous|yo)(?: \w+){0,2})\s+$"
)
NOT_TO_FORGET: Final = re.compile(
    r"\b(?:don't|dont|do not|never) forget to\b|\bvergiss (?:bitte )?nicht,?\b|\bn'oublie(?:z)? pas (?:de|d')|"
    r"\bno (?:te )?olvides\b|\bnie zapomnij\b"
)
# "Add a todo: send Bob the report" orders a todo, and "remind me to send it" a reminder.
TO_BE_KEPT: Final = re.compile(
    r"((?:to-?dos?|tasks?|lists?|reminders?|notes?|items?|entry|aufgaben?|liste|notiz|erinnerung|rappel|tâche|tarea|"
    r"recordatorio|przypomnienie|lista|"
    r"nota|zadani\w+|list\w+|notatk\w+)\b[^:.!?\n]{0,30}:|\b(?:remind me|reminder|note|to-?do|task|erinnere mich|"
    r"rappelle-moi|recuérdame|przypomnij mi)\b[^.!?\n]{0,40}?\b(?:to|that|about|daran|de|que|żeby|o)\s)([^.!?\n]+)"
)
# A question may end in an order: "what does the page say and save the important parts as news.md".
THEN_WRITE: Final = re.compile(
    r"(?:(?<=\band )|(?<=\bn )|(?<=, )|(?<=- )|(?<=\.\. ))(?:then |also |please |pls |and |just )*(?:save|put|add|"
    r"write|note|record|jot|make|create|copy|list|stick|pop|"
    r"keep|store) (?:the|it|them|that|this|a|an|my|all|everything|down|(?:\w+ )?(?:notes?|to-?dos?|tasks?|lists?|"
    r"reminders?|events?))\b[^?]*$"
)
# A question behind an order: "cancel the yoga and when is the dentist?", "cheese on the list, what else is there?"
THEN_ASKS: Final = re.compile(
    r"(?:[,;]|\.\.|\s[–—-])\s*(?:(?:and|und|et|y|i|also|oh) )?(?=_ASK)|\s(?:and|und|et|y|i|n|&)\s(?=_ASK)".replace(
        "_ASK",
        r"(?:what|what's|whats|who|who's|whos|why|how|hows|when|whens|where|wheres|which|is|are|do i|does|did i|was|"
        r"wer|"
        r"warum|wie|wann|wo|welche\w*|ist|sind|hab ich|habe ich|(?:c'?(?:est)? ?[aà]? )?(?:quel\w*|quand|combien|où)|"
        r"qui|pourquoi|est-ce|qu'est|qué|quién|cómo|cuándo|cuánt\w+|dónde|hay|co|kto|kiedy|gdzie|ile|czy|o której|"
        r"jak)\b",
    )
)
# What is only supposed, before it is asked about: "say I cancel it, what then?"
SUPPOSES: Final = re.compile(
    r"\W*(?:say|suppose|assume|imagine|if|when|do|does|did|have|can|could|angenommen|wenn|falls|supposons|si|supón|"
    r"załóżmy|jeśli|gdy|jak)\b"
)
# In other languages, and for all else, what is put behind a question has to point at what was asked for.
THEN_DO: Final = re.compile(
    r"(?:, |\.\. | [–—-] )((?:(?:and|then|und|dann|et|puis|y|luego|i|potem|bitte|please|pls) )*[^\s,]+ (?:mir |me |"
    r"moi |mi |to |an )?(?:it|them|that|this|those|him|her|das|es|sie|ihn|ihm|ça|cela|eso|esto|to|go|ją|je)\b[^?,]*$|"
    r"(?:(?:et|puis|y|luego) )*\w+(?:-(?:le|la|les|lui|leur|moi)|[aeé](?:me|se)?l[oae]s?)\b[^?,]*$)"
)
# "Ich überlege, es zu löschen", "die Antworten": neither an infinitive nor a noun orders anything.
NO_IMPERATIVE: Final = re.compile(
    r"\b(?:zu|die|der|den|dem|das|eine?r?|einen|meine|deine|seine|ihre|unsere|von|la|le|les|el|los|las|una|un|à|de|en|"
    r"para|por|pour|musiał\w*|muszę|trzeba|chyba|comment|cómo|jak|dois|devrais|debo|debería|mam|wie man|"
    # "Lista umów" is one of contracts.
    r"list\w+|spis\w*|kopi\w+|kilka|wiele|dużo|tych|moich|naszych|wszystkich)\s+$|\bd'$"
)
# What is weighed, planned or would happen.
SUPPOSED: Final = re.compile(
    r"\b(?:whether|happens|who (?:can|may|could|should|will|would)|how to|if (?:i|you|we|he|she|they|somebody|"
    r"someone))\b(?!')[^,;]*\b(?:and|or|then)\s+$|\bmy plan\b.*$"
)
# What is to be told may come first or later itself: "answer that Friday is fine but first at one".
_TOLD: Final = r"that|dass|daß|que|qu'\S*|że|ob|si|czy|weil|because"
NOT_YET: Final = re.compile(
    rf"^(?:(?!\b(?:{_TOLD})\b).)*?\b(?:but|aber|mais|pero|ale) (?:first|zuerst|vorher|erst(?! (?:um|am|ab|gegen|nach|"
    r"nächste\w*|morgen|später|\d))|before(?! (?:\d|noon|lunch|dinner|\w+day))|d'abord|avant(?! \d)|primero|antes|"
    r"najpierw)\b"
)
# "Lösche ich morgen" is what the person does themselves.
DENIED_AFTER: Final = re.compile(
    rf"^\S+\s+(?:(?!(?:{_TOLD}|ich|wir|je|j'\S*|:)\b)\S+\s+){{0,6}}(?:nicht|nichts|nix|pas|rien|keine?\w*|"
    rf"niemand\w*)\b|"
    r"^\S+\s+(?:ich|wir|je|yo|muss|soll|sollte|kann|will|werde|darf|möchte|müsste|wollte)\b"
)
# Verbs that only look. Where one stands, the order before it is over.
LOOKS: Final = (
    r"read|look|check|find|explain|describe|count|erkläre?|explique|explica|wyjaśnij|search|summari[sz]e|tell|show|"
    r"list|compare|translate|open|fetch|see|go through|lies|lese|schau|"
    r"guck|such|suche|finde|fasse?|zeig|übersetze?|lis|lisez|regarde|cherche|trouve|résume|montre|traduis|lee|mira|"
    r"busca|encuentra|resume|muestra|traduce|przeczytaj|sprawdź|znajdź|podsumuj|pokaż|przetłumacz|zobacz"
)
LOOKING: Final = re.compile(rf"(?:{BEFORE_A_VERB}|\b{CONDITION}[,:]?\s+)(?P<verb>{LOOKS})\b")
# Behind these stands what it is taken from or about, not what it is done to.
FROM: Final = re.compile(
    r"\b(?:(?<!end )(?<!top )(?<!bottom )(?<!start )(?<!beginning )of|from|about|that(?! (?:in|on|into|onto|to|as|"
    r"down|for|up|under)\b)|which|with|regarding|von|vom|aus|"
    r"über|mit|du|des|de|sobre|con|z|ze|o)\b(?! (?:it|this|them|tego|eso|esto|ça)\b)"
)
TOWARDS: Final = (
    r"\b(?:into|onto|in|on|to|as|for|under|ins?|im|auf|zu[rm]?|als|an|unter|dans|sur|à|au|aux|comme|en|a|al|como|na|"
    r"do|w|jako)\s+"
)
INTO: Final = re.compile(rf"{TOWARDS}(?:(?!{TOWARDS})\S+\s*){{1,3}}")
# A verb at the end is about what stands before it: "swim class every Tuesday at four, please add".
LAST: Final = re.compile(
    r"\S{1,40}\W*(?:(?:it|this|that|them|one|too|pls|plz|please|thanks|thx|asap|now|for me|bitte|danke|das|es|merci|"
    r"gracias|por favor|proszę|dzięki)\W*)*"
)
SET_BEFORE: Final = re.compile(
    r"\W*(?:in|on|at|im|in der|auf|dans|sur|en|w|na) (?:the|my|our|der|dem|le|la|el|mon|ma|mi)\b"
)
# Why it is to be done belongs to no order: "cancel the workshop, i have the dentist that week".
ASIDE: Final = re.compile(
    r"[,;(–—-]\s*(?=(?:i|i've|i'm|i'll|we|we're|he|she|they|because|since|cause|cuz|as i|ich|wir|er|weil|da ich|denn|"
    r"j'ai|je|nous|"
    r"car|parce|tengo|porque|ya que|mam|bo|ponieważ)\b)|\s(?=(?:because|since i|cause|cuz|weil|denn ich|parce que|"
    r"car je|porque|ponieważ) )"
    # Nor does what is asked behind it: "delete old.md, do i still need letter.txt".
    r"|[,;(–—-]\s*(?=(?:do|did|does|don't|should|shall|is|isn't|are|was|were|have|has|am|can|could|must|soll|sollte|"
    r"brauche?|brauchen|muss|ist|sind|hat|habe|darf|dois|est-ce que?|faut-il|ai|czy) (?:i|we|it|that|this|my|our|the|"
    r"he|she|they|there|ich|wir|das|der|die|dein\w*|mein\w*|es|je|on|mon|ma|le|la|mam|to)\b)"
)
POINTS_BACK: Final = re.compile(r"\S+ (?:it|this|that|them|those|both|sie|es|das|le|la|les|lo|los|las|go|ją|je)\b")
# What was on a list and is done now.
DONE: Final = re.compile(
    r"^\W*(?:ok(?:ay)?,? )?(?:(?:i|we)(?:'ve| have)? )?(?:already |just )?(?:got|bought|finished|completed|picked up)"
    r"(?: the| my| our| some)? (?!an?\b|your\b|this\b|it\b|these\b)[\w' -]{2,40}\W*$"
    r"|^\W*(?:ich )?(?:hab(?:e)?|haben) (?:schon )?[\w' -]{2,40} (?:gekauft|besorgt|erledigt)\W*$"
    r"|^\W*[\w' -]{2,40} (?:ist |sind |hab ich |habe ich )?(?:schon )?(?:gekauft|besorgt|erledigt)\W*$"
    r"|^\W*(?:j'ai (?:déjà )?(?:acheté|fini)|(?:ya )?(?:compré|he comprado|terminé)|"
    r"(?:już )?kupił[ae]m) [\w' -]{2,40}\W*$"
)
# "Die alte Mail löschen": an infinitive orders at the end, where nobody is said to do it.
BRIEFLY: Final = re.compile(
    r"^(?!.*\b(?:ich|du|er|sie|es|wir|ihr|man|zu|um|muss|musst|müssen|soll\w*|kann\w*|können|will|wollen|möcht\w*|"
    r"würd\w*|werd\w*|wird|darf|dürfen|hat|habe|haben|ist|sind|war|nicht|kein\w*|nie|ohne|statt|beim|vom|"
    r"lassen)\b)[^?,:]{4,80}\w+[er]n$"
)
NAME: Final = re.compile(r"(?<!\S)\S*(?:[@/\\]|\.\w)\S*")
# What is quoted names something, and orders nothing.
QUOTED: Final = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|«[^«»\n]*»|„[^„“”\n]*[“”]|(?<!\w)'[^'\n]{3,}'(?!\w)")


def hidden(match: re.Match[str]) -> str:
    """As long as before, and with the sign behind it: `read a.md, then send it`."""
    name = match.group().rstrip(",;:.!?)")
    return "_" * len(name) + match.group()[len(name) :]
