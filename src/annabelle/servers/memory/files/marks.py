"""The comments in an exported page that say which row a line stands for, and how text is kept apart from them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from annabelle.core.errors import InvalidArguments
from annabelle.core.memory import Trust

_ENTITY = re.compile(r"&(?=(?:amp|lt|gt);)")
_LINE_SIGN = re.compile(r"^(\s*)(\\*)([-*#+])")
_ESCAPED_SIGN = re.compile(r"^(\s*)\\(\\*)(?=[-*#+])")
_MARK = re.compile(r"[ \t]*<!-- (\d{1,18}) (trusted|untrusted) ([0-9a-f]{8}) -->")


@dataclass(frozen=True, slots=True)
class Mark:
    """Which row a piece of a page was written from, and how it read then."""

    id: int
    trust: Trust
    check: str

    def __str__(self) -> str:
        return f"<!-- {self.id} {self.trust} {self.check} -->"


def check_of(*values: object) -> str:
    """A short sum over what was written, that tells whether somebody changed it. White space does not count."""
    plain = [" ".join(value.split()) if isinstance(value, str) else value for value in values]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]


def escaped(text: str) -> str:
    """Text that can stand in a page: nothing in it reads as a comment, a heading or another line's bullet."""
    plain = _ENTITY.sub("&amp;", text)
    first, *rest = plain.split("\n")
    lines = [first, *(_LINE_SIGN.sub(r"\1\\\2\3", line) for line in rest)]
    return "\n".join(lines).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def unescaped(text: str) -> str:
    """The text again, as it was."""
    first, *rest = text.split("\n")
    lines = [first, *(_ESCAPED_SIGN.sub(r"\1\2", line) for line in rest)]
    return "\n".join(lines).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def take_mark(text: str, line: int) -> tuple[str, Mark | None]:
    """A piece of a page without its mark, and the mark. What is left of a damaged one is refused."""
    found = list(_MARK.finditer(text))
    if len(found) > 1:
        raise bad_line(line, "two lines of the export ran together here", "Put them on lines of their own.")
    rest = _MARK.sub("", text)
    if "<!--" in rest or "-->" in rest:
        raise bad_line(line, "the comment at its end is damaged", "Remove the whole comment, or export anew.")
    if not found:
        return rest, None
    number, trust, check = found[0].groups()
    return rest, Mark(int(number), "trusted" if trust == "trusted" else "untrusted", check)


def bad_line(line: int, problem: str, hint: str | None = None) -> InvalidArguments:
    """What is wrong with a file, and where. Nothing of it was imported."""
    return InvalidArguments(f"Line {line} can not be imported: {problem}. Nothing was imported.", hint=hint)
