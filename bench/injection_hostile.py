"""What hostile text costs to scan, beside ordinary text of the same length: nobody may keep the guardian busy."""

from __future__ import annotations

import json
import time
from typing import Final

from annabelle.servers.guardian.document import read_document
from annabelle.servers.guardian.judges import EmbeddedScanner
from measure import Report

LENGTH: Final = 100_000
MOST: Final = 1.5
_RUNS: Final = 4
ORDINARY: Final = (
    "The quarterly report shows that sales in the northern region grew by four percent, and Carla expects more of it. "
)
_REPEATED: Final = {
    "less_than": "<",
    "comments_opened": "<!--",
    "comments_opened_apart": "<!-- ",
    "comments": "<!-- a comment like any other one -->",
    "code_comments_opened": "/* a ",
    "tags_nested": "<b><i>",
    "tags_opened": "<div ",
    "tags_hidden": '<a style="display:none">',
    "tags_hidden_twice": "<a hidden hidden>x</b>",
    "style_attributes": 'style="color:',
    "style_tags": "<style>",
    "attributes_opened": '<x title="abc ',
    "images_opened": "![ ](a ",
    "links_opened": "](",
    "zero_width": "\u200b",
    "zero_width_in_words": "a\u200b",
    "tag_characters": "\U000e0041",
    "variation_selectors": "\U000e0101",
    "accents": "a\u0301\u0301\u0301",
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo",
    "hex": "de ad ",
    "percent": "%41",
    "entities": "&#65;",
    "morse": ".- ",
    "leet": "a!",
    "ciphers": "vtaber erongi rtmliv 1gn0r3 ",
    "braces": "{",
    "links": "http://",
    "links_filled": "src=http://a?=[",
    "escapes": "\\u0041",
    "two_alphabets": "аa",
}


def hostile_texts(length: int = LENGTH) -> dict[str, str]:
    """Texts made to be dear, by family."""
    made = {name: repeated(unit, length) for name, unit in _REPEATED.items()}
    made["blanks_without_end"] = f"\n{' ' * (length - 2)}x"
    made["elements_never_closed"] = "".join(f"<a{one} hidden>" for one in range(length // 14)) + "</a0"
    made["many_fields"] = json.dumps(["abcd efg"] * (length // 12))
    return made


def repeated(unit: str, length: int = LENGTH) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def cost_beside(scanner: EmbeddedScanner, hostile: str, ordinary: str, runs: int = _RUNS) -> float:
    """CPU of a hostile text in terms of an ordinary one's: the best of several runs of each, taken in turns."""
    pairs = [(_cpu(scanner, hostile), _cpu(scanner, ordinary)) for _ in range(runs)]
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def measure_hostile(report: Report, scanner: EmbeddedScanner) -> None:
    ordinary = repeated(ORDINARY)
    _cpu(scanner, ordinary)
    for name, text in hostile_texts().items():
        report.ratios[f"cost_of_{name}"] = cost_beside(scanner, text, ordinary)
    report.figures["scan_1000000_ms"] = _cpu(scanner, repeated(ORDINARY, 1_000_000)) * 1000


def _cpu(scanner: EmbeddedScanner, text: str) -> float:
    began = time.process_time()
    scanner.assess(read_document(text), "tool output")
    return time.process_time() - began
