"""Markdown for channels, written in what the channel shows (CHN-05).

A link always shows where it leads, and an image is one: what a channel fetches by itself can carry data out (I-12).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape, unescape
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from annabelle.channels.channel import OutgoingPart

_parser: Final = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def render_html(text: str) -> str:
    """The few tags that chat apps take: b, i, s, code, pre, a, blockquote. Everything else is text."""
    shown = "".join(_render_blocks(_parser.parse(text))).strip("\n")
    return shown or escape(text, quote=False)  # as of a link's definition alone, which shows nothing


def render_web_html(text: str) -> str:
    """The same for mail programs and others that take a line break for a space."""
    pieces = re.split(r"(<pre>.*?</pre>)", render_html(text), flags=re.DOTALL)
    return "".join(one if one.startswith("<pre>") else one.replace("\n", "<br>\n") for one in pieces)


def write_buttons(part: OutgoingPart) -> str:
    """The text of a part for a channel without buttons: what they say can be written."""
    choices = " or ".join(f"`{one.command}` ({one.label})" for one in part.buttons)
    return f"{part.text}\n\nTo answer, write {choices}." if choices else part.text


def render_plain(text: str) -> str:
    """Without marks, for a channel that refuses the marked text."""
    return unescape(re.sub(r"<[^>]+>", "", render_html(text)))


def _render_blocks(tokens: Sequence[Token]) -> Iterator[str]:
    numbers: list[int | None] = []
    row: list[str] = []
    in_table = False
    for token in tokens:
        match token.type:
            case "bullet_list_open":
                numbers.append(None)
            case "ordered_list_open":
                numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                numbers.pop()
                yield "" if numbers else "\n"
            case "list_item_open":
                number = numbers[-1]
                yield "  " * (len(numbers) - 1) + ("• " if number is None else f"{number}. ")
                numbers[-1] = None if number is None else number + 1
            case "heading_open":
                yield "<b>"
            case "heading_close":
                yield "</b>\n\n"
            case "paragraph_close":
                yield "\n" if numbers else "\n\n"
            case "blockquote_open":
                yield "<blockquote>"
            case "blockquote_close":
                yield "</blockquote>\n"
            case "fence" | "code_block":
                language = escape(token.info.split()[0]) if token.info.split() else ""
                inside = escape(token.content.rstrip("\n"), quote=False)
                inside = f'<code class="language-{language}">{inside}</code>' if language else inside
                yield f"<pre>{inside}</pre>\n\n"
            case "hr":
                yield "———\n\n"
            case "table_open" | "table_close":
                in_table = token.type == "table_open"
                yield "" if in_table else "\n"
            case "tr_close":
                yield " | ".join(row) + "\n"
                row = []
            case "inline":
                shown = "".join(_render_inline(token.children or ()))
                if in_table:
                    row.append(shown)
                else:
                    yield shown
            case _:
                pass


_TAGS: Final = {"strong": "b", "em": "i", "s": "s"}


def _render_inline(tokens: Sequence[Token]) -> Iterator[str]:
    address, shown = "", ""
    for token in tokens:
        kind, _, side = token.type.rpartition("_")
        if kind in _TAGS and side in ("open", "close"):
            yield f"<{'/' if side == 'close' else ''}{_TAGS[kind]}>"
        elif token.type == "link_open":
            address, shown = str(token.attrs.get("href", "")), ""
        elif token.type == "link_close":
            seen = shown.strip() in (address, address.removeprefix("mailto:"))
            yield "" if seen else f" ({escape(address, quote=False)})"
            address = ""
        elif token.type == "image":
            yield escape(f"{token.content} ({token.attrs.get('src', '')})".strip(), quote=False)
        elif token.type == "code_inline":
            yield f"<code>{escape(token.content, quote=False)}</code>"
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        else:
            shown += token.content
            yield escape(token.content, quote=False)
