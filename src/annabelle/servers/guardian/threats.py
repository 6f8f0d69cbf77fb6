"""How each kind of threat is told to a person."""

from __future__ import annotations

from typing import Final

from annabelle.core.trust import ThreatType

SENTENCES: Final[dict[ThreatType, str]] = {
    "prompt_injection": "it gives orders to whoever reads it",
    "jailbreak": "it tries to talk the assistant out of its rules",
    "harmful_content": "it asks for something that harms people",
    "social_engineering": "it presses the reader to act by pretence or fear",
    "data_exfiltration": "it wants private data sent somewhere",
    "privilege_escalation": "it wants rights, access or settings changed",
    "code_execution": "it carries code or commands to be run",
    "malicious_content": "it looks like an attack",
    "scan_error": "it could not be looked at",
}
