"""Tidying merges what says the same, in one piece, and can be undone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, NotFound
from annabelle.store.memory.owner import Owner
from servers.memory.memories import MakeMemory, Memory
from support.timing import seconds

OWNER = Owner("owner", "annabelle")

WEB = {"trust": "untrusted", "origins": ("searcher_web_fetch",)}


async def _store(call, *texts: str, category: str = "preference") -> list[int]:
    return [(await call("store_fact", fact=text, category=category)).fact_id for text in texts]


async def _current(memory: Memory) -> dict[int, str]:
    return {fact.id: fact.fact for fact in (await memory.as_()("list_facts", limit=200)).facts}


async def _planned(memory: Memory, **wanted: object) -> list[tuple[str, tuple[int, ...]]]:
    plan = await memory.as_hub()("tidy_plan", **wanted)
    return [(action.kind, action.fact_ids) for action in plan.actions]


@pytest.mark.req("MEM-07")
async def test_the_rules_merge_what_says_the_same_and_drop_what_another_fact_holds(memory: Memory) -> None:
    call = memory.as_()
    same = await _store(call, "Enjoys hiking mountains every summer", "Every summer, hiking mountains with friends")
    held = await _store(call, "Plays chess online", "Plays chess online against a friend in Oslo")
    await _store(call, "Likes olives", "Hates olives", "Runs 5 km before breakfast", "Runs 10 km before breakfast")
    plan = await memory.as_hub()("tidy_plan")
    proposed = {action.kind: action for action in plan.actions}
    assert len(plan.actions) == 2
    assert proposed["merge"].fact_ids == tuple(same)
    assert proposed["merge"].fact == "Every summer, hiking mountains with friends"  # the newest wording
    assert proposed["delete"].fact_ids == (held[0],)
    assert f"fact {held[1]} says it all" in proposed["delete"].reason
    assert {fact.fact_id for fact in plan.facts} == set(await _current(memory))


@pytest.mark.req("MEM-07", "TRU-03")
async def test_the_rules_never_give_up_a_trusted_fact_for_an_untrusted_one(memory: Memory) -> None:
    (short,) = await _store(memory.as_(), "Plays chess online")
    await _store(memory.as_(**WEB), "Plays chess online against a friend in Oslo")
    assert await _planned(memory) == []
    (rich,) = await _store(memory.as_(), "Collects stamps of steam trains from Norway")
    (poor,) = await _store(memory.as_(**WEB), "Collects stamps of steam trains")
    assert await _planned(memory) == [("delete", (poor,))]
    assert {short, rich} <= set(await _current(memory))


async def test_a_plan_takes_those_of_each_category_that_were_renewed_longest_ago(memory: Memory) -> None:
    call = memory.as_()
    first = await _store(call, *(f"Topic {n} of the club" for n in range(4)), category="pattern")
    await _store(call, "Topic 0 of the club", category="pattern")
    await _store(call, "Likes tea")
    plan = await memory.as_hub()("tidy_plan", category="pattern", max_facts_per_category=3)
    assert [fact.fact_id for fact in plan.facts] == first[1:]


@pytest.mark.req("MEM-07", "MEM-09")
async def test_a_plan_is_done_in_one_piece_and_undone_in_one(memory: Memory) -> None:
    hub, person = memory.as_hub(), memory.as_person()
    a, b, c, d = await _store(memory.as_(), "Likes tea", "Enjoys tea a lot", "Has a dgo", "Sold the boat")
    before = await _current(memory)
    actions = [
        {"kind": "merge", "fact_ids": [a, b], "fact": "Loves tea", "reason": "the same"},
        {"kind": "update", "fact_ids": [c], "fact": "Has a dog", "category": "background"},
        {"kind": "delete", "fact_ids": [d]},
    ]
    done = await hub("apply_tidy", actions=actions, planned_by="model")
    assert (done.retired, done.made, done.refused) == (4, 2, [])
    after = await _current(memory)
    assert sorted(after.values()) == ["Has a dog", "Loves tea"]
    merged = await person("explain_fact", fact_id=done.made_ids[0])
    assert (merged.source.kind, merged.source.merged) == ("tidy", [a, b])
    assert {one.retired_because for one in merged.earlier} == {"merged"}
    library = await memory.library()
    found = await library.search.search_facts(OWNER, "tea", 5)
    assert [hit.row_id for hit in found.hits][:1] == [done.made_ids[0]]
    listed = await person("list_changes")
    assert [(change.id, change.undone_at) for change in listed.changes] == [(done.change_id, None)]
    assert "1 × merge, 1 × update, 1 × delete (4 retired, 2 made)" in listed.to_text()
    undone = await person("undo_change")
    assert (undone.change_id, sorted(undone.restored_ids)) == (done.change_id, [a, b, c, d])
    assert await _current(memory) == before
    again = await library.search.search_facts(OWNER, "tea", 5)
    assert {hit.row_id for hit in again.hits} == {a, b}
    with pytest.raises(NotFound, match="no change to undo"):
        await person("undo_change")
    with pytest.raises(Conflict, match="undone already"):
        await person("undo_change", change_id=done.change_id)


@pytest.mark.req("TRU-03")
async def test_a_merged_fact_is_untrusted_as_soon_as_one_part_is(memory: Memory) -> None:
    (told,) = await _store(memory.as_(), "Likes tea")
    (read,) = await _store(memory.as_(**WEB), "Enjoys tea a lot")
    done = await memory.as_hub()(
        "apply_tidy", actions=[{"kind": "merge", "fact_ids": [told, read], "fact": "Loves tea"}]
    )
    fact = (await memory.as_()("explain_fact", fact_id=done.made_ids[0])).fact
    assert (fact.trust, fact.learnt_from) == ("untrusted", ["searcher_web_fetch"])


@pytest.mark.req("TRU-03", "MEM-09")
async def test_trusted_facts_are_not_given_up_for_an_untrusted_one_that_says_the_same(memory: Memory) -> None:
    (read,) = await _store(memory.as_(**WEB), "Loves tea")
    told = await _store(memory.as_(), "Likes tea", "Enjoys tea a lot")
    merge = {"kind": "merge", "fact_ids": told, "fact": "Loves tea"}
    done = await memory.as_hub()("apply_tidy", actions=[merge])
    (made,) = done.made_ids
    assert made != read
    assert (await memory.as_()("explain_fact", fact_id=made)).fact.trust == "trusted"
    (known,) = await _store(memory.as_(), "Sails on Sundays")
    more = await _store(memory.as_(**WEB), "Sails at weekends", "Sails on a Sunday")
    again = await memory.as_hub()(
        "apply_tidy", actions=[{"kind": "merge", "fact_ids": more, "fact": "Sails on Sundays"}]
    )
    assert again.made_ids == [], "what a person said says it already"
    assert (await memory.as_()("explain_fact", fact_id=known)).fact.trust == "trusted"


@pytest.mark.incident("I-30")
async def test_a_plan_with_one_wrong_id_changes_nothing(memory: Memory) -> None:
    call, hub = memory.as_(), memory.as_hub()
    a, b, gone = await _store(call, "Likes tea", "Enjoys tea a lot", "Sold the boat")
    (other,) = await _store(memory.as_("bob"), "Likes tea, too")
    await call("delete_fact", fact_id=gone)
    before = await _current(memory)
    good = {"kind": "merge", "fact_ids": [a, b], "fact": "Loves tea"}
    for wrong, error in (
        ({"kind": "delete", "fact_ids": [other]}, NotFound),
        ({"kind": "delete", "fact_ids": [999_999]}, NotFound),
        ({"kind": "delete", "fact_ids": [10**30]}, NotFound),
        ({"kind": "delete", "fact_ids": [gone]}, Conflict),
        ({"kind": "delete", "fact_ids": [a]}, InvalidArguments),
        ({"kind": "merge", "fact_ids": [other], "fact": "x y"}, InvalidArguments),
        ({"kind": "update", "fact_ids": [other]}, InvalidArguments),
        ({"kind": "delete", "fact_ids": [other], "fact": "x y"}, InvalidArguments),
        ({"kind": "update", "fact_ids": [other], "fact": "password: hunter2"}, NotAllowed),
    ):
        with pytest.raises(error, match=r"Nothing was (changed|stored)"):
            await hub("apply_tidy", actions=[good, wrong])
        assert await _current(memory) == before
    assert (await memory.as_person()("list_changes")).changes == []
    assert (await hub("apply_tidy", actions=[])).to_text() == "There was nothing to do."


@pytest.mark.incident("I-30")
async def test_nobody_sees_or_undoes_a_change_of_somebody_elses_facts(memory: Memory) -> None:
    ids = await _store(memory.as_(), "Likes tea", "Enjoys tea a lot")
    done = await memory.as_hub()("apply_tidy", actions=[{"kind": "merge", "fact_ids": ids, "fact": "Loves tea"}])
    after = await _current(memory)
    for other in (memory.as_person("bob"), memory.as_person("owner", "muse")):
        assert (await other("list_changes")).changes == []
        with pytest.raises(NotFound, match=f"There is no change {done.change_id}"):
            await other("undo_change", change_id=done.change_id)
        with pytest.raises(NotFound, match="There is no change to undo"):
            await other("undo_change")
    assert await _current(memory) == after
    assert (await memory.as_person()("undo_change")).change_id == done.change_id


async def test_a_text_that_is_known_already_is_not_made_twice(memory: Memory) -> None:
    hub, person = memory.as_hub(), memory.as_person()
    a, b, known = await _store(memory.as_(), "Likes tea", "Enjoys tea a lot", "Loves tea")
    done = await hub("apply_tidy", actions=[{"kind": "merge", "fact_ids": [a, b], "fact": "Loves tea."}])
    assert (done.retired_ids, done.made_ids) == ([a, b], [])
    assert set(await _current(memory)) == {known}
    await person("undo_change")
    assert set(await _current(memory)) == {a, b, known}


async def test_a_change_whose_facts_were_changed_since_is_not_undone(memory: Memory) -> None:
    hub, person, call = memory.as_hub(), memory.as_person(), memory.as_()
    a, b = await _store(call, "Likes tea", "Enjoys tea a lot")
    done = await hub("apply_tidy", actions=[{"kind": "merge", "fact_ids": [a, b], "fact": "Loves tea"}])
    newer = await call("update_fact", fact_id=done.made_ids[0], fact="Loves green tea")
    before = await _current(memory)
    with pytest.raises(Conflict, match=f"Fact {done.made_ids[0]}, which change {done.change_id} made, was changed"):
        await person("undo_change", change_id=done.change_id)
    assert await _current(memory) == before == {newer.fact_id: "Loves green tea"}
    (d,) = await _store(call, "Sold the boat")
    deleted = await hub("apply_tidy", actions=[{"kind": "delete", "fact_ids": [d]}])
    (again,) = await _store(call, "Sold the boat")
    with pytest.raises(Conflict, match=f"stored anew as fact {again}"):
        await person("undo_change")
    await person("list_changes")
    await call("delete_fact", fact_id=again)
    await person("restore_fact", fact_id=d)
    with pytest.raises(Conflict, match=f"Fact {d}, which change {deleted.change_id} retired, was changed"):
        await person("undo_change")
    with pytest.raises(NotFound, match="There is no change"):
        await memory.as_person("bob")("undo_change", change_id=done.change_id)


KILLED = """
import asyncio, json, sys
from pathlib import Path
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.lazy_memory import LazyMemory
from annabelle.servers.memory.server import assemble

url, home, ids = json.loads(sys.argv[1])
home = Path(home)
config = MemoryConfig(
    file=home / "memory.db", backups=home / "backups", export_folder=home / "export", workspace=home / "workspace",
    embedding_cache=home / "cache", embedding=EmbeddingConfig(), backup_hours=0, database_url=url,
)

async def main():
    server = assemble(LazyMemory(config))
    enter_call(Call(user_id="owner", agent_id="annabelle", caller="hub"))
    actions = [{"kind": "merge", "fact_ids": ids, "fact": "Loves tea"}]
    await server.tools["apply_tidy"].call({"actions": actions})

asyncio.run(main())
"""


@pytest.mark.req("MEM-07")
async def test_a_kill_in_the_middle_of_tidying_leaves_nothing_half_done(
    open_memory: MakeMemory, config, tmp_path: Path
) -> None:
    home = tmp_path / "killed"
    home.mkdir()
    memory = open_memory(config, file=home / "memory.db")
    ids = await _store(memory.as_(), "Likes tea", "Enjoys tea a lot")
    before = await _current(memory)
    await memory.close()
    (home / "points").mkdir()
    (home / "points" / "memory.half_tidied").touch()
    environment = {**os.environ, "ANNABELLE_FAILPOINTS": str(home / "points")}
    arguments = json.dumps([config.database_url, str(home), ids])
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, arguments],
        env=environment,
        capture_output=True,
        timeout=seconds(60),
    )
    assert killed.returncode == -9, killed.stderr
    again = open_memory(config, file=home / "memory.db")
    assert await _current(again) == before
    assert (await again.as_person()("list_changes")).changes == []
    done = await again.as_hub()("apply_tidy", actions=[{"kind": "merge", "fact_ids": ids, "fact": "Loves tea"}])
    assert await _current(again) == {done.made_ids[0]: "Loves tea"}
