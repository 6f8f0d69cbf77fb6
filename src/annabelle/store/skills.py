"""Skills, and a row for every time one is due (SKL-01, SKL-08)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from typing import Literal

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, literal, select, update
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import Conflict
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import InsertNew, field_values, from_row, read_all, read_first, require_found
from annabelle.store.tables import fires, messages, skills

FireState = Literal["due", "started", "finished", "failed", "waiting", "skipped", "missed", "unknown"]
_MOST_DIGITS = 18
RUN = "run_"
_OPEN = ("due", "started", "waiting")

_insert_fire = InsertNew(fires, whole_rows=True)
_by_id = select(skills).where(skills.c.id == bindparam("id"))
_own = _by_id.where(skills.c.user_id == bindparam("user_id"))
_named = select(skills).where(
    skills.c.user_id == bindparam("user_id"), func.lower(skills.c.name) == func.lower(bindparam("name"))
)
_timed = select(skills).where(skills.c.enabled, skills.c.next_due.is_not(None))
_next_due = _timed.with_only_columns(skills.c.next_due).order_by(skills.c.next_due).limit(1)
_due = _timed.where(skills.c.next_due <= bindparam("at")).order_by(skills.c.next_due, skills.c.id)
_open = select(fires).where(fires.c.state.in_(_OPEN)).order_by(fires.c.due_at)
# A run by a model is a message, which ends its fire.
_has_run = exists().where(messages.c.id == literal(RUN) + fires.c.id)
_to_run = _open.with_only_columns(fires.c.id).where(fires.c.state != "waiting", ~_has_run)
_fire_by_id = select(fires).where(fires.c.id == bindparam("id"))
_change = update(skills).where(skills.c.id == bindparam("skill"))
_begin = (
    update(fires)
    .where(fires.c.id == bindparam("fire"), fires.c.state == "due")
    .values(state="started", started_at=bindparam("at"))
    .returning(*fires.c)
)
_park = update(fires).where(fires.c.id == bindparam("fire"), fires.c.state == "started").values(state="waiting")
_finish = (
    update(fires)
    .where(fires.c.id == bindparam("fire"), fires.c.state.in_(_OPEN))
    .values(state=bindparam("new_state"), result=bindparam("new_result"), finished_at=bindparam("at"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkill:
    user_id: str
    agent_id: str
    thread_id: str
    name: str
    description: str
    instructions: str
    trigger_type: str
    trigger: JsonObject
    plan: JsonObject | None
    required_tools: list[str]
    max_steps: int
    notify: bool
    notify_interval_minutes: int
    missed: str
    enabled: bool
    next_due: datetime | None
    token_budget: int | None = None
    preflight: JsonObject | None = None
    made_after: list[str] | None = None
    webhook_hash: str | None = None
    confirmed_at: datetime | None = None
    goal_id: str | None = None
    check_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSkill(NewSkill):
    id: int
    disabled_why: str | None
    failures: int
    last_notified_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def comes_once(self) -> bool:
        """Whether it is due at one moment, and made up for if that is missed."""
        return "at" in self.trigger and self.missed == "run"


@dataclass(frozen=True, slots=True)
class StoredFire:
    id: str
    skill_id: int
    user_id: str
    name: str
    due_at: datetime
    state: FireState
    started_at: datetime | None
    finished_at: datetime | None
    result: JsonObject | None
    payload: JsonObject | None

    @property
    def content(self) -> JsonObject | None:
        """What came from outside with what set it off."""
        return self.payload if self.payload is not None and "text" in self.payload else None

    @property
    def by_hand(self) -> bool:
        return self.payload is not None and "by" in self.payload

    @property
    def open(self) -> bool:
        return self.state in _OPEN


def add_skill(connection: Connection, new: NewSkill) -> StoredSkill:
    """Stores a skill; Conflict if the person has one of this name."""
    at = now()
    values = {**field_values(new), "failures": 0, "created_at": at, "updated_at": at}
    try:
        with connection.begin_nested():
            row = connection.execute(insert(skills).returning(skills), values).mappings().one()
    except IntegrityError as error:
        raise Conflict(
            f"There is a skill “{new.name}” already.", hint="Change that one, or give this one another name."
        ) from error
    return from_row(StoredSkill, row)


def find_skill(connection: Connection, named: str | int, user_id: str) -> StoredSkill:
    """A skill of this person by its number, its name, or words of it that no other has; NotFound for anyone else's."""
    same = read_all(connection, StoredSkill, _named, {"name": str(named), "user_id": user_id})
    found = next((one for one in same if one.name == named), same[0] if len(same) == 1 else None)
    words = str(named).casefold().strip()
    if found is None and words.isdecimal():
        number = int(words[:_MOST_DIGITS])
        found = read_first(connection, StoredSkill, _own, {"id": number, "user_id": user_id})
    elif found is None and words:
        alike = [
            one for one in list_skills(connection, user_id) if words in f"{one.name}\n{one.instructions}".casefold()
        ]
        running = [one for one in alike if one.enabled] or alike
        if len(running) > 1:
            names = ", ".join(one.name for one in running[:5])
            raise Conflict(f"Several skills are about “{named}”: {names}.", hint="Say which one.")
        found = running[0] if running else None
    return require_found(found, f"skill “{named}”", hint="annabelle skills list shows those there are.")


def find_by_webhook(connection: Connection, webhook_hash: str) -> StoredSkill:
    """The enabled skill of a webhook; NotFound for any other address."""
    query = select(skills).where(skills.c.webhook_hash == webhook_hash, skills.c.enabled)
    return require_found(read_first(connection, StoredSkill, query), "webhook")


def load_skill(connection: Connection, skill_id: int) -> StoredSkill | None:
    """A skill of any person, for internal use; None once it was deleted."""
    return read_first(connection, StoredSkill, _by_id, {"id": skill_id})


def list_skills(connection: Connection, user_id: str) -> list[StoredSkill]:
    own = select(skills).where(skills.c.user_id == user_id)
    return read_all(connection, StoredSkill, own.order_by(skills.c.next_due.is_(None), skills.c.next_due, skills.c.id))


def find_free_name(connection: Connection, user_id: str, name: str, own: int | None = None) -> str:
    """This name, or with a number behind it if another skill of the person than `own` has it, whatever its capitals."""
    taken = {one.name.casefold() for one in list_skills(connection, user_id) if one.id != own}
    numbered = (f"{name} ({number})" for number in count(2))
    return next(one for one in chain([name], numbered) if one.casefold() not in taken)


def update_skill(connection: Connection, skill_id: int, changes: Mapping[str, object]) -> StoredSkill:
    """Changes a skill; Conflict if the person has another of its new name."""
    try:
        with connection.begin_nested():
            change_skill(connection, skill_id, changes)
    except IntegrityError as error:
        raise Conflict(f"There is a skill “{changes.get('name')}” already.") from error
    return require_found(load_skill(connection, skill_id), f"skill {skill_id}")


def change_skill(connection: Connection, skill_id: int, changes: Mapping[str, object]) -> None:
    """Changes anything but the name."""
    connection.execute(_change, {"skill": skill_id, **changes, "updated_at": now()})


def delete_skill(connection: Connection, skill_id: int) -> None:
    """Deletes it for good. What it did stays; what has not begun is skipped."""
    connection.execute(delete(skills).where(skills.c.id == skill_id))
    skip_due_fires(connection, skill_id, "The skill was deleted.")


def skip_due_fires(connection: Connection, skill_id: int, why: str) -> None:
    """Skips what its schedule set off and has not begun, as while its agent is paused."""
    waiting = update(fires).where(fires.c.skill_id == skill_id, fires.c.state == "due", fires.c.payload.is_(None))
    connection.execute(waiting.values(state="skipped", finished_at=now(), result={"text": why}))


def find_check_in(
    connection: Connection, user_id: str, check_in: str, goal_id: str | None = None
) -> StoredSkill | None:
    """The check-in of this kind that a goal has; without a goal that of the person's own agent."""
    wanted = skills.c.goal_id.is_(None) if goal_id is None else skills.c.goal_id == goal_id
    query = select(skills).where(skills.c.user_id == user_id, skills.c.check_in == check_in, wanted)
    return read_first(connection, StoredSkill, query)


def list_check_ins(connection: Connection, goal_id: str) -> list[StoredSkill]:
    return read_all(connection, StoredSkill, select(skills).where(skills.c.goal_id == goal_id).order_by(skills.c.id))


def remove_old_fires(connection: Connection, skill_id: int, before: datetime) -> int:
    """Removes what came of a skill before this moment, where it is too much to keep."""
    old = delete(fires).where(fires.c.skill_id == skill_id, fires.c.due_at < before, fires.c.state.not_in(_OPEN))
    return connection.execute(old).rowcount


def next_due_at(connection: Connection) -> datetime | None:
    """When the next skill of anybody is due."""
    return connection.execute(_next_due).scalar()


def list_due_skills(connection: Connection, at: datetime, limit: int) -> list[StoredSkill]:
    return read_all(connection, StoredSkill, _due.limit(limit), {"at": at})


def add_fires(
    connection: Connection,
    skill: StoredSkill,
    instants: Sequence[tuple[datetime, str]],
    payload: JsonObject | None = None,
) -> list[StoredFire]:
    """Writes down when a skill is or was due. What stands there already is left, and not returned."""
    added: list[StoredFire] = []
    for due_at, state in instants:
        values = {
            "id": make_fire_id(skill.id, due_at),
            "skill_id": skill.id,
            "user_id": skill.user_id,
            "name": skill.name,
            "due_at": due_at,
            "state": state,
            "finished_at": None if state == "due" else now(),
            "payload": payload,
        }
        row = _insert_fire.insert(connection, values)
        if row is not None:
            added.append(from_row(StoredFire, row))
    return added


def make_fire_id(skill_id: int, due_at: datetime) -> str:
    """One for each instant, as exact as it is stored."""
    return f"fire_{skill_id}_{due_at.timestamp():.6f}".replace(".", "_")


def begin_fire(connection: Connection, fire_id: str, at: datetime) -> StoredFire | None:
    """Marks a due fire as started and returns it; None if it was not due."""
    row = connection.execute(_begin, {"fire": fire_id, "at": at}).mappings().first()
    return None if row is None else from_row(StoredFire, row)


def park_fire(connection: Connection, fire_id: str) -> bool:
    """Marks a started fire as waiting for a person; returns whether it was started."""
    return connection.execute(_park, {"fire": fire_id}).rowcount == 1


def finish_fire(connection: Connection, fire_id: str, state: FireState, result: JsonObject, at: datetime) -> bool:
    """Stores how a fire ended; returns False if it had ended before."""
    change: JsonObject = {"fire": fire_id, "new_state": state, "new_result": result, "at": at}
    return connection.execute(_finish, change).rowcount == 1


def load_fire(connection: Connection, fire_id: str) -> StoredFire:
    return require_found(read_first(connection, StoredFire, _fire_by_id, {"id": fire_id}), f"fire {fire_id}")


def load_skill_of_fire(connection: Connection, fire_id: str) -> StoredSkill | None:
    """The skill of a fire, for internal use; None once it was deleted."""
    return load_skill(connection, load_fire(connection, fire_id).skill_id)


def list_open_fires(connection: Connection) -> list[StoredFire]:
    return read_all(connection, StoredFire, _open)


def run_id(fire: StoredFire) -> str:
    """The id of the message that a model carries out for a fire."""
    return f"{RUN}{fire.id}"


def list_timed_skills(connection: Connection) -> list[StoredSkill]:
    """The skills of everybody that are on a schedule, also those that are switched off."""
    return read_all(
        connection, StoredSkill, select(skills).where(skills.c.trigger_type == "cron").order_by(skills.c.id)
    )


def find_newest_fire(connection: Connection, skill_id: int) -> StoredFire | None:
    """The newest fire of a skill that is more than due: begun, ended or passed over."""
    handled = select(fires).where(fires.c.skill_id == skill_id, fires.c.state != "due")
    return read_first(connection, StoredFire, handled.order_by(fires.c.due_at.desc()).limit(1))


def waiting_since(connection: Connection, skill_id: int) -> datetime | None:
    """When the oldest fire of a skill was due that has not begun."""
    waiting = fires.c.skill_id == skill_id, fires.c.state == "due"
    return connection.execute(select(func.min(fires.c.due_at)).where(*waiting)).scalar()


def count_open_fires(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).where(fires.c.state.in_(_OPEN))).scalar_one())


def list_fires_to_run(connection: Connection) -> list[str]:
    """The ids of open fires that nobody carries out once this process has begun."""
    return list(connection.execute(_to_run).scalars())


def list_fires(connection: Connection, user_id: str, skill_id: int | None = None, limit: int = 50) -> list[StoredFire]:
    """A person's fires, newest first."""
    own = select(fires).where(fires.c.user_id == user_id)
    if skill_id is not None:
        own = own.where(fires.c.skill_id == skill_id)
    return read_all(connection, StoredFire, own.order_by(fires.c.due_at.desc()).limit(limit))


def list_last_fires(connection: Connection, user_id: str) -> dict[int, StoredFire]:
    """The newest fire of each skill of a person, by skill."""
    other = fires.alias()
    newest = select(func.max(other.c.due_at)).where(other.c.skill_id == skills.c.id).correlate(skills).scalar_subquery()
    own = skills.c.user_id == user_id, fires.c.skill_id == skills.c.id, fires.c.due_at == newest
    return {fire.skill_id: fire for fire in read_all(connection, StoredFire, select(fires).where(*own))}
