"""Keys and tokens that are known by their shape, whatever is said around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from annabelle.core.secret_shapes import SHAPES, may_have_shape

# A key begins where a word begins: "task-list-of-the-week" holds no key.
_SHAPED = re.compile("|".join(f"(?P<k{n}>(?<![A-Za-z0-9])(?:{shape.pattern}))" for n, shape in enumerate(SHAPES)))


def shaped_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Every such key: its kind, and where it begins and ends."""
    if may_have_shape(text):
        for match in _SHAPED.finditer(text):
            yield SHAPES[int(str(match.lastgroup)[1:])].kind, match.start(), match.end()
