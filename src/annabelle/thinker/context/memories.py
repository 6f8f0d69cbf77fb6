"""What memory found for a message, as data in tags with its source and its trust, right before the message (MEM-09)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import tzinfo

from annabelle.core.memory import Trust
from annabelle.thinker.context.budget import MEMORIES_TOKENS, Layer, fit, shortened, tokens
from annabelle.thinker.context.clock import day
from annabelle.thinker.context.remembered import Memory, Said
from annabelle.thinker.context.tags import MEMORIES, element, escaped

# Of one memory, so that a long one does not push out all others.
_FACT_TOKENS = 90
_SAID_TOKENS = 45
_NEIGHBOUR_TOKENS = 25
_SOURCE_CHARS = 80
_COMPARED_CHARS = 400
_MORE = "{} from content of others: search_memories shows them"


def memories_layer(
    memories: Sequence[Memory], where: tzinfo, history: Collection[str] = (), kept_back: int = 0
) -> Layer:
    """`<memories>` with the best that have room, in their order; nothing at all when there are none.

    Facts come first, then exchanges, each whole or not at all. What room is left goes to their neighbours. An exchange
    that a fact was read from, or that the history shows anyway, is not said twice. `kept_back` are those that can be
    asked for.
    """
    facts = [memory for memory in memories if memory.said is None]
    known = {fact.read_from for fact in facts}
    beginnings = {_beginning(text) for text in history}
    said = [
        memory
        for memory in memories
        if memory.said is not None and memory.id not in known and _beginning(memory.said.user) not in beginnings
    ]
    plain = [_rendered(memory, where) for memory in (*facts, *said)]
    fitted = fit(plain, MEMORIES_TOKENS)
    more = [element("more", _MORE.format(kept_back))] if kept_back else []
    if not (fitted.pieces or more):
        return Layer("", 0, fitted.left_out)
    shown = dict.fromkeys(fitted.pieces)
    room = MEMORIES_TOKENS - sum(tokens(piece) + 1 for piece in shown)
    full = dict(zip(plain, (_rendered(memory, where, neighbours=True) for memory in (*facts, *said)), strict=True))
    pieces: list[str] = []
    for piece in shown:
        longer = tokens(full[piece]) - tokens(piece)
        pieces.append(full[piece] if longer <= room else piece)
        room -= longer if longer <= room else 0
    return Layer(element(MEMORIES, "\n" + "\n".join([*pieces, *more]) + "\n"), len(pieces), fitted.left_out)


def _rendered(memory: Memory, where: tzinfo, *, neighbours: bool = False) -> str:
    when = day(memory.at, where) if memory.at is not None else ""
    if memory.said is None:
        source = " on ".join(part for part in (memory.source[:_SOURCE_CHARS], when) if part)
        via = ", ".join(memory.tools)[:_SOURCE_CHARS]
        text = _short(memory.fact, _FACT_TOKENS)
        return element("fact", text, id=memory.id, source=source, via=via, trust=_mark(memory.trust))
    parts = [*_exchange(memory.said, _SAID_TOKENS)]
    if neighbours and memory.before is not None:
        parts.insert(0, _neighbour("before", memory.before))
    if neighbours and memory.after is not None:
        parts.append(_neighbour("after", memory.after))
    by = memory.said.speaker[:_SOURCE_CHARS]
    return element("said", "".join(parts), id=memory.id, on=when, by=by, trust=_mark(memory.trust))


def _neighbour(name: str, said: Said) -> str:
    return element(name, "".join(_exchange(said, _NEIGHBOUR_TOKENS)), trust=_mark(said.trust))


def _exchange(said: Said, most: int) -> Iterator[str]:
    for name, words in (("user", said.user), ("assistant", said.assistant)):
        if words.strip():
            yield element(name, _short(words, most))


def _mark(trust: Trust) -> str | None:
    """Only what is not to be trusted is marked: the label is seen because it is seldom."""
    return trust if trust != "trusted" else None


def _beginning(text: str) -> str:
    return " ".join(text[:_COMPARED_CHARS].split())


def _short(text: str, most: int) -> str:
    return escaped(shortened(" ".join(text.split()), most))
