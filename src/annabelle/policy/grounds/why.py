"""How a doubt is put to the person."""

from __future__ import annotations

from annabelle.policy.facts import TurnFacts

_SHOWN = 80


def seen_before(turn: TurnFacts) -> str:
    """What makes a turn one to be careful in, as the beginning of a sentence."""
    if not turn.origins:
        return ""
    shown = ", ".join(turn.origins[:2]) + (" and others" if len(turn.origins) > 2 else "")
    return f"This conversation has seen content from outside ({shown}), and "


def short(value: str) -> str:
    """A value as it is shown in a reason: on one line, and not too long."""
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(value.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def doubt(turn: TurnFacts, what: str) -> str:
    """The sentence: `you did not name mallory@example.com`."""
    sentence = f"{seen_before(turn)}{what}."
    return sentence[0].upper() + sentence[1:]
