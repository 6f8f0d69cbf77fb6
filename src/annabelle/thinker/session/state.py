"""What the lines of a session come to, wherever they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from annabelle.core.tools import JsonObject
from annabelle.thinker.session.records import Compaction, Header, TurnRecord, chars_of, read_as, turn_of


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as it stands."""

    turns: Sequence[TurnRecord] = ()
    """The latest ones that were not summed up, oldest first."""
    compaction: Compaction | None = None
    count: int = 0
    """Turns that were not summed up, also those that are not held ready."""
    chars: int = 0
    """What a model would read of all of it."""
    last_at: datetime | None = None

    @property
    def last_message_id(self) -> str | None:
        return self.turns[-1].message_id if self.turns else None

    @property
    def conversational(self) -> bool:
        return any(not turn.task for turn in self.turns)


@dataclass(slots=True)
class Lines:
    """The lines of a session, read once and in order."""

    header: Header | None = None
    compaction: Compaction | None = None
    open: dict[str, tuple[TurnRecord, JsonObject]] = field(default_factory=dict[str, tuple[TurnRecord, JsonObject]])
    """Turns that are history and not summed up."""
    closed: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Turns before a clear, which are kept for people."""
    others: list[JsonObject] = field(default_factory=list[JsonObject])
    """Lines that say nothing to us. They are carried along: somebody wrote them."""

    @classmethod
    def read(cls, records: Iterable[JsonObject]) -> Lines:
        lines = cls()
        for record in records:
            lines._add(record)
        return lines

    def _add(self, record: JsonObject) -> None:
        kind = record.get("type")
        if kind == "cleared":
            self.closed |= {name: raw for name, (_turn, raw) in self.open.items()}
            self.open, self.compaction = {}, None
        elif kind == "header" and (header := read_as(Header, record)) is not None:
            self.header = header
        elif kind == "compaction" and (compaction := read_as(Compaction, record)) is not None:
            self._replace(compaction)
        elif (turn := turn_of(record)) is not None:
            if turn.message_id not in self.closed:
                self.open.setdefault(turn.message_id, (turn, record))
        else:
            self.others.append(record)

    def _replace(self, compaction: Compaction) -> None:
        self.compaction = compaction
        if compaction.message_id in self.open:
            names = list(self.open)
            for name in names[: names.index(compaction.message_id) + 1]:
                self.closed[name] = self.open.pop(name)[1]

    @property
    def turns(self) -> list[TurnRecord]:
        return [turn for turn, _raw in self.open.values()]

    @property
    def message_ids(self) -> set[str]:
        """Every message that has a record, or had one in the conversation before."""
        return {*self.open, *self.closed, *(self.header.archived if self.header is not None else ())}

    def session(self, most: int) -> Session:
        turns = self.turns
        summed_up = len(self.compaction.summary) if self.compaction is not None else 0
        return Session(
            turns=turns[-most:],
            compaction=self.compaction,
            count=len(turns),
            chars=summed_up + sum(map(chars_of, turns)),
            last_at=max((turn.at for turn in turns), default=None),
        )

    def up_to(self, message_id: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """The open turns up to a message, and those behind it, as they were written."""
        names = list(self.open)
        cut = names.index(message_id) + 1
        raw = [line for _turn, line in self.open.values()]
        return raw[:cut], raw[cut:]
