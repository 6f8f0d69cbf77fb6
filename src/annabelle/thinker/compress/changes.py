"""What changed since the last cycle, in a few lines (CMP-10): told beside the conversation, never in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from annabelle.thinker.compress.texts import result_text
from annabelle.thinker.context.budget import fit
from annabelle.thinker.context.tags import escaped

CONTEXT_TOKENS: Final = 150
_OUTCOME_CHARS: Final = 70
_LINE_CHARS: Final = 100


def state_changes(since: Sequence[ModelMessage], workspace_before: str, workspace_now: str) -> str:
    """Outcomes of the latest calls, and lines of the workspace that came or went; empty when nothing changed."""
    requests = [message for message in since if isinstance(message, ModelRequest)]
    lines = [_outcome(part) for one in requests for part in one.parts if isinstance(part, ToolReturnPart)]
    lines += _difference(workspace_before, workspace_now) if workspace_before else []
    fitted = fit(lines, CONTEXT_TOKENS - 10)
    rest = [f"and {fitted.left_out} more"] if fitted.left_out else []
    return "\n".join([*fitted.pieces, *rest])


def _outcome(part: ToolReturnPart) -> str:
    text = " ".join(result_text(part).split())
    short = text if len(text) <= _OUTCOME_CHARS else f"{text[:_OUTCOME_CHARS]}…"
    return f"{part.tool_name} {'worked' if part.outcome == 'success' else 'failed'}: {escaped(short)}"


def _difference(before: str, now: str) -> list[str]:
    old, new = before.splitlines(), now.splitlines()
    gone, come = set(old) - set(new), set(new) - set(old)
    lines = [f"workspace, new: {line.strip()[:_LINE_CHARS]}" for line in new if line in come and line.strip()]
    return lines + [f"workspace, gone: {line.strip()[:_LINE_CHARS]}" for line in old if line in gone and line.strip()]
