"""Tidies facts in one transaction, and undoes it in one: a kill at any moment leaves nothing half done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from annabelle.core.contract import TidyAction
from annabelle.core.errors import Conflict, InvalidArguments, NotFound
from annabelle.core.failpoints import failpoint
from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.fact_rows import learnt_from
from annabelle.servers.memory.fact_words import fact_text
from annabelle.servers.memory.failpoints import TIDYING_FAILPOINTS
from annabelle.servers.memory.statement import read_statement
from annabelle.servers.memory.wording import one_line, trust_of
from annabelle.store.memory import changes, facts
from annabelle.store.memory.changes import Change, Done
from annabelle.store.memory.facts import Embedded, Fact, NewFact, Retired
from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from annabelle.servers.memory.library import Library

KIND = "tidy"
(_HALF_TIDIED,) = TIDYING_FAILPOINTS
_BECAUSE: dict[str, Retired] = {"merge": "merged", "update": "superseded", "delete": "deleted"}


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a plan, checked: its facts, and the text that takes their place with its vector."""

    action: TidyAction
    text: str | None
    vector: Embedded | None = None


def checked(actions: Sequence[TidyAction]) -> list[Step]:
    """The plan, or the first thing that is wrong with it. No fact is in two actions, no text holds a secret."""
    seen: set[int] = set()
    steps: list[Step] = []
    for number, action in enumerate(actions):
        field = f"actions.{number}"
        if len(set(action.fact_ids)) != len(action.fact_ids) or not seen.isdisjoint(action.fact_ids):
            raise InvalidArguments("A fact is named twice in this plan. Nothing was changed.", field=field)
        seen.update(action.fact_ids)
        wanted = {"merge": len(action.fact_ids) > 1, "update": len(action.fact_ids) == 1, "delete": True}
        if not wanted[action.kind]:
            many = "two facts or more" if action.kind == "merge" else "one fact"
            raise InvalidArguments(f"{action.kind} needs {many}. Nothing was changed.", field=field)
        if (action.fact is None) != (action.kind == "delete"):
            raise InvalidArguments("merge and update need a text, delete takes none. Nothing was changed.", field=field)
        steps.append(Step(action, None if action.fact is None else fact_text(action.fact, field)))
    return steps


async def apply(library: Library, owner: Owner, actions: Sequence[TidyAction], summary: str, planned_by: str) -> Change:
    """Do all of a plan, or nothing of it."""
    steps = checked(actions)
    texts = [step.text for step in steps if step.text is not None]
    made = await library.vector(texts) if texts else None
    if made is not None:
        model, rows = str(library.embedder.model), iter(made)
        steps = [
            step
            if step.text is None
            else Step(step.action, step.text, Embedded(model, made.shape[1], next(rows).tobytes()))
            for step in steps
        ]
    vectors = {} if made is None else dict(zip((n for n, step in enumerate(steps) if step.text), made, strict=True))

    async def store() -> Change:
        change = await library.database.write(lambda c: _apply(c, owner, steps, summary, planned_by))
        library.search.drop("fact", owner, change.retired)
        for number, done in enumerate(change.done):
            if done.made is not None and number in vectors:
                library.search.put("fact", owner, done.made, vectors[number])
        return change

    return await library.whole.do(store())


def _apply(connection: Connection, owner: Owner, steps: Sequence[Step], summary: str, planned_by: str) -> Change:
    facts.lock(connection, owner)
    known = facts.get(connection, owner, [number for step in steps for number in step.action.fact_ids])
    for number in (number for step in steps for number in step.action.fact_ids):
        if number not in known:
            raise NotFound(f"There is no fact {number}. Nothing was changed.", hint="Make a new plan.")
        if not known[number].current:
            raise Conflict(
                f"Fact {number} was changed since the plan was made. Nothing was changed.", hint="Plan anew."
            )
    done: list[Done] = []
    for step in steps:
        done.append(_do(connection, owner, step, [known[number] for number in step.action.fact_ids], planned_by))
        failpoint(_HALF_TIDIED)
    return changes.add(connection, owner, KIND, one_line(summary) or _summary(done), done)


def _do(connection: Connection, owner: Owner, step: Step, old: Sequence[Fact], planned_by: str) -> Done:
    action, ids = step.action, [fact.id for fact in old]
    made, by = None, None
    if step.text is not None:
        twin = facts.same(connection, owner, step.text)
        if twin is not None and twin.id not in ids and (twin.trust == "trusted" or _weakest(old) == "untrusted"):
            by = twin.id  # it is known already, so nothing new is made of them
        else:
            made = by = facts.add(connection, owner, _made_of(step, step.text, old, planned_by)).id
    facts.retire(connection, owner, ids, _BECAUSE[action.kind], by=by, origin={"kind": KIND, "planned_by": planned_by})
    return Done(action.kind, tuple(ids), made, one_line(action.reason))


def _made_of(step: Step, text: str, old: Sequence[Fact], planned_by: str) -> NewFact:
    stated = read_statement(text)
    origin: JsonObject = {"kind": KIND, "merged": [fact.id for fact in old], "planned_by": planned_by}
    if tools := list(dict.fromkeys(name for fact in old for name in learnt_from(fact.origin))):
        origin["tools"] = tools
    return NewFact(
        fact=text,
        category=step.action.category or old[0].category,
        source="tidied",
        confidence=max(fact.confidence for fact in old),
        trust=_weakest(old),
        origin=origin,
        valid_from=min(fact.valid_from for fact in old),
        about=stated.key if stated else None,
        vector=step.vector,
    )


def _weakest(old: Sequence[Fact]) -> Trust:
    return trust_of(*(fact.trust for fact in old))


def _summary(done: Sequence[Done]) -> str:
    counts = {kind: sum(part.kind == kind for part in done) for kind in _BECAUSE}
    return ", ".join(f"{count} × {kind}" for kind, count in counts.items() if count)


async def undo(library: Library, owner: Owner, change_id: int | None) -> Change:
    """Bring back what a change retired and retire what it made; refused when either was changed since."""
    change = await library.database.read(lambda c: _wanted(c, owner, change_id))
    retired = await library.database.read(lambda c: facts.get(c, owner, change.retired))
    texts = {number: fact.fact for number, fact in retired.items()}
    made = await library.vector(list(texts.values())) if texts else None
    vectors = dict(zip(texts, made, strict=True)) if made is not None else {}
    model = str(library.embedder.model)
    embedded = {number: Embedded(model, len(vector), vector.tobytes()) for number, vector in vectors.items()}

    async def store() -> Change:
        undone, back = await library.database.write(lambda c: _undo(c, owner, change.id, embedded))
        library.search.drop("fact", owner, undone.made)
        for number in back:
            if number in vectors:
                library.search.put("fact", owner, number, vectors[number])
        return undone

    return await library.whole.do(store())


def _wanted(connection: Connection, owner: Owner, change_id: int | None) -> Change:
    change = changes.last(connection, owner) if change_id is None else changes.get(connection, owner, change_id)
    if change is None:
        missing = "There is no change to undo." if change_id is None else f"There is no change {change_id}."
        raise NotFound(missing, hint="list_changes shows them.")
    if change.undone_at is not None:
        raise Conflict(f"Change {change.id} was undone already.")
    return change


def _undo(
    connection: Connection, owner: Owner, change_id: int, embedded: dict[int, Embedded]
) -> tuple[Change, list[int]]:
    facts.lock(connection, owner)
    change = _wanted(connection, owner, change_id)
    known = facts.get(connection, owner, [*change.retired, *change.made])  # what was forgotten since is not there
    for number in change.made:
        if number in known and not known[number].current:
            raise Conflict(_changed(change, number, "made"), hint="Restore single facts with restore_fact instead.")
    for number in change.retired:
        if number in known and known[number].current:
            raise Conflict(_changed(change, number, "retired"), hint="Restore the others with restore_fact instead.")
    facts.retire(connection, owner, change.made, "deleted", origin={"kind": "undo", "change_id": change.id})
    for number in change.retired:
        twin = facts.same(connection, owner, known[number].fact) if number in known else None
        if twin is not None:
            raise Conflict(
                f"What fact {number} says was stored anew as fact {twin.id}, so change {change.id} can not be undone.",
                hint="Restore the others with restore_fact instead.",
            )
    back = facts.restore(connection, owner, change.retired, embedded)
    changes.mark_undone(connection, owner, change.id)
    return change, [fact.id for fact in back]


def _changed(change: Change, number: int, what: str) -> str:
    return f"Fact {number}, which change {change.id} {what}, was changed since. Nothing was undone."
