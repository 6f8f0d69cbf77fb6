"""The languages in which orders are understood, and the verbs people give them with."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.english import ENGLISH
from annabelle.policy.intent.french import FRENCH
from annabelle.policy.intent.german import GERMAN
from annabelle.policy.intent.polish import POLISH
from annabelle.policy.intent.spanish import SPANISH

IMPERATIVES: Final = (ENGLISH, GERMAN, FRENCH, SPANISH, POLISH)
