"""What a person reads when they are asked: the exact call, why it is asked, what a yes means and until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from annabelle.core.events import TurnEvent
from annabelle.core.tools import JsonObject
from annabelle.core.visible import visible, visible_data
from annabelle.store.approvals import Approval

SHOWN_CHARS: Final = 600
SHOWN_ARGUMENTS: Final = 40
"""How much of one value, and of how many, is shown in a chat. All of it is in the question itself, over the API and in
the terminal."""


def question(approvals: Sequence[Approval]) -> str:
    """The text of one or several questions of a turn."""
    return "\n\n".join(_one(approval) for approval in approvals)


def _one(approval: Approval) -> str:
    lines = [f"May I call {visible(approval.tool)}?"]
    given = list(approval.arguments.items())
    lines += [f"  {visible(name)}: {_shown(value, approval.id)}" for name, value in given[:SHOWN_ARGUMENTS]]
    if len(given) > SHOWN_ARGUMENTS:
        left_out = len(given) - SHOWN_ARGUMENTS
        lines.append(f"  [… {left_out} more arguments are left out here: annabelle approvals show {approval.id} …]")
    if not given:
        lines.append("  (without arguments)")
    lines += [
        f"Why I ask: {' '.join(map(visible, approval.reasons)) or 'Policy wants your yes for this call.'}",
        f"A yes makes exactly this call, once. Without an answer by {until(approval.expires_at)} nothing is done.",
        f"Answer with: annabelle approvals approve {approval.id} (or deny)",
    ]
    return "\n".join(lines)


def asking(approval: Approval) -> TurnEvent:
    """The question as an event of the message it belongs to."""
    data: JsonObject = {
        "approval_id": approval.id,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "reasons": approval.reasons,
        "expires_at": approval.expires_at.isoformat(),
    }
    return TurnEvent(message_id=approval.message_id, key=f"approval:{approval.id}", type="approval", data=data)


def until(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def headline(approval: Approval) -> str:
    """The question in a few words."""
    return f"{visible(approval.tool)} ({approval.id})"


def _shown(value: object, approval_id: str) -> str:
    text = visible_data(value)
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    left_out = len(text) - 2 * half
    cut = f"[… {left_out} of {len(text)} characters are left out here: annabelle approvals show {approval_id} …]"
    return f"{text[:half]} {cut} {text[-half:]}"
