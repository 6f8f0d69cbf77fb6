"""Cuts a text into messages that a channel takes, where a reader would (CHN-05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_LAST_OF_ONE: Final = "\uffff"
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def split_markdown(text: str, longest: int) -> list[str]:
    """Cut a text into messages: between paragraphs, else lines, else words; code stays code on both sides.

    `longest` counts an emoji as two, as chat apps do.
    """
    parts: list[str] = []
    part = ""
    for block in _blocks(text):
        if part and _count_units(part) + _count_units(block) + 2 > longest:
            parts.append(part)
            part = ""
        if _count_units(block) <= longest:
            part = f"{part}\n\n{block}" if part else block
        else:
            *whole, part = _cut_block(block, longest)
            parts += whole
    return [*parts, part] if part else parts


def _count_units(text: str) -> int:
    """The length as chat apps count it: an emoji is two."""
    return len(text) + sum(sign > _LAST_OF_ONE for sign in text)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs and fenced code, each whole."""
    lines: list[str] = []
    fence = ""
    for line in text.strip("\n").splitlines():
        opened = _FENCE.match(line)
        if not fence and not line.strip():
            if lines:
                yield "\n".join(lines)
            lines = []
            continue
        if opened is not None and not fence:
            if lines:
                yield "\n".join(lines)
            lines, fence = [line], opened[1]
            continue
        lines.append(line)
        if fence and _closes(line, fence):
            yield "\n".join(lines)
            lines, fence = [], ""
    if lines:
        yield "\n".join(lines)


def _closes(line: str, fence: str) -> bool:
    """A fence is closed by as many of its signs, or more, and nothing else."""
    return line.strip().startswith(fence) and not line.strip().strip(fence[0])


def _cut_block(block: str, longest: int) -> list[str]:
    lines = block.splitlines()
    opened = _FENCE.match(lines[0])
    head, tail = ("", "") if opened is None else (f"{lines[0][:80]}\n", f"\n{opened[1]}")
    inside = lines if opened is None else lines[1 : -1 if _closes(lines[-1], opened[1]) else None]
    room = max(longest - _count_units(head) - _count_units(tail), 2)
    cut: list[str] = []
    part: str | None = None
    for piece in (piece for line in inside for piece in _cut_line(line, room)):
        if part is not None and _count_units(part) + _count_units(piece) + 1 > room:
            cut.append(part)
            part = piece
        else:
            part = piece if part is None else f"{part}\n{piece}"
    return [f"{head}{one}{tail}" for one in (*cut, part or "")]


def _cut_line(line: str, room: int) -> Iterator[str]:
    while _count_units(line) > room:
        fits = room
        while _count_units(line[:fits]) > room:
            fits -= (_count_units(line[:fits]) - room + 1) // 2
        at = line.rfind(" ", fits // 2, fits)
        at = fits if at < 0 else at
        yield line[:at]
        line = line[at:].removeprefix(" ")
    yield line
