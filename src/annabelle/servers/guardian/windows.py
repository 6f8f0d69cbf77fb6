"""Cuts a text into overlapping windows: an order of one sentence must not drown in a long page."""

from __future__ import annotations

from typing import Final

WIDTHS: Final = (200, 480)
"""Characters of a window; one for a sentence, one for a paragraph."""

Window = tuple[int, int]


def windows_of(start: int, length: int) -> list[Window]:
    """The windows of a text that stands at `start`: the whole of a short one, else halves overlapping."""
    if length <= WIDTHS[0]:
        return [(start, start + length)]
    found: list[Window] = []
    for width in WIDTHS:
        if length <= width * 5 // 4:
            found.append((start, start + length))
            break
        stride = width // 2
        count = -(-(length - width) // stride)
        found += [(start + place * stride, start + place * stride + width) for place in range(count)]
        found.append((start + length - width, start + length))
    return found
