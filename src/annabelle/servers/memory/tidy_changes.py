"""Plans, applies and undoes changes that merge or delete facts. Each change is one transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, select

from annabelle.core.contract import TidyAction
from annabelle.core.errors import Conflict, InvalidArguments, NotFound
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory, Trust
from annabelle.language.lexicon import load_lexicon
from annabelle.servers.memory.arguments import lowest_trust, one_line
from annabelle.servers.memory.config import TIDYING_FAILPOINTS
from annabelle.servers.memory.fact_fields import check_fact_text, tools_of_origin
from annabelle.servers.memory.search.query import keywords, overlap_share
from annabelle.servers.memory.statement import Statement, read_statement
from annabelle.store.memory import fact_history, facts, vectors
from annabelle.store.memory.fact_history import FactChange, FactChangePart
from annabelle.store.memory.facts import Fact, FactVector, NewFact, RetirementReason
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row
from annabelle.store.memory.tables import facts as table

if TYPE_CHECKING:
    from annabelle.servers.memory.open_memory import OpenMemory


KIND = "tidy"
(_HALF_TIDIED,) = TIDYING_FAILPOINTS
_BECAUSE: dict[str, RetirementReason] = {"merge": "merged", "update": "superseded", "delete": "deleted"}


@dataclass(frozen=True, slots=True)
class TidyStep:
    """A checked action of a plan. `text` replaces its facts."""

    action: TidyAction
    text: str | None
    vector: FactVector | None = None


def check_actions(actions: Sequence[TidyAction]) -> list[TidyStep]:
    """Check a plan. Raises for the first mistake; no fact may be in two actions, no text may hold a secret."""
    seen: set[int] = set()
    steps: list[TidyStep] = []
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
        steps.append(TidyStep(action, None if action.fact is None else check_fact_text(action.fact, field)))
    return steps


async def apply_tidy(
    memory: OpenMemory, owner: Owner, actions: Sequence[TidyAction], summary: str, planned_by: str
) -> FactChange:
    """Apply a whole plan or nothing of it."""
    steps = check_actions(actions)
    new = [number for number, step in enumerate(steps) if step.text is not None]
    embedded = dict(zip(new, await memory.embed_facts([steps[number].text or "" for number in new]), strict=True))
    steps = [replace(step, vector=embedded.get(number)) for number, step in enumerate(steps)]

    async def apply_and_index() -> FactChange:
        change = await memory.database.write(lambda c: _apply_in_transaction(c, owner, steps, summary, planned_by))
        memory.search.drop("fact", owner, change.retired)
        made = {done.made: step.vector for done, step in zip(change.done, steps, strict=True) if done.made is not None}
        memory.index_vectors(owner, made)
        return change

    return await memory.uncancellable.run(apply_and_index())


def _apply_in_transaction(
    connection: Connection, owner: Owner, steps: Sequence[TidyStep], summary: str, planned_by: str
) -> FactChange:
    facts.lock_facts(connection, owner)
    known = facts.get_facts(connection, owner, [number for step in steps for number in step.action.fact_ids])
    for number in (number for step in steps for number in step.action.fact_ids):
        if number not in known:
            raise NotFound(f"There is no fact {number}. Nothing was changed.", hint="Make a new plan.")
        if not known[number].current:
            raise Conflict(
                f"Fact {number} was changed since the plan was made. Nothing was changed.", hint="Plan anew."
            )
    done: list[FactChangePart] = []
    for step in steps:
        done.append(
            _apply_step(connection, owner, step, [known[number] for number in step.action.fact_ids], planned_by)
        )
        failpoint(_HALF_TIDIED)
    return fact_history.add_change(connection, owner, KIND, one_line(summary) or _summarize(done), done)


def _apply_step(
    connection: Connection, owner: Owner, step: TidyStep, old: Sequence[Fact], planned_by: str
) -> FactChangePart:
    action, ids = step.action, [fact.id for fact in old]
    made, by = None, None
    if step.text is not None:
        twin = facts.find_same_fact(connection, owner, step.text)
        if twin is not None and twin.id not in ids and (twin.trust == "trusted" or _lowest_trust(old) == "untrusted"):
            by = twin.id  # the text is already known, so no fact is added
        else:
            made = by = facts.add_fact(connection, owner, _merge_facts(step, step.text, old, planned_by)).id
    facts.retire_facts(
        connection, owner, ids, _BECAUSE[action.kind], by=by, origin={"kind": KIND, "planned_by": planned_by}
    )
    return FactChangePart(action.kind, tuple(ids), made, one_line(action.reason))


def _merge_facts(step: TidyStep, text: str, old: Sequence[Fact], planned_by: str) -> NewFact:
    stated = read_statement(text)
    origin: JsonObject = {"kind": KIND, "merged": [fact.id for fact in old], "planned_by": planned_by}
    if tools := list(dict.fromkeys(name for fact in old for name in tools_of_origin(fact.origin))):
        origin["tools"] = tools
    return NewFact(
        fact=text,
        category=step.action.category or old[0].category,
        source="tidied",
        confidence=max(fact.confidence for fact in old),
        trust=_lowest_trust(old),
        origin=origin,
        valid_from=min(fact.valid_from for fact in old),
        about=stated.key if stated else None,
        vector=step.vector,
    )


def _lowest_trust(old: Sequence[Fact]) -> Trust:
    return lowest_trust(*(fact.trust for fact in old))


def _summarize(done: Sequence[FactChangePart]) -> str:
    counts = {kind: sum(part.kind == kind for part in done) for kind in _BECAUSE}
    return ", ".join(f"{count} × {kind}" for kind, count in counts.items() if count)


async def undo_tidy(memory: OpenMemory, owner: Owner, change_id: int | None) -> FactChange:
    """Restore what a change retired and retire what it made. Refused if either was changed since."""
    change = await memory.database.read(lambda c: _find_change(c, owner, change_id))
    retired = await memory.database.read(lambda c: facts.get_facts(c, owner, change.retired))
    embedded = dict(zip(retired, await memory.embed_facts([fact.fact for fact in retired.values()]), strict=True))

    async def undo_and_index() -> FactChange:
        undone, back = await memory.database.write(lambda c: _undo_in_transaction(c, owner, change.id, embedded))
        memory.search.drop("fact", owner, undone.made)
        memory.index_vectors(owner, {number: embedded.get(number) for number in back})
        return undone

    return await memory.uncancellable.run(undo_and_index())


def _find_change(connection: Connection, owner: Owner, change_id: int | None) -> FactChange:
    change = (
        fact_history.last_change(connection, owner)
        if change_id is None
        else fact_history.get_change(connection, owner, change_id)
    )
    if change is None:
        missing = "There is no change to undo." if change_id is None else f"There is no change {change_id}."
        raise NotFound(missing, hint="list_changes shows them.")
    if change.undone_at is not None:
        raise Conflict(f"Change {change.id} was undone already.")
    return change


def _undo_in_transaction(
    connection: Connection, owner: Owner, change_id: int, embedded: Mapping[int, FactVector | None]
) -> tuple[FactChange, list[int]]:
    facts.lock_facts(connection, owner)
    change = _find_change(connection, owner, change_id)
    known = facts.get_facts(connection, owner, [*change.retired, *change.made])  # forgotten facts are missing
    for what, numbers, others in (("made", change.made, "single facts"), ("retired", change.retired, "the others")):
        for number in numbers:
            if number in known and known[number].current == (what == "retired"):
                raise Conflict(
                    f"Fact {number}, which change {change.id} {what}, was changed since. Nothing was undone.",
                    hint=f"Restore {others} with restore_fact instead.",
                )
    facts.retire_facts(connection, owner, change.made, "deleted", origin={"kind": "undo", "change_id": change.id})
    for number in change.retired:
        twin = facts.find_same_fact(connection, owner, known[number].fact) if number in known else None
        if twin is not None:
            raise Conflict(
                f"What fact {number} says was stored anew as fact {twin.id}, so change {change.id} can not be undone.",
                hint="Restore the others with restore_fact instead.",
            )
    back = facts.restore_facts(connection, owner, change.retired, embedded)
    fact_history.mark_change_undone(connection, owner, change.id)
    return change, [fact.id for fact in back]


SAME_WORDS = 0.8
SAME_MEANING = 0.92
FEWEST_WORDS = 2
"""Facts of one keyword, such as "likes tea" and "hates tea", are too short to compare by words."""

_NUMBERS = re.compile(r"\d+")
_WORDS = load_lexicon("recall")
_NO = re.compile(rf"(?i)\b{_WORDS.alternation('negation')}\b|{_WORDS.alternation('negation_ending')}\b")

Cosine = Callable[[int, int], float]


@dataclass(frozen=True, slots=True)
class _ComparableFact:
    fact: Fact
    words: frozenset[str]
    numbers: frozenset[str]
    denied: bool
    stated: Statement | None

    def says_other(self, other: _ComparableFact) -> bool:
        """Whether a number, a negation or the value of the same relation differs."""
        if self.numbers != other.numbers or self.denied != other.denied:
            return True
        return bool(self.stated and other.stated and self.stated.contradicts(other.stated))


def propose_actions(facts: Sequence[Fact], cosine: Cosine) -> list[TidyAction]:
    """Propose actions for facts of one category. Each fact is in one action at most."""
    weighed = sorted((_to_comparable(fact) for fact in facts), key=_sort_key, reverse=True)
    taken: set[int] = set()
    actions: list[TidyAction] = []
    for best in weighed:
        if best.fact.id in taken:
            continue
        rest = [one for one in weighed if one.fact.id not in taken and one is not best and not best.says_other(one)]
        held = [one for one in rest if _contains(best, one)]
        same = [one for one in rest if one not in held and _says_the_same(best, one, cosine)]
        if same:
            group = [best, *same, *(one for one in held if one.fact.trust == best.fact.trust)]
            actions.append(_merge_action(group))
        elif held:
            group = [best, *held]
            actions.append(_delete_action(best, held))
        else:
            continue
        taken.update(one.fact.id for one in group)
    return actions


def _to_comparable(fact: Fact) -> _ComparableFact:
    numbers = frozenset(_NUMBERS.findall(fact.fact))
    return _ComparableFact(fact, keywords(fact.fact), numbers, bool(_NO.search(fact.fact)), read_statement(fact.fact))


def _sort_key(one: _ComparableFact) -> tuple[object, ...]:
    """Prefer trusted, detailed, confident and recent facts."""
    fact = one.fact
    return fact.trust == "trusted", len(one.words), fact.confidence, fact.updated_at, fact.id


def _contains(one: _ComparableFact, other: _ComparableFact) -> bool:
    """Whether this fact has every word of the other and replacing it loses no trust."""
    return (
        len(other.words) >= FEWEST_WORDS
        and other.words <= one.words
        and not (other.fact.trust == "trusted" and one.fact.trust == "untrusted")
    )


def _says_the_same(one: _ComparableFact, other: _ComparableFact, cosine: Cosine) -> bool:
    if one.fact.trust != other.fact.trust:
        return False  # the merged fact would be untrusted
    alike = (
        min(len(one.words), len(other.words)) >= FEWEST_WORDS and overlap_share(one.words, other.words) >= SAME_WORDS
    )
    return alike or cosine(one.fact.id, other.fact.id) >= SAME_MEANING


def _merge_action(group: Sequence[_ComparableFact]) -> TidyAction:
    first = max(group, key=lambda one: (one.fact.confidence, one.fact.updated_at, one.fact.id))
    return TidyAction(
        kind="merge",
        fact_ids=tuple(sorted(one.fact.id for one in group)),
        fact=first.fact.fact,
        category=first.fact.category,
        reason="they say the same",
    )


def _delete_action(best: _ComparableFact, held: Sequence[_ComparableFact]) -> TidyAction:
    return TidyAction(
        kind="delete", fact_ids=tuple(sorted(one.fact.id for one in held)), reason=f"fact {best.fact.id} says it all"
    )


@dataclass(frozen=True, slots=True)
class TidyProposals:
    facts: list[Fact]
    actions: list[TidyAction]


async def plan_tidy(memory: OpenMemory, owner: Owner, categories: Sequence[FactCategory], most: int) -> TidyProposals:
    """Propose actions for at most `most` facts per category, the least recently renewed."""
    model = str(memory.embedder.model)

    def read_and_propose(connection: Connection) -> TidyProposals:
        known: list[Fact] = []
        actions: list[TidyAction] = []
        for category in categories:
            found = _load_oldest(connection, owner, category, most)
            known += found
            blobs = vectors.get_vectors(connection, "fact", [fact.id for fact in found], model)
            meaning = {number: np.frombuffer(blob, np.float32) for number, blob in blobs.items()}

            def cosine(one: int, other: int, meaning: dict[int, np.ndarray] = meaning) -> float:
                return float(meaning[one] @ meaning[other]) if one in meaning and other in meaning else 0.0

            actions += propose_actions(found, cosine)
        return TidyProposals(known, actions)

    return await memory.database.read(read_and_propose)


def _load_oldest(connection: Connection, owner: Owner, category: FactCategory, most: int) -> list[Fact]:
    query = (
        select(table)
        .where(owner.row_filter(table), table.c.category == category, table.c.retired_at.is_(None))
        .order_by(table.c.updated_at, table.c.id)
        .limit(most)
    )
    return [load_row(Fact, row) for row in connection.execute(query).mappings()]
