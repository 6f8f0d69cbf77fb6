"""Sections of the prompt that are texts of our own keeping: summaries, playbooks, what is being worked on (CTX-09)."""

from __future__ import annotations

from collections.abc import Sequence

from annabelle.skills.playbook import Playbook
from annabelle.thinker.context.budget import EARLIER_TOKENS, PLAYBOOKS_TOKENS, Layer, fit, shortened, tokens
from annabelle.thinker.context.tags import EARLIER_SESSIONS, PLAYBOOKS, defused, element, escaped

_SESSION_TOKENS = 100
"""Of one earlier session, so that a long one does not push out all others."""
_MARKUP_TOKENS = 20


def section(name: str, text: str, most: int) -> Layer:
    """One text in its tag, its end cut when it is too long; nothing at all for an empty one."""
    if not text.strip():
        return Layer()
    return Layer(element(name, f"\n{shortened(defused(text), most)}\n"), 1, max(0, tokens(text) - most))


def earlier_layer(summaries: Sequence[str]) -> Layer:
    """`<earlier-sessions>`, the latest last; where room is short, the oldest are left out."""
    said = [" ".join(summary.split()) for summary in reversed(summaries) if summary.strip()]
    fitted = fit((element("session", shortened(escaped(text), _SESSION_TOKENS)) for text in said), EARLIER_TOKENS)
    return _listed(EARLIER_SESSIONS, fitted.pieces[::-1], fitted.left_out)


def playbooks_layer(playbooks: Sequence[Playbook]) -> Layer:
    """`<playbooks>` in their order; of one that is too long by itself the beginning, another is whole or not there."""
    most = PLAYBOOKS_TOKENS - _MARKUP_TOKENS
    told = [(one.name, one.instructions.strip()) for one in playbooks if one.instructions.strip()]
    pieces = [element("playbook", f"\n{shortened(escaped(text), most)}\n", name=name[:40]) for name, text in told]
    fitted = fit(pieces, PLAYBOOKS_TOKENS)
    return _listed(PLAYBOOKS, fitted.pieces, fitted.left_out)


def _listed(name: str, pieces: Sequence[str], left_out: int) -> Layer:
    if not pieces:
        return Layer("", 0, left_out)
    return Layer(element(name, "\n" + "\n".join(pieces) + "\n"), len(pieces), left_out)
