"""RTF files as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from annabelle.servers.documents.formats.base import Format, Part, Wanted

_TOKEN = re.compile(
    r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.IGNORECASE
)
_BREAKS = {"par": "\n", "line": "\n", "sect": "\n\n", "page": "\n\n", "tab": "\t", "cell": " | ", "row": "\n",
           "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
           "rdblquote": "”"}  # fmt: skip
_HIDDEN = frozenset(
    ("fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "generator", "themedata",
     "listtable", "listoverridetable", "rsidtbl", "xmlnstbl", "datastore", "latentstyles")
)  # fmt: skip


class RichText(Format):
    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        yield Part(1, "", _plain(data.decode("latin-1")).strip())


def _plain(source: str) -> str:
    """Read token by token: groups nest, and a group of settings is hidden with all that is in it."""
    pieces: list[str] = []
    hidden = [False]
    skip = 0
    for match in _TOKEN.finditer(source):
        word, number, code, sign, brace, text = match.groups()
        if brace == "{":
            hidden.append(hidden[-1])
        elif brace == "}":
            if len(hidden) > 1:
                hidden.pop()
        elif sign == "*" or (word is not None and word.lower() in _HIDDEN):
            hidden[-1] = True
        elif hidden[-1]:
            continue
        elif word == "u" and number is not None:
            pieces.append(chr(int(number) % 65_536) if not 0xD800 <= int(number) % 65_536 < 0xE000 else "\ufffd")
            skip = 1  # a stand-in for readers that know no Unicode follows
        elif word is not None:
            pieces.append(_BREAKS.get(word.lower(), ""))
        elif skip and (code is not None or text is not None):
            pieces.append((text or "")[1:])
            skip = 0
        elif code is not None:
            pieces.append(bytes([int(code, 16)]).decode("cp1252", errors="replace"))
        elif sign is not None:
            pieces.append({"~": " ", "_": "-", "\\": "\\", "{": "{", "}": "}"}.get(sign, ""))
        elif text is not None:
            pieces.append(text)
    return "".join(pieces)


FORMAT = RichText()
