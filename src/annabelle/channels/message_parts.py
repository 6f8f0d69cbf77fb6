"""Cuts a text into messages that a channel takes, where a reader would (CHN-05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def split_markdown(text: str, longest: int) -> list[str]:
    """Cut a text into messages: between paragraphs, else lines, else words; code stays code on both sides."""
    parts: list[str] = []
    part = ""
    for block in _blocks(text):
        if part and len(part) + len(block) + 2 > longest:
            parts.append(part)
            part = ""
        if len(block) <= longest:
            part = f"{part}\n\n{block}" if part else block
        else:
            *whole, part = _cut_block(block, longest)
            parts += whole
    return [*parts, part] if part else parts


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
    room = max(longest - len(head) - len(tail), 1)
    cut: list[str] = []
    part: str | None = None
    for piece in (piece for line in inside for piece in _cut_line(line, room)):
        if part is not None and len(part) + len(piece) + 1 > room:
            cut.append(part)
            part = piece
        else:
            part = piece if part is None else f"{part}\n{piece}"
    return [f"{head}{one}{tail}" for one in (*cut, part or "")]


def _cut_line(line: str, room: int) -> Iterator[str]:
    while len(line) > room:
        at = line.rfind(" ", room // 2, room)
        at = room if at < 0 else at
        yield line[:at]
        line = line[at:].removeprefix(" ")
    yield line
