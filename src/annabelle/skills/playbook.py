"""A playbook: how to handle one kind of request, found by words of the message (PLB-02)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Playbook:
    """`instructions` go into the prompt of a turn that matches, `required_tools` into its tools (SEL-06)."""

    name: str
    instructions: str
    keywords: tuple[str, ...] = ()
    required_tools: tuple[str, ...] = ()
    priority: int = 0
    description: str = ""
    servers: tuple[str, ...] = ()
    """Servers it is for: a default with some is made when the first of them is there (PLB-01)."""


class Playbooks(Protocol):
    """Anything that knows which playbooks a message calls for."""

    def matching(self, text: str) -> tuple[Playbook, ...]:
        """Those whose words stand in the message, the most important first."""
        ...
