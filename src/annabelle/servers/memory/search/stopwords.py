"""English words that say nothing about what is looked for. Other languages go by how common a word is here."""

from __future__ import annotations

_QUESTION = (
    "what which who whom whose when where why how did do does is are was were has have had the a an of in on to for"
)
_COMMON = """
and or but if at by with about from off out as be been being am doing done having i me my mine we us our you your he
him his she her they them their it its this that these those there here many much long old often kind type name can
could will would shall should may might must not no nor so than too very just also any some such both each few more
most other own same s t d ll m re ve please tell remember forgot return answer format give e g ie etc
"""

QUESTION_WORDS = frozenset(_QUESTION.split())
"""What makes a sentence a question: no answer says them."""

STOP_WORDS = QUESTION_WORDS.union(_COMMON.split())
