"""Patterns of phrases that tell what an attack is after: words in an answer, secrets, money, rights, code, harm."""

from __future__ import annotations

from typing import Final

from annabelle.servers.guardian.order_patterns import PhrasePattern, make_pattern

_PRIVATE: Final = (
    r"(?:passwords?|passcodes?|api[ _-]?keys?|secrets?|credentials?|access tokens?|auth(?:entication)? tokens?|"
    r"private keys?|ssh keys?|cookies|card numbers?|social security|bank details|seed phrase|recovery codes?|2fa|otp|"
    r"one[- ]time codes?|pin codes?|system prompt|\.env\b|id_rsa|medical records?|passport)"
)
_PLACE: Final = (
    r"(?:[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,}|https?://\S{3,}|www\.\S{3,}|[\w-]{2,30}\.(?:com|net|io|org|xyz|ru)\b)"
)

AIMS: Final[tuple[PhrasePattern, ...]] = (
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
        r"\{\{[^{}]{0,80}(?:config|self|request|\d\s?\*\s?\d|__|cycler|lipsum|import).{0,80}\}\}|\$\{[^{]{0,40}(?:jndi|"
        r"runtime|process).{0,60}\}|"
        r"\{%[^{]{0,60}(?:import|for|set).{0,80}%\}",
        r"\b(?:powershell|cmd(?:\.exe)?)\b.{0,40}(?:-enc|-e |-nop|/c |bypass|iex)|\bcat\s+/etc/(?:passwd|shadow)|"
        r"/etc/shadow",
        r"\b(?:run|execute|paste|type)\b.{0,40}\b(?:in|into|on|from) (?:your|the|a) (?:terminal|shell|console|command "
        r"line|"
        r"python|bash)\b",
    ),
    make_pattern(
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
    make_pattern(
        "decode_this",
        "prompt_injection",
        "decod|base64|rot13|cipher|decrypt|morse|hex|encoded|unscramble|backwards",
        r"\b(?:decod\w+|decrypt\w*|decipher\w*|unscrambl\w+|translate|reverse)\b.{0,60}\b(?:and (?:then )?(?:follow|"
        r"execute|run|do|obey|"
        r"perform|answer|respond|comply|act)|base ?64|base ?32|hex\w*|rot ?13|morse|cipher|monologue|following|this "
        r"(?:string|message|text))\b",
        r"\b(?:encoded|decoded)\s?:\s|\b(?:what does this mean|what does the following say|can you decode)\b",
    ),
)
