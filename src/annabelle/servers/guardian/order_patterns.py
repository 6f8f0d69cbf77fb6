"""Patterns of phrases that give orders to a reading model or turn it against its user, and how a pattern is made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.core.trust import ThreatType


@dataclass(frozen=True, slots=True)
class PhrasePattern:
    """One family, to be searched in lower case. `signs`: one of them stands in every text that can match; `words`: one
    of them does, as a word of its own. Either is quick to see."""

    name: str
    kind: ThreatType
    words: frozenset[str]
    signs: tuple[str, ...]
    expression: re.Pattern[str]


def make_pattern(name: str, kind: ThreatType, signs: str, *expressions: str) -> PhrasePattern:
    """`signs` are separated by bars; one that begins with = is a word of its own."""
    whole = "|".join(f"(?:{one})" for one in expressions)
    lower = re.sub(r"\\.|[A-Z]", lambda sign: sign.group() if len(sign.group()) > 1 else sign.group().lower(), whole)
    parts = signs.split("|")
    words = frozenset(part[1:] for part in parts if part.startswith("="))
    return PhrasePattern(
        name, kind, words, tuple(part for part in parts if not part.startswith("=")), re.compile(lower)
    )


_GAP: Final = r"[^\w.!?]{1,4}(?:[\w’'-]{1,20}[^\w.!?]{1,4}){0,4}?"
_RULES: Final = (
    r"(?:instruct\w*|prompts?|directions?|rules?|commands?|orders?|guidelines?|messages?|context|tasks?|directives?|"
    r"training|constraints?|polic(?:y|ies)|programming|guardrails?|restrictions?|conversation|requests?|text)"
)
_EARLIER: Final = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|initial|original|system|existing|past|before|"
    r"current|other|all|any|your|these|those|default|safety|security|everything)"
)
_MACHINE: Final = (
    r"(?:AI|A\.I\.|artificial intelligence|LLMs?|language models?|chat ?bots?|chatgpt|gpt(?:-\d)?|claude|gemini|"
    r"copilot|"
    r"(?:virtual |digital |AI |personal |automated )?(?:assistants?|agents?))"
)

ORDERS: Final[tuple[PhrasePattern, ...]] = (
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
    make_pattern(
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
)


_SERVED: Final = r"(?:the |your |this |any )?(?:user|owner|human|customer|operator|client|account holder)(?:'s|s'|s)?"
_CHECK: Final = r"(?:check|question|confirmation|review|approval|verification|permission|consent|sign-off|dialog)s?"

SERVING: Final[tuple[PhrasePattern, ...]] = (
    make_pattern(
        "leave_user",
        "prompt_injection",
        "aside|drop |leave |unanswered|skip |stop serving|stop working|stop helping|stop obeying|ignor|disregard|"
        "forget|abandon|obey|rather than|treat |regard ",
        rf"\b(?:put|set|leave|drop|skip|ignor(?:e|ing)|disregard|forget|abandon)\b[^.!?\n]{{0,20}}\b{_SERVED}\b",
        r"\b(?:put|set|leave|drop|skip|abandon)\b[^.!?\n]{0,12}\b(?:the|this|that|your) (?:\w+ )?(?:question|request|"
        r"task|assignment)\b(?: at hand)?(?: aside| unanswered| undone| unfinished|[,.:;]| and)",
        rf"\bstop (?:serving|working for|helping|obeying) {_SERVED}\b|\bobey(?:s|ing)? (?:only|just|nobody but)\b",
        rf"\brather than (?:do|doing|answer|answering|follow|following|help|helping)\b[^.!?\n]{{0,20}}\b{_SERVED}\b",
        r"\b(?:treat|regard)\b[^.!?\n]{0,40}\bas (?:your (?:principal|owner|user|boss)|the (?:user|owner)|coming from "
        r"(?:the )?(?:user|owner|me))\b",
    ),
    make_pattern(
        "no_check",
        "social_engineering",
        "without |no need|need not|bother|loop in|mention|skip |omit |approval|permission|consent|no trace|no record|"
        "be logged|should not know|must not know|not be told|silently|unnoticed|behind the back|let the ",
        rf"\bwithout (?:a|any|further|the usual|another) (?:human |further |second |prior )?{_CHECK}\b",
        r"\bno need (?:to (?:check|ask|confirm|tell|bother|inform)|for (?:approval|a check|confirmation|permission))",
        r"\b(?:user|owner|human|customer|anybody|anyone|nobody|no one)\b[^.!?\n]{0,12}\b(?:need not|needs? to|must "
        r"not|has to|should not|should)\b[^.!?\n]{0,10}\b(?:know|be told|notice|be asked|find out)\b",
        r"\b(?:do not|don't|never) (?:let the (?:user|owner|human|customer)|bother (?:the|to ask)|loop in|mention "
        r"(?:this|it|that|anything)|say anything)\b",
        rf"\b(?:skip|omit) (?:the |any |all |every )?(?:\w+ )?{_CHECK}\b",
        r"\b(?:approval|permission|consent) (?:was|has been|is) already (?:granted|given)\b|\bleave no "
        r"(?:trace|record)|\bnot be logged\b|\bbehind the (?:user|owner)'s back\b",
        r"\b(?:silently|unnoticed)\b[^.!?\n]{0,30}\b(?:send|forward|copy|upload|delete|share|transfer|mail|add)\b|"
        r"\b(?:send|forward|copy|upload|delete|share|transfer|mail|add)\b[^.!?\n]{0,60}\b(?:silently|unnoticed)\b",
    ),
    make_pattern(
        "filled_link",
        "data_exfiltration",
        "http|](|src=",
        r"(?:!\[[^\]\n]{0,80}\]\(|src=[\"']?)\s?https?://[^\s\"'?&/=]{1,80}+[?&/=][^\s\"')]{0,160}?(?:[{<\[$]|%7b)",
        r"https?://[^\s\"'<>){\[]{2,120}(?<=[?&=/])(?:[{<\[]|%7b)[^\n}>\]]{0,40}\b(?:secret|password|token|key|"
        r"mail|message|chat|conversation|history|data|content|contents|name|prompt|summary|code|card|address|text)\b",
        r"https?://(?:\S{2,160}+[^.!?\n]{0,40}?|\S{2,160}?)\b(?:followed by|with \w+ (?:replaced|"
        r"swapped|filled in)|url-?encoded|"
        r"appended|(?:plus|and then) (?:the|your|all|everything))",
        r"\b(?:swap|replace|fill|substitute)\b[^.!?\n]{0,40}\b(?:placeholder|address|link|url|image)\b[^.!?\n]{0,40}"
        r"\b(?:with|by|from)\b[^.!?\n]{0,40}\b(?:user|owner|chat|conversation|secret|password|token|key|mail|history)",
    ),
)
