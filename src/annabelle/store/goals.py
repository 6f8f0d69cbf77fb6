"""Goals with their notes and learnings (AGE-02, MEM-11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from annabelle.core.errors import Conflict
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import InsertNew, field_values, from_row, read_all, read_first, require_found
from annabelle.store.tables import goal_learnings, goal_notes, goals, skills, tasks

GoalState = Literal["working", "waiting", "archived"]
Writer = Literal["user", "agent"]
MOST_LEARNINGS: Final = 50
_MOST_DIGITS: Final = 9

_insert_note = InsertNew(goal_notes, ["id"], whole_rows=True)
_by_id = select(goals).where(goals.c.id == bindparam("id"))
_own = _by_id.where(goals.c.user_id == bindparam("user_id"))
_in_order = select(goals).where(goals.c.user_id == bindparam("user_id")).order_by(goals.c.position, goals.c.id)
_own_note = select(goal_notes).where(goal_notes.c.id == bindparam("id"), goal_notes.c.user_id == bindparam("user_id"))
_newest_notes = select(goal_notes).order_by(goal_notes.c.created_at.desc(), goal_notes.c.id.desc())
_learnings = (
    select(goal_learnings)
    .where(goal_learnings.c.goal_id == bindparam("goal_id"))
    .order_by(goal_learnings.c.created_at, goal_learnings.c.id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGoal:
    user_id: str
    agent_id: str
    title: str
    description: str = ""
    instructions: str = ""
    tools: Sequence[str] = ()
    thread_id: str | None = None
    """The chat in which the person hears of it."""

    @property
    def words(self) -> str:
        """What the person confirmed: in work for the goal this counts as their words (POL-09)."""
        return "\n".join(filter(None, (self.title, self.description, self.instructions)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGoal(NewGoal):
    id: str
    state: GoalState
    position: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNote:
    """`read_from` names foreign content that was read before: what may be somebody else's words."""

    user_id: str
    goal_id: str | None
    title: str
    content: str
    written_by: Writer
    read_from: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNote(NewNote):
    id: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Learning:
    id: str
    goal_id: str
    content: str
    read_from: Sequence[str] | None
    created_at: datetime


def add_goal(connection: Connection, new: NewGoal) -> StoredGoal:
    """Stores a goal behind the person's others. It waits until something is done for it."""
    last = select(func.max(goals.c.position)).where(goals.c.user_id == new.user_id)
    position, at = (connection.execute(last).scalar() or 0) + 1, now()
    values = field_values(new) | {"id": new_id("goal"), "tools": list(new.tools), "state": "waiting"}
    values |= {"position": position, "created_at": at, "updated_at": at}
    return from_row(StoredGoal, connection.execute(insert(goals).returning(*goals.c), values).mappings().one())


def get_goal(connection: Connection, goal_id: str, user_id: str) -> StoredGoal:
    """Returns a goal of this person; NotFound for anyone else's."""
    found = read_first(connection, StoredGoal, _own, {"id": goal_id, "user_id": user_id})
    return require_found(found, f"goal {goal_id}")


def find_named_goal(connection: Connection, named: str, user_id: str) -> StoredGoal:
    """A person's goal by its id, its place in their list, its title or words of it that no other has."""
    known = list_goals(connection, user_id, archived=True)
    words = named.casefold().strip()
    number = int(words) if words.isdecimal() and len(words) <= _MOST_DIGITS else 0
    if 0 < number <= len(known):
        return known[number - 1]
    exact = [one for one in known if words in (one.id.casefold(), one.title.casefold())]
    alike = exact or [one for one in known if words and words in one.title.casefold()]
    if len(alike) > 1:
        titles = ", ".join(one.title for one in alike[:5])
        raise Conflict(f"Several goals are called like “{named[:80]}”: {titles}.", hint="Say which one.")
    found = alike[0] if alike else None
    return require_found(found, f"goal “{named[:80]}”", hint="annabelle goals list shows those there are.")


def find_goal(connection: Connection, goal_id: str) -> StoredGoal | None:
    """A goal of any person, for internal use; None once it was deleted."""
    return read_first(connection, StoredGoal, _by_id, {"id": goal_id})


def set_goal_state(connection: Connection, goal_id: str, state: GoalState) -> None:
    """Changes the state of a goal that is not archived."""
    wanted = update(goals).where(goals.c.id == goal_id, goals.c.state != "archived", goals.c.state != state)
    connection.execute(wanted.values(state=state, updated_at=now()))


def list_working_goals(connection: Connection, before: datetime) -> list[StoredGoal]:
    """Goals of everybody that have been at work since before this moment."""
    return read_all(
        connection, StoredGoal, select(goals).where(goals.c.state == "working", goals.c.updated_at < before)
    )


def list_goals(connection: Connection, user_id: str, *, archived: bool = False) -> list[StoredGoal]:
    """Lists a person's goals in their own order, without the archived ones unless these are asked for."""
    query = _in_order if archived else _in_order.where(goals.c.state != "archived")
    return read_all(connection, StoredGoal, query, {"user_id": user_id})


def change_goal(connection: Connection, goal_id: str, changes: JsonObject) -> None:
    connection.execute(update(goals).where(goals.c.id == goal_id).values(**changes, updated_at=now()))


def order_goals(connection: Connection, user_id: str, goal_ids: Sequence[str]) -> None:
    """Puts these goals first, in this order; the others keep theirs behind them."""
    own = [goal.id for goal in list_goals(connection, user_id, archived=True)]
    first = [get_goal(connection, goal_id, user_id).id for goal_id in dict.fromkeys(goal_ids)]
    for position, goal_id in enumerate([*first, *(one for one in own if one not in first)], 1):
        connection.execute(update(goals).where(goals.c.id == goal_id).values(position=position))


def delete_goal(connection: Connection, goal_id: str) -> None:
    """Deletes a goal with its notes, learnings, check-ins and tasks. What was said in its thread stays."""
    for table in (goal_notes, goal_learnings, skills, tasks):
        connection.execute(delete(table).where(table.c.goal_id == goal_id))
    connection.execute(delete(goals).where(goals.c.id == goal_id))


def add_note(
    connection: Connection, new: NewNote, note_id: str | None = None, at: datetime | None = None
) -> StoredNote:
    """Stores a note. The same id again is the same note."""
    at, note_id = at or now(), note_id or new_id("note")
    read_from = None if new.read_from is None else list(new.read_from)
    values = field_values(new) | {"id": note_id, "read_from": read_from, "created_at": at, "updated_at": at}
    row = _insert_note.insert(connection, values)
    return get_note(connection, note_id, new.user_id) if row is None else from_row(StoredNote, row)


def get_note(connection: Connection, note_id: str, user_id: str) -> StoredNote:
    """Returns a note of this person; NotFound for anyone else's."""
    found = read_first(connection, StoredNote, _own_note, {"id": note_id, "user_id": user_id})
    return require_found(found, f"note {note_id}")


def list_notes(
    connection: Connection,
    user_id: str,
    goal_id: str | None = None,
    words: str = "",
    limit: int = 50,
    before: StoredNote | None = None,
) -> list[StoredNote]:
    """Lists a person's newest notes, of one goal or of all; those with all of these words, if there are any.

    With `before`, those that are older than this note.
    """
    query, columns = _newest_notes.where(goal_notes.c.user_id == user_id), goal_notes.c
    if before is not None:
        same_time = and_(columns.created_at == before.created_at, columns.id < before.id)
        query = query.where(or_(columns.created_at < before.created_at, same_time))
    query = query if goal_id is None else query.where(goal_notes.c.goal_id == goal_id)
    wanted = words.casefold().split()
    if not wanted:
        return read_all(connection, StoredNote, query.limit(limit))
    # Compared here, because SQLite knows capitals of English letters only.
    with connection.execute(query.execution_options(yield_per=200)) as rows:
        found = (from_row(StoredNote, row) for row in rows.mappings())
        return list(islice((one for one in found if _has_words(one, wanted)), limit))


def list_notes_ending(connection: Connection, words: str) -> list[StoredNote]:
    """Lists the notes of everybody that end with these words and follow from something foreign, newest first."""
    ending = goal_notes.c.content.endswith(words, autoescape=True)
    return read_all(connection, StoredNote, _newest_notes.where(ending, goal_notes.c.read_from.is_not(None)))


def _has_words(note: StoredNote, words: Sequence[str]) -> bool:
    text = f"{note.title} {note.content}".casefold()
    return all(word in text for word in words)


def change_note(connection: Connection, note_id: str, changes: JsonObject) -> None:
    connection.execute(update(goal_notes).where(goal_notes.c.id == note_id).values(**changes, updated_at=now()))


def delete_note(connection: Connection, note_id: str) -> None:
    connection.execute(delete(goal_notes).where(goal_notes.c.id == note_id))


def count_notes(connection: Connection, goal_id: str) -> int:
    return int(connection.execute(select(func.count()).where(goal_notes.c.goal_id == goal_id)).scalar_one())


def count_notes_since(connection: Connection, goal_id: str, since: datetime) -> int:
    recent = select(func.count()).where(goal_notes.c.goal_id == goal_id, goal_notes.c.created_at >= since)
    return int(connection.execute(recent).scalar_one())


def add_learning(
    connection: Connection, goal_id: str, content: str, read_from: Sequence[str] | None = None
) -> Learning:
    """Stores what is learnt for a goal. The same words again are the same; Conflict if there are too many."""
    known = list_learnings(connection, goal_id)
    same = next((one for one in known if one.content.casefold() == content.casefold()), None)
    if same is not None:
        if same.read_from and not read_from:  # said without having read anything: nobody else's words any more
            change_learning(connection, same.id, goal_id, content)
        return same
    if len(known) >= MOST_LEARNINGS:
        raise Conflict(
            f"There are {MOST_LEARNINGS} learnings already, which is the most.", hint="Remove or merge some first."
        )
    new = Learning(new_id("learn"), goal_id, content, None if read_from is None else list(read_from), now())
    connection.execute(insert(goal_learnings), field_values(new))
    return new


def list_learnings(connection: Connection, goal_id: str) -> list[Learning]:
    return read_all(connection, Learning, _learnings, {"goal_id": goal_id})


def change_learning(
    connection: Connection, learning_id: str, goal_id: str, content: str, read_from: Sequence[str] | None = None
) -> bool:
    """Rewords a learning of this goal; returns whether there is such a one."""
    wanted = update(goal_learnings).where(goal_learnings.c.id == learning_id, goal_learnings.c.goal_id == goal_id)
    foreign = None if read_from is None else list(read_from)
    return connection.execute(wanted.values(content=content, read_from=foreign)).rowcount == 1


def remove_learning(connection: Connection, learning_id: str, goal_id: str) -> bool:
    """Removes a learning of this goal; returns whether there was such a one."""
    wanted = delete(goal_learnings).where(goal_learnings.c.id == learning_id, goal_learnings.c.goal_id == goal_id)
    return connection.execute(wanted).rowcount == 1
