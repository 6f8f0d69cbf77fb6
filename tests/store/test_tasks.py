"""Tasks in the store: one per id, one end, each person their own, and never too many at once."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from annabelle.core.errors import NotFound, TooManyRequests
from annabelle.store import tasks
from annabelle.store.database import Database
from annabelle.store.tasks import NewTask, StoredTask


def new(number: int, **fields: object) -> NewTask:
    values: dict[str, object] = {
        "id": f"task_{number}", "kind": "subagent", "user_id": "owner", "name": f"Task {number}",
        "request": {"n": number}, "agent_id": "annabelle", **fields,
    }  # fmt: skip
    return NewTask(**values)  # type: ignore[arg-type]


@pytest.mark.req("RTR-05")
async def test_the_same_id_is_the_same_task_and_its_first_end_stays(db: Database) -> None:
    first = await db.write(lambda conn: tasks.create_task(conn, new(1)))
    again = await db.write(lambda conn: tasks.create_task(conn, new(1, name="another")))
    assert again == first
    assert (first.state, first.open, first.request) == ("queued", True, {"n": 1})

    def live(conn: Connection) -> list[object]:
        return [
            tasks.begin_task(conn, "task_1"),
            tasks.begin_task(conn, "task_1"),
            tasks.finish_task(conn, "task_1", "done", {"text": "a"}),
            tasks.finish_task(conn, "task_1", "failed", {"text": "b"}),
            tasks.begin_task(conn, "task_1"),
        ]

    assert await db.write(live) == [True, False, True, False, False]
    ended = await db.read(lambda conn: tasks.load_task(conn, "task_1"))
    assert (ended.state, ended.result, ended.open) == ("done", {"text": "a"}, False)
    assert ended.finished_at is not None


@pytest.mark.req("AGT-04")
async def test_an_agent_has_only_so_many_at_once_and_a_repeat_counts_as_none(db: Database) -> None:
    for number in range(5):
        await db.write(lambda conn, number=number: tasks.create_task(conn, new(number), 5))
    with pytest.raises(TooManyRequests, match="5 at work"):
        await db.write(lambda conn: tasks.create_task(conn, new(5), 5))
    assert (await db.write(lambda conn: tasks.create_task(conn, new(0), 5))).id == "task_0"
    await db.write(lambda conn: tasks.create_task(conn, new(6, agent_id="other"), 5))
    await db.write(lambda conn: tasks.create_task(conn, new(7, kind="tool_call"), 5))
    await db.write(lambda conn: tasks.finish_task(conn, "task_0", "failed", {}))
    await db.write(lambda conn: tasks.create_task(conn, new(5), 5))
    unfinished = await db.read(tasks.list_unfinished_tasks)
    assert {task.id for task in unfinished} == {f"task_{number}" for number in (1, 2, 3, 4, 5, 6, 7)}


@pytest.mark.req("RTR-05")
async def test_a_task_is_found_by_its_own_person_only(db: Database) -> None:
    await db.write(lambda conn: tasks.create_task(conn, new(1)))
    await db.write(lambda conn: tasks.create_task(conn, new(2, user_id="bob")))

    def look(task_id: str, user_id: str) -> object:
        def read(conn: Connection) -> StoredTask:
            return tasks.get_task(conn, task_id, user_id)

        return db.read(read)

    assert (await look("task_2", "bob")).name == "Task 2"  # type: ignore[misc]
    for task_id, user_id in (("task_1", "bob"), ("task_3", "bob")):
        with pytest.raises(NotFound):
            await look(task_id, user_id)  # type: ignore[misc]
    assert [task.id for task in await db.read(lambda conn: tasks.list_tasks(conn, "bob"))] == ["task_2"]
