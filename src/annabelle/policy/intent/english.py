"""How orders are given in English."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.forms import Imperatives
from annabelle.policy.intent.grammar import CONDITION

# Who may be written to without being called by name: "write my landlord that …" is no text, "write the code that …" is.
_PEOPLE: Final = (
    r"(?:the|my|our|his|her|their) (?:boss|landlord|landlady|hotel|school|teachers?|doctors?|dentist|kita|nursery|"
    r"team|office|"
    r"neighbou?rs?|wife|husband|partner|girlfriend|boyfriend|mum|mom|dad|mother|father|sister|brother|parents|kids|son|"
    r"daughter|clients?|customers?|shop|restaurant|bank|insurance|company|seller|host|others|club|coach|agency|"
    r"colleagues?|friends?|family|support|accountant|lawyer|gym|vet|plumber)"
)
_NOBODY: Final = (
    r"(?!(?:me|us|it|this|that|these|those|down|up|out|off|a|an|the|my|our|your|his|her|their|some|any|all|code|"
    r"about|in|"
    r"into|on|to|for|as|what|how|why|when|everything|something|two|three|one|and|or|then|python|short|new|todays?)\b)"
)
_SOMEBODY: Final = rf"(?:{_PEOPLE}|him|her|them|{_NOBODY}[\w.@'-]+)(?: \(?_+\)?)?"
_SAYS: Final = (
    r"(?:that|saying|asking|about|to say|to ask|to tell|and (?:say|ask|tell)|i|i'm|im|i'll|ill|i'd|id|i've|ive|i "
    r"can't|we|we're|we'll|it's|its|he|she|they|there|thanks|thank you|thx|sorry|yes|no|ok|okay|back)"
)

ENGLISH: Final = Imperatives(
    marks="the a an my me and to of in is it its it's for from with that this on at what i i'm im you u please pls "
    "plz all by he she him her his they them we us our your yours if then when how who why do does did can could would "
    "should will be "
    "are was were has have not no don't dont yes but or as into onto out off back get put give make send tell say "
    "write save add read show find look check mark take move thanks thx tomorrow today n",
    before="",
    condition=CONDITION,
    plain={
        "send": r"(?:re)?send|reply|respond|forward|invite|uninvite|share|notify|inform|publish|submit|"
        r"write (?:back )?to|write (?:[\w'’.-]+ ){1,3}?(?:an? )?(?:short |quick |brief )?(?:e-?mail|mail|message)|"
        r"write back|let (?!me\b|us\b)[\w'’. -]{1,40} know|get back to|(?:drop|shoot|leave) \S+ an? (?:line|note|"
        r"e-?mail|mail|message|text)|(?:shoot|drop|fling|slip) (?:_+|him|her|them) (?:an?|the|my|our|this|that)|rsvp|"
        r"reach out|accept|decline|give \S+ a (?:heads[- ]up|shout)|"
        r"pass (?:.{1,60} )?(?:on|along) to|pass (?:it|this|that) on|fire off|loop in|apologi[sz]e to|"
        r"confirm (?:.{1,60} )?(?:to|with)|say .{1,60} to|write \S+ (?:that|saying|about|and say|to say|to ask)|"
        r"write (?:him|her|them) |have (?:the|my|our|this|that|it) .{0,60}(?:sent|forwarded|e?mailed)|update (?!me\b|"
        r"us\b)\S+ (?:on|about)|"
        rf"report (?:back )?to|wish|inquire|enquire|write {_SOMEBODY},? {_SAYS}|write (?:him|her|them)|"
        r"say (?:yes|no|ok|okay|thanks|thank you|sorry|hi|hello|that|i|i'm|im|i'll|ill|we|we're|we'll|it|it's|its)|"
        r"say .{1,60} to|keep (?!me\b|us\b)\S+ (?:posted|updated|in the loop)|fill (?!me\b|us\b|in\b|out\b)\S+ in|"
        r"check (?:in )?with (?!me\b|us\b)|cc|hit \S+ up|hit up|fwd|get .{1,60} to _+|let \S+ have|(?:shoot|fire|"
        r"send) back|write that (?:i|i'm|im|i'll|we|yes|no)",
        "create": r"create|generate|compose|prepare|jot|put together|set up|produce|write|draw up|type up|make|add|"
        r"take (?:a )?(?:notes?|screenshots?|pictures?|photos?)|save|store|keep track|start a|"
        r"summari[sz]e (?:.{1,80} )?(?:into|as|to (?:(?:an?|the|my) (?:\w+ )?(?:notes?|file|list|doc)|_))|"
        r"turn .{1,80} into|extract|compile|gather|outline|i(?:'d like| need|"
        r" want) (?:a|an|another)|(?:give|get|make) me (?:a|an|another|some) (?:to-?dos?|reminders?|event|"
        r"calendar entry)|(?:give|get|hand|write|show|make|do) (?:me )?(?:.{1,80} )?(?:as|in|into) an? (?:note|file|"
        r"pdf|list|todo)|sum (?:.{1,80} )?up (?:.{1,40} )?(?:in|into|as)|(?:throw|chuck|drop|shove|get) "
        r"(?:(?!and\b)[\w'-]+ ){0,6}?(?:in|on|"
        r"into|onto) (?:my|the|our|an?) (?:\w+ )?(?:notes?|lists?|to-?dos?|cal[ae]nd[ae]r|docs|documents|folder)|"
        r"snap|capture|"
        r"new (?:event|appointment|meeting|note|to-?do|task|reminder|contact|entry)(?= ?:)|(?:can|could|may) i "
        r"(?:have|get) (?:a|an|another|the)|write (?:[\w'’]+ )?down|should (?:go|be) (?:in|on|into|onto)",
        "update": r"update|change|edit|modify|rename|move|replace|correct|fix|archive|unarchive|restore|adjust|assign|"
        r"append|insert|rewrite|overwrite|postpone|reschedule|shift|organi[sz]e|sort|tidy|add|(?:check|tick|"
        r"cross) (?:\w+ )?off|tick|complete|reopen|extend|convert|shorten|expand|improve|polish|revise|reformat|amend|"
        r"adapt|rephrase|proofread|tweak|clean up|swap|bring forward|push back|delay|increase|decrease|"
        r"combine|split|pin|unstar|make (?:it|that|this|them)|make .{1,60} (?:earlier|later|shorter|longer|nicer|"
        r"instead)|write (?:in|into|under) (?:the|my|our)|"
        r"give .{1,60} (?:the|a) (?:label|tag|star)|bring .{1,60} forward|push (?:.{1,60} )?(?:back|to|by|until|till|"
        r"out)|put off|call \S+ (?:\S+ ){0,3}instead|"
        r"(?:get|take|move|clear|keep) (?:.{1,60} )?out of (?:my|the|our) (?:inbox|mailbox|mail|way)|strike|"
        r"translate .{1,60} (?:into|as) _+|undo|highlight|categori[sz]e|relabel",
        "delete": r"delete|remove|erase|trash|purge|unsubscribe|unfollow|get rid of|discard|"
        r"throw (?:[\w'’]+ ){0,3}away|(?:send|move|put|throw) .{1,60} (?:to|in|into) the (?:trash|bin)|forget|wipe|"
        r"scrap|uninvite|take [\w'’ -]{1,40} off|call off|cancel|ditch|dump|"
        r"clear out|(?:chuck|toss|throw|dump|put|stick) (?:.{1,60} )?(?:in|into|to) the (?:trash|bin|rubbish)|toss|"
        r"nuke|kill|axe|lose (?:the|my|our|that|this)|take off (?:my|the|our) cal\w*|kick .{1,60} out|"
        r"(?:throw|chuck) out|strike .{1,60} (?:off|from)|cross .{1,40} off|weed out|(?:cross|strike|"
        r"rule) (?:.{1,40} )?out|take (?!me\b|us\b).{1,40} out of (?:my|the|our) (?!inbox|mailbox|mail|way)\w+",
        "schedule": r"reschedule|remind me|set (?:me )?(?:up )?(?:a|an|the|another) (?:[\w-]+ ){0,3}?(?:reminder|"
        r"alarm|meeting|event|appointment|call)|pencil in|carve out|keep .{1,40} free|"
        r"put (?:[\w'’-]+ ){1,8}?(?:in|on|into) (?:my|the|our) cal[ae]nd[ae]r",
        "remember": r"remember|memori[sz]e|(?:keep|bear) (?:it |that )?in mind|learn that|(?:don't|dont) forget "
        r"(?:that|i)|make a mental note",
        "transfer": r"download|upload|install|export|import|back up|save|store|attach",
        "pay": r"pay|purchase|buy|donate|wire|transfer",
        "run": r"run|execute|launch|compute|calculate|rerun|simulate|benchmark|use (?:python|bash|node|code|a script)|"
        r"analy[sz]e|plot|install",
        "control": r"turn (?:[\w'’]+ ){0,4}?(?:on|off|up|down)|switch|enable|disable|activate|deactivate|follow|"
        r"unfollow|subscribe|unsubscribe|mute|unmute|call me|call yourself|from now on|be (?:more|less)|rename|change|"
        r"set|stop|restart|block|propose",
    },
    placed={
        "send": r"e-?mail(?!s\b)|mail(?!s\b|box)|message(?!s\b)|text(?! messages?| file)|post|tell(?! me| us)|"
        r"answer(?! me| us)|ask(?! me| us)|dm|ping|cc|bcc|tweet|thank|congratulate|remind(?! me| us)|"
        r"suggest(?! me| us)|offer(?! me| us)|recommend .{1,60} to",
        "create": r"draft|build|start|note|record|log|copy|list|sketch|document|put|keep|collect|enter|stick|pop|slot|"
        r"screenshots?(?! are| were)|screen ?grab|print|file",
        "update": r"mark|label|copy|star|tag|set|put|flag|finish|file|close|sort|merge|bump",
        "delete": r"clear|empty|drop|clean|bin|void",
        "schedule": r"schedule(?! for\b| on\b)|book|block|plan|reserve",
        "transfer": r"fetch|get|grab|copy",
        "pay": r"order|book|tip",
        "run": r"start|test|script|process|try",
        "control": r"filter|start|route|forward",
    },
    asked={},
    told={},
)
