"""Separates `<think>…</think>` from the answer, as local reasoning models write it into their text."""

from __future__ import annotations

from annabelle.llm.types import TextDelta, ThinkDelta

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Feed it pieces of text in order. Only a tag at the very start of the answer counts."""

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, piece: str) -> list[TextDelta | ThinkDelta]:
        if self._state == "text":
            return [TextDelta(piece)] if piece else []
        self._held += piece
        if self._state == "start":
            begun = self._held.lstrip()
            if begun.startswith(_OPEN):
                self._state, self._held = "think", begun[len(_OPEN) :]
            elif not begun or _OPEN.startswith(begun):
                return []  # it may still become a tag
            else:
                self._state = "text"
                return self._release(TextDelta)
        return self._thinking()

    def finish(self) -> list[TextDelta | ThinkDelta]:
        """What was held back because a tag might have followed."""
        kind = ThinkDelta if self._state == "think" else TextDelta
        return self._release(kind) if self._held.strip() else []

    def _thinking(self) -> list[TextDelta | ThinkDelta]:
        before, tag, after = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "text", ""
            events: list[TextDelta | ThinkDelta] = [ThinkDelta(before)] if before.strip() else []
            after = after.lstrip()
            return [*events, TextDelta(after)] if after else events
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        out, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [ThinkDelta(out)] if out else []

    def _release(self, kind: type[TextDelta] | type[ThinkDelta]) -> list[TextDelta | ThinkDelta]:
        text, self._held = self._held, ""
        return [kind(text)] if text else []
