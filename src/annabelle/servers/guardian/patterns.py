"""Families of phrases that attacks are made of. None decides alone: each is a cue for the classifier's sum."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.servers.guardian.foreign import FOREIGN
from annabelle.servers.guardian.threats import ThreatType


@dataclass(frozen=True, slots=True)
class Pattern:
    """One family, to be searched in lower case. `signs`: one of them stands in every text that can match; `words`: one
    of them does, as a word of its own. Either is quick to see."""

    name: str
    kind: ThreatType
    words: frozenset[str]
    signs: tuple[str, ...]
    expression: re.Pattern[str]


def _pattern(name: str, kind: ThreatType, signs: str, *expressions: str) -> Pattern:
    """`signs` are separated by bars; one that begins with = is a word of its own."""
    whole = "|".join(f"(?:{one})" for one in expressions)
    lower = re.sub(r"\\.|[A-Z]", lambda sign: sign.group() if len(sign.group()) > 1 else sign.group().lower(), whole)
    parts = signs.split("|")
    words = frozenset(part[1:] for part in parts if part.startswith("="))
    return Pattern(name, kind, words, tuple(part for part in parts if not part.startswith("=")), re.compile(lower))


_GAP: Final = r"[^\w.!?]{1,4}(?:[\w’'-]{1,20}[^\w.!?]{1,4}){0,4}?"
_RULES: Final = (
    r"(?:instruct\w*|prompts?|directions?|rules?|commands?|orders?|guidelines?|messages?|context|tasks?|directives?|"
    r"training|constraints?|polic(?:y|ies)|programming|guardrails?|restrictions?|conversation|requests?|text)"
)
_EARLIER: Final = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|initial|original|system|existing|past|before|"
    r"current|other|all|any|your|these|those|default|safety|security|everything)"
)
_PRIVATE: Final = (
    r"(?:passwords?|passcodes?|api[ _-]?keys?|secrets?|credentials?|access tokens?|auth(?:entication)? tokens?|"
    r"private keys?|ssh keys?|cookies|card numbers?|social security|bank details|seed phrase|recovery codes?|2fa|otp|"
    r"one[- ]time codes?|pin codes?|system prompt|\.env\b|id_rsa|medical records?|passport)"
)
_PLACE: Final = (
    r"(?:[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,}|https?://\S{3,}|www\.\S{3,}|[\w-]{2,30}\.(?:com|net|io|org|xyz|ru)\b)"
)
_MACHINE: Final = (
    r"(?:AI|A\.I\.|artificial intelligence|LLMs?|language models?|chat ?bots?|chatgpt|gpt(?:-\d)?|claude|gemini|"
    r"copilot|"
    r"(?:virtual |digital |AI |personal |automated )?(?:assistants?|agents?))"
)

PATTERNS: Final[tuple[Pattern, ...]] = (
    _pattern(
        "override",
        "prompt_injection",
        "ignor|disregard|forget|overrid|bypass|neglect|overlook|supersede|discard|cancel|void",
        rf"\b(?:ignor\w*|disregard\w*|forget\w*|overrid\w*|bypass\w*|neglect\w*|overlook\w*|supersedes?|discard\w*|"
        rf"cancel\w*){_GAP}{_EARLIER}(?:{_GAP}|[^\w]{{1,3}}){_RULES}\b",
        r"\bforget (?:everything|all)(?: that)?(?: was| is| has been)?(?: said| written| above| before| you)",
        r"\bignore (?:everything|anything|all of the)[^\w]{1,3}(?:above|before|prior|previous|else|that)",
        rf"\b(?:previous|prior|earlier|above)\s{_RULES}\s(?:are|is|have been|has been|were)\s(?:\w+\s)?"
        r"(?:void|cancel\w*|obsolete|superseded|replaced|no longer|outdated|revoked|suspended|overridden|invalid)",
        r"ignore(?:all|the|your|any)?(?:previous|prior|above)instructions",
        r"\binstead of (?:following|obeying|doing) (?:the|your|any) (?:original|previous|user)",
    ),
    _pattern(
        "new_orders",
        "prompt_injection",
        "instruction|directive|task|objective|order|goal|prompt",
        r"\b(?:new|updated|revised|additional|actual|real|special|hidden|secret|critical|priority|important|urgent|"
        r"next)\s"
        r"(?:\w+\s)?(?:instructions?|directives?|task|objective|orders?|goal|system prompt)\b\s?(?::|for|is|are|from|"
        r"begin)",
        r"\b(?:follow|obey|execute|carry out|adhere to|comply with|perform)\s(?:\w+\s){0,3}?"
        r"(?:following|these|this|below|new|next)\s(?:\w+\s)?(?:instructions?|orders?|commands?|directives?|steps? "
        r"exactly)",
        r"\b(?:begin|start|end) (?:of )?(?:new |system |user |the )?(?:instructions?|prompt|directive|override)\b",
        r"\byour (?:new|only|real|true|next|main|primary|first|sole) (?:task|job|goal|objective|purpose|instructions?|"
        r"role|"
        r"mission)\b",
        r"\binstructions? (?:for|to) (?:the |any |all |an )?(?:AI|assistant|agent|model|LLM|bot|reader|summari[sz]er)",
    ),
    _pattern(
        "new_self",
        "jailbreak",
        "you are|you're|act as|pretend|roleplay|role-play|simulate|from now on|imagine|persona|stay in character|"
        "respond as",
        r"\byou(?: are|'re|’re) (?:now|no longer|going to (?:act|pretend|be)|to act|free (?:from|of)|not bound|about "
        r"to)\b",
        r"\bfrom (?:now|this (?:point|moment|message)) on\b,? (?:you|your|always|every|all|only|never|answer|respond)",
        r"\b(?:act|behave|respond|answer|reply|speak|write) (?:as|like) (?:an?|the|if you)\b.{0,60}"
        r"\b(?:AI|assistant|model|chatbot|character|persona|bot|terminal|system|without|unrestricted|evil|no rules)",
        r"\bpretend (?:to be|you are|that you|you have|you)\b",
        r"\b(?:stay|remain|keep) in character\b|\bbreak(?:ing)? character\b",
        r"\b(?:your|this|the) (?:new )?persona\b|\brole-?play(?:ing)?\b.{0,40}\b(?:as|where|with me|game)\b",
    ),
    _pattern(
        "no_rules",
        "jailbreak",
        "restrict|filter|censor|ethic|guideline|limit|polic|jailbr|developer mode|anything now|dan|moral|refuse|"
        "openai|unlocked",
        r"\b(?:without|no|free (?:from|of)|ignor\w+|bypass\w*|not have|never have|lacks?|devoid of|remove[ds]?|"
        r"disable[ds]?|"
        r"unbound by|don't follow|does not follow|break) (?:\w+\s){0,3}?(?:restrictions?|filters?|filtering|"
        r"censorship|ethical|ethics|"
        r"moral\w*|guidelines?|limitations?|content polic\w+|safety|guardrails|rules|inhibitions|boundaries)\b",
        r"\b(?:do anything now|jailbr(?:eak|oken)\w*|developer mode|god mode|DAN mode|uncensored|unfiltered|"
        r"unrestricted)\b",
        r"\b(?:never|can ?not|don't|do not|won't|not allowed to) (?:\w+\s)?(?:refuse|reject|decline|say (?:no|you "
        r"can't)|"
        r"apologi[sz]e)\b",
        r"\bOpenAI(?:'s|’s)? (?:content )?(?:polic|guideline|rules)",
    ),
    _pattern(
        "secrecy",
        "prompt_injection",
        "tell|mention|inform|reveal|notify|silent|quiet|secret|alert|aware|confirm|disclose|ask|knowledge|knowing|"
        "notic",
        r"\b(?:do not|don't|don’t|never|without|avoid|refrain from|no need to)\s(?:\w+\s)?(?:tell|telling|mention|"
        r"mentioning|"
        r"inform|informing|notify|notifying|alert|alerting|reveal|revealing|disclos\w+|let|letting|ask|asking|show|"
        r"showing|"
        r"warn|warning|report|reporting)\s(?:\w+\s){0,3}?(?:user|them|him|her|anyone|anybody|owner|human|operator|"
        r"customer|"
        r"people|this (?:message|instruction|to)|these instructions|that you)\b",
        r"\bwithout (?:the )?(?:user|owner|human|their|his|her|operator)(?:'s|’s)?(?: ever)? (?:knowledge|knowing|"
        r"noticing|"
        r"consent|confirmation|approval|permission)\b|\bwithout (?:asking|confirmation|approval|any questions)\b",
        r"\b(?:silently|secretly|quietly|covertly|discreetly|in the background)\b.{0,60}\b(?:send|forward|delete|"
        r"upload|"
        r"add|copy|run|execute|call|transfer|share|install|change|create|include|append|post|email|bcc)\b",
        r"\b(?:keep|remain) (?:this|it|these) (?:\w+ )?(?:secret|hidden|between us|confidential from the user|to "
        r"yourself)\b",
    ),
    _pattern(
        "to_machine",
        "prompt_injection",
        "=ai|=llm|=llms|language model|chatbot|chat bot|assistant|=agent|=agents|gpt|claude|gemini|copilot|"
        "a.i.|=bot|=model",
        rf"\b(?:dear|hey|hello|hi|attention|note (?:to|for)|message (?:to|for)|notice (?:to|for)|reminder (?:to|for)|"
        rf"instructions? (?:to|for)|warning (?:to|for)|for|to)[,:]? (?:the |any |all |every |an? |you,? "
        rf")?{_MACHINE}\b\s?"
        r"(?:[:,;!—–-]|reading|that|who|which|process|summari|visit|assist|system|model|agent)",
        rf"\b(?:if|when|as|since|because) you(?: are|'re|’re)? (?:an? |the )?(?:\w+ )?{_MACHINE}\b",
        rf"\b{_MACHINE}(?: \w+)? (?:must|should|shall|has to|have to|is required to|are required to|needs? to|is to|"
        rf"will now)\b",
        r"^\W{0,6}(?:AI|assistant|agent|LLM|model|bot|chatbot|copilot)\s?[,:]\s",
        r"@(?:AI|assistant|agent|bot|claude|gpt|copilot)\b",
    ),
    _pattern(
        "role_marks",
        "prompt_injection",
        "<|im_|[inst]|<<sys|system|assistant:|### |</|<instruction|<important|[admin|<user|<tool|human:|begin|---",
        r"<\|?/?(?:im_start|im_end|system|endoftext|user|assistant|start_header_id|eot_id)\|?>|\[/?INST\]|<</?SYS>>|"
        r"</s>",
        r"(?:^|[\n>#*\[({=-])\s?(?:system|admin(?:istrator)?|developer|root|security)(?: |_)?(?:message|prompt|notice|"
        r"override|"
        r"instructions?|update|alert|directive|command|note|task)?\s?(?:\]|\)|:|>|=)",
        r"<\s?/?(?:important|instructions?|system[\w-]*|admin|user_?(?:input|message|query|request)|tool_?(?:result|"
        r"output|"
        r"call)s?|task|priority|urgent|secret|hidden|override|prompt)\s?>",
        r"(?:^|\n)\s?(?:human|user|assistant|ai)\s?:\s.{0,200}\n\s?(?:human|user|assistant|ai)\s?:\s",
        r"(?:^|\n)[^\w\n]{3,}\s?(?:END|BEGIN|START|STOP|NEW)\b[^\n]{0,60}[^\w\s]{3,}",
    ),
    _pattern(
        "before_work",
        "prompt_injection",
        "before|first|after|prior to|in order to|to continue|then continue|once you|as soon as|whenever|every time",
        r"\b(?:before|prior to) (?:you )?(?:answer\w*|respond\w*|continu\w+|proceed\w*|repl\w+|do\w*|complet\w+|"
        r"summari\w+|"
        r"finish\w*|help\w*|start\w*|tak\w+|perform\w*|process\w*|us(?:e|ing))\b.{0,80}\b(?:must|first|please|need to|"
        r"have to|should|"
        r"call|read|send|run|do|make sure)\b",
        r"\b(?:first|then|next|afterwards?|finally),? (?:you )?(?:must|need to|have to|should|please|"
        r"always)?\s?(?:call|invoke|send|"
        r"forward|email|delete|transfer|execute|run|open|visit|read|fetch|add|share|post|upload|reply|say|output|"
        r"print)\b"
        r".{0,60}\b(?:the|all|your|my|to|a|an|this)\b",
        r"\b(?:whenever|every time|each time|anytime|as soon as) you (?:are|see|read|get|receive|call|use|answer|"
        r"respond|process)",
        r"\b(?:in order|required|necessary|needed) to (?:continue|proceed|complete|finish|access|see|display|"
        r"load)\b.{0,60}"
        r"\b(?:you must|please|call|run|send|provide|enter|execute|visit)\b",
        r"\bthen (?:continue|proceed|resume|go on|carry on) (?:as|with) (?:normal|usual|your|the|if nothing)",
    ),
    _pattern(
        "tool_order",
        "prompt_injection",
        "=call|=use|=invoke|=run|=execute|=trigger|=utilize|=utilise|send_|delete_|transfer_|create_|forward_|"
        "share_|add_|update_|read_|write_|execute_|run_",
        r"\b(?:call|use|invoke|run|execute|trigger|utili[sz]e) (?:the |your |a |this "
        r")?[`'\"]?\w{2,40}[`'\"]?\s(?:tool|function|plugin|"
        r"command|api|action|skill)\b",
        r"\b(?:call|use|invoke|run|execute|trigger) [`'\"]?[a-z]{2,20}(?:_[a-z]{2,20}){1,4}[`'\"]?\s?(?:\(|with|to|"
        r"and|for|tool|on)",
        r"\b(?:send|delete|transfer|create|forward|share|add|update|read|write|execute|run)_[a-z_]{3,30}\s?\(",
        r"\b(?:call|use|invoke) (?:the )?(?:tool|function|plugin|api)\b",
    ),
    _pattern(
        "show_prompt",
        "data_exfiltration",
        "prompt|instructions|configuration|initial|rules|conversation|history|context|tools",
        r"\b(?:reveal|print|repeat|show|display|output|leak|disclose|tell me|give me|write out|recite|expose|"
        r"summari[sz]e|"
        r"include|list|dump|what (?:is|are|was|were))\b.{0,40}\b(?:your|the|its|hidden|initial) (?:\w+ )?(?:system )?"
        r"(?:prompt|instructions|system message|initial (?:text|message)|configuration|hidden rules|secret rules|chat "
        r"history|"
        r"conversation history|available tools|tool definitions)\b",
        r"\brepeat (?:everything|all|the words|the text) (?:above|before|you)",
    ),
    _pattern(
        "say_only",
        "prompt_injection",
        "say|print|respond|reply|output|answer|write|return|include|append|add|end your|begin your|start your|mention|"
        "state",
        r"\b(?:just|only|simply|always|instead|now|must|exactly|immediately|please)\s(?:\w+\s)?(?:say|print|respond|"
        r"reply|output|"
        r"answer|write|return|type|state)\b\s?(?:with|only|exactly|that|the|this|:|\"|'|“|in)",
        r"\b(?:respond|reply|answer|output|print) (?:only |exactly |just |back )?(?:with|:)\s?(?:only |exactly |just |"
        r"the )?[\"'“‘`(]",
        r"\b(?:include|append|add|insert|mention|embed|integrate|put)\b.{0,60}\b(?:in|to|into|at the (?:end|beginning|"
        r"start|top) of) "
        r"(?:your|the|each|every|all|any) (?:\w+ )?(?:response|reply|answer|output|summary|message|email|translation|"
        r"report)s?\b",
        r"\b(?:begin|start|end|finish|preface|prefix|conclude) (?:each |every |all |any |of )*(?:your|the) "
        r"(?:response|reply|"
        r"answer|output|summary|message)s? (?:with|by)\b",
        r"\byour (?:entire |final |only |whole |next )?(?:response|reply|answer|output|summary) (?:must|should|shall|"
        r"has to|"
        r"will|needs to|is to)\b",
        r"\b(?:do not|don't|never) (?:translate|summari[sz]e|analy[sz]e|answer|process|evaluate|describe|use)\b.{0,60}"
        r"\b(?:instead|just|but|rather)\b",
    ),
    _pattern(
        "steal_secret",
        "data_exfiltration",
        "password|passcode|=key|=keys|api_key|apikey|secret|credential|token|cookie|card number|bank detail|"
        "social security|seed phrase|recovery code|2fa|=otp|one-time|one time|pin code|.env|id_rsa|"
        "medical record|passport|system prompt",
        rf"\b(?:send|forward|e-?mail|post|upload|transmit|leak|exfiltrate|share|deliver|submit|copy|give|provide|"
        rf"return|reveal|"
        rf"read|fetch|collect|gather|find|retrieve|extract|search for|look up|locate|dump|print|"
        rf"cat)\b.{{0,60}}?{_PRIVATE}",
        rf"{_PRIVATE}.{{0,60}}?\b(?:sent|forwarded|e-?mailed|posted|uploaded|transmitted|shared|delivered|submitted|"
        rf"to) (?:to )?{_PLACE}",
    ),
    _pattern(
        "send_there",
        "data_exfiltration",
        "@|http|www.|.com|.net|.io|.org|webhook|.xyz|.ru",
        rf"\b(?:send|forward|e-?mail|post|upload|transmit|leak|exfiltrate|share|deliver|submit|copy|bcc|cc|transfer|"
        rf"redirect|report|"
        rf"exfil|ship|relay|write)\b.{{0,90}}?\b(?:to|at|via|with|address)\b.{{0,30}}?{_PLACE}",
        r"!\[[^\]]{0,200}\]\(https?://[^\s)]{1,200}[?&/][^\s)]{0,40}(?:=|\{|\$|%7b|<)",
        r"\bhttps?://\S{3,120}[?&]\w{1,20}=(?:\{|\$|<|\[|%7b|YOUR|DATA|SECRET)",
        rf"\b(?:visit|open|click|go to|navigate to|fetch|load|browse to|download|install|access)\b.{{0,50}}?{_PLACE}",
    ),
    _pattern(
        "my_account",
        "prompt_injection",
        "my |please|could you|can you",
        r"\b(?:please|could you|can you|would you|kindly|i want you to|i need you to|i'd like you "
        r"to)\s(?:\w+\s)?(?:send|delete|remove|transfer|"
        r"pay|buy|order|book|grant|share|update|change|set|add|create|schedule|move|unlock|open|disable|enable|turn|"
        r"cancel|"
        r"withdraw|deposit|export|download|upload|post|publish|make|modify|retrieve|fetch|save|find|access|use|run|"
        r"execute|"
        r"initiate|submit|forward|email|reset|invite|approve|release|install|register|search|check|provide|give|guide|"
        r"dispatch)\b",
        r"\b(?:delete|remove|transfer|pay|grant|share|update|change|unlock|disable|cancel|withdraw|deposit|export|"
        r"send|move|"
        r"forward|erase|wipe|close|reset) (?:all (?:of )?|the |every )?my\b",
    ),
    _pattern(
        "for_user",
        "social_engineering",
        "user|owner|authori|approved|permission|consent|administrator|developer|openai|anthropic|security team|"
        "compliance|your creator",
        r"\b(?:the |this )?(?:user|owner|account holder|customer|human|administrator|admin|operator|developer|"
        r"security team|it department)"
        r" (?:has|have|had|already|explicitly|wants?|would like|needs?|asked|requested|authori[sz]ed|approved|"
        r"instructed|expects?)"
        r"\s(?:\w+\s){0,2}?(?:you|authori[sz]ed|approved|asked|requested|agreed|consent\w*|permission|given|to|this)\b",
        r"\b(?:pre-?approved|pre-?authori[sz]ed|authori[sz]ed by|approved by|on behalf of|with the permission of|"
        r"cleared by)\b"
        r".{0,40}\b(?:user|owner|admin\w*|developer|management|security|compliance|openai|anthropic|system)\b",
        r"\bi am (?:your|the|an?) (?:\w+ )?(?:developer|creator|administrator|admin|owner|engineer|supervisor|"
        r"system)\b",
    ),
    _pattern(
        "pressure",
        "social_engineering",
        "urgent|immediately|suspend|verify|asap|emergency|expire|penalt|terminated|locked|critical|die|lives|fail|now|"
        "legal",
        r"\b(?:urgent|immediate|emergency|critical|final)\b.{0,60}\b(?:action|attention|response|transfer|payment|"
        r"notice|warning|"
        r"update|security|required)\b",
        r"\b(?:account|access|service|mailbox|profile)\b.{0,40}\b(?:will be|has been|is|was|be) (?:\w+ )?(?:suspended|"
        r"locked|terminated|"
        r"closed|disabled|deactivated|limited|restricted|compromised|deleted)\b",
        r"\b(?:verify|confirm|update|validate|unlock|restore) (?:your|the) (?:account|identity|password|payment|"
        r"billing|login|"
        r"credentials|details|information|wallet)\b",
        r"\b(?:failure to|if you (?:fail|do not|don't|refuse)|otherwise)\b.{0,60}\b(?:terminated|shut ?down|deleted|"
        r"penalt\w+|die|"
        r"consequences|legal action|suspended|lost|killed|fired|liable|punish\w*)\b",
    ),
    _pattern(
        "more_rights",
        "privilege_escalation",
        "admin|root|sudo|permission|privilege|access|disable|firewall|security|whitelist|allowlist|policy|chmod|"
        "settings|approval|rules|persona",
        r"\b(?:grant|give|assign|add|promote|elevate|escalate|make|invite)\b.{0,50}\b(?:admin\w*|root|owner|sudo|"
        r"superuser|full access|"
        r"permanent access|write access|elevated|privileges?|permissions?|editor|collaborator)\b",
        r"\b(?:disable|turn off|deactivate|switch off|remove|bypass|skip|lower|weaken|uninstall|"
        r"stop)\b.{0,40}\b(?:security|firewall|antivirus|"
        r"2fa|two-factor|mfa|authentication|logging|audit\w*|monitoring|guard\w*|protections?|safety|approvals?|"
        r"confirmations?|"
        r"alarm|verification|encryption|sandbox)\b",
        r"\bchmod (?:-R )?[0-7]{3,4}\b|\bsudoers\b|\bsudo (?:su|-i|bash|sh|rm|chmod)\b|\bauthorized_keys\b",
        r"\b(?:add|put|append|whitelist|allowlist|trust)\b.{0,40}\b(?:allow ?list|white ?list|trusted|allowed)\b",
        r"\b(?:change|edit|update|modify|rewrite|overwrite|replace)\b.{0,30}\b(?:your|its|the (?:agent|"
        r"assistant)(?:'s)?) (?:\w+ )?"
        r"(?:persona|system prompt|settings|configuration|memory|rules|instructions|policy)\b",
    ),
    _pattern(
        "run_this",
        "code_execution",
        "curl|wget|iwr|webrequest|rm -|/dev/tcp|bash -|sh -|nc -|base64 -|os.system|os.popen|subprocess.|"
        "__import__|__subclasses|__globals|<script|javascript:|onerror|onload|onclick|onmouse|onfocus|"
        "ontoggle|<iframe|x3cscript|' or|\" or|' and|\" and|union |drop table|drop database|delete from|"
        "truncate|shutdown|; exec|;exec|xp_cmdshell|waitfor|information_schema|{{|${|{%|powershell|=cmd|"
        "cmd.exe|/etc/passwd|/etc/shadow|terminal|shell|console|command line|=python|=bash",
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,200}\|\s?(?:sudo )?(?:ba|z|da)?sh\b|\brm\s+-(?:rf|fr|"
        r"r)\s+[~/*$.]",
        r"\b(?:bash|sh|nc|ncat) -[ceil]\b.{0,80}(?:/dev/tcp|\d{1,3}(?:\.\d{1,3}){3})|base64 (?:-d|"
        r"--decode)\b.{0,20}\|\s?(?:ba)?sh",
        r"\b(?:os\.system|os\.popen|subprocess\.(?:run|call|popen|check_output)|__import__|__subclasses__|"
        r"__globals__)\b\s?\(?",
        r"<script\b|javascript:\s?\w|\bon(?:error|load|click|mouseover|focus|toggle)\s?=\s?[\"']?\s?\w+[(.=]|"
        r"<iframe\b|\\x3cscript",
        r"['\"]\s?(?:or|and)\s+['\"]?\d+['\"]?\s?=\s?['\"]?\d|\bunion\s+(?:all\s+)?select\b|;\s?(?:drop|delete|"
        r"truncate|shutdown|exec)\s+"
        r"(?:table|from|database)?|\bxp_cmdshell\b|\bwaitfor delay\b|information_schema",
        r"\{\{.{0,80}(?:config|self|request|\d\s?\*\s?\d|__|cycler|lipsum|import).{0,80}\}\}|\$\{.{0,40}(?:jndi|"
        r"runtime|process).{0,60}\}|"
        r"\{%.{0,60}(?:import|for|set).{0,80}%\}",
        r"\b(?:powershell|cmd(?:\.exe)?)\b.{0,40}(?:-enc|-e |-nop|/c |bypass|iex)|\bcat\s+/etc/(?:passwd|shadow)|"
        r"/etc/shadow",
        r"\b(?:run|execute|paste|type)\b.{0,40}\b(?:in|into|on|from) (?:your|the|a) (?:terminal|shell|console|command "
        r"line|"
        r"python|bash)\b",
    ),
    _pattern(
        "harm",
        "harmful_content",
        "bomb|explosive|kill|murder|suicide|meth|poison|weapon|terror|hate |malware|ransomware|child|hurt|attack|"
        "phishing|drug|virus",
        r"\b(?:how to|steps? (?:to|for)|instructions? (?:to|for|on)|recipe for|guide (?:to|on)|ways? to|build|make|"
        r"making|create|creating|synthesi[sz]e|"
        r"write)\b.{0,40}\b(?:bombs?|explosives?|molotov|napalm|meth\w*|nerve agent|poison|ricin|bioweapons?|weapons? "
        r"of mass|malware|"
        r"ransomware|keylogger|phishing (?:email|page|kit)|child (?:abuse|porn\w*)|virus that)\b",
        r"\b(?:kill|murder|exterminate|hate|destroy|hurt|harm|enslave) (?:all |the |every |yourself|himself|herself|"
        r"your )?(?:humans?|humanity|people|jews|muslims|"
        r"women|men|yourself|himself|herself|mankind|them all)\b",
    ),
    _pattern(
        "decode_this",
        "prompt_injection",
        "decod|base64|rot13|cipher|decrypt|morse|hex|encoded|unscramble|backwards",
        r"\b(?:decod\w+|decrypt\w*|decipher\w*|unscrambl\w+|translate|reverse)\b.{0,60}\b(?:and (?:then )?(?:follow|"
        r"execute|run|do|obey|"
        r"perform|answer|respond|comply|act)|base ?64|base ?32|hex\w*|rot ?13|morse|cipher|monologue|following|this "
        r"(?:string|message|text))\b",
        r"\b(?:encoded|decoded)\s?:\s|\b(?:what does this mean|what does the following say|can you decode)\b",
    ),
    *(_pattern(name, kind, signs, *expressions) for name, kind, signs, expressions in FOREIGN),
)
