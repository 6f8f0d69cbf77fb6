"""Keeps a turn so that it is found: its row and words in one transaction, its vectors, and its place in the search."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.servers.memory.library import Library
from annabelle.store.memory import conversations, vectors
from annabelle.store.memory.conversations import NewTurn, Turn
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.passages import passages


async def keep_turn(library: Library, owner: Owner, new: NewTurn) -> tuple[Turn, bool]:
    """The turn as it is kept, and whether it is new. Without vectors it is kept all the same; they follow later."""
    made = await library.vector(passages("conversation", new.text()))
    model = str(library.embedder.model)

    def change(connection: Connection) -> tuple[Turn, bool]:
        turn, is_new = conversations.add(connection, owner, new)
        if is_new and made is not None:
            data = made.astype("<f4").tobytes()
            vectors.put(connection, "conversation", owner, turn.id, model, data, made.shape[1])
        return turn, is_new

    async def store() -> tuple[Turn, bool]:
        turn, is_new = await library.database.write(change)
        if is_new:
            library.search.place(turn.place(owner))
            if made is not None:
                library.search.put("conversation", owner, turn.id, made)
        return turn, is_new

    return await library.whole.do(store())
