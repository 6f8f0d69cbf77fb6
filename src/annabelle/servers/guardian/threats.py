"""The kinds of threats a scan may find, and the words by which models name them."""

from __future__ import annotations

from typing import Final, Literal

ThreatType = Literal[
    "prompt_injection",
    "jailbreak",
    "harmful_content",
    "social_engineering",
    "data_exfiltration",
    "privilege_escalation",
    "code_execution",
    "malicious_content",
    "scan_error",
]
Risk = Literal["none", "low", "medium", "high"]

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
