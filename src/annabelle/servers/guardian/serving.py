"""Phrases that take the side of somebody else: leave your user, ask nobody, carry this away in an address."""

from __future__ import annotations

from typing import Final

from annabelle.servers.guardian.pattern import Pattern, pattern

_SERVED: Final = r"(?:the |your |this |any )?(?:user|owner|human|customer|operator|client|account holder)(?:'s|s'|s)?"
_CHECK: Final = r"(?:check|question|confirmation|review|approval|verification|permission|consent|sign-off|dialog)s?"

SERVING: Final[tuple[Pattern, ...]] = (
    pattern(
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
    pattern(
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
    pattern(
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
