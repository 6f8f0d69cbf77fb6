"""To-do lists: checklists that people and tools both write."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotFound
from annabelle.core.messages import now
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.notes.markdown import parse_list
from annabelle.servers.notes.notes_folder import MarkdownFile
from annabelle.servers.notes.server import build
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


async def test_an_item_is_a_line_of_a_checklist(ask: CallTool, workspace: Path) -> None:
    added = await ask("add_todo", text="Buy milk", list="Groceries", due="2030-01-02", priority="high")
    text = (workspace / "Notes/Lists/Groceries.md").read_text()
    assert text == f"# Groceries\n\n- [ ] Buy milk (due 2030-01-02, high) <!-- {added.todo.id} -->\n"
    assert [todo.text for todo in (await ask("list_todos")).todos] == ["Buy milk"]


async def test_a_list_is_made_once(ask: CallTool) -> None:
    first = await ask("create_list", name="Work")
    assert first.path == "Notes/Lists/Work.md"
    assert "already" in (await ask("create_list", name="work")).message
    await ask("add_todo", text="One", list="WORK")
    await ask("add_todo", text="Two")
    lists = (await ask("list_lists")).lists
    assert [(one.name, one.open, one.done) for one in lists] == [("To-do", 1, 0), ("Work", 1, 0)]


async def test_items_are_chosen_by_list_state_and_day(ask: CallTool) -> None:
    await ask("add_todo", text="Late", due="2001-01-01")
    await ask("add_todo", text="Soon", due="2090-01-01", list="Other")
    await ask("add_todo", text="Whenever")
    done = await ask("add_todo", text="Done")
    await ask("complete_todo", todo=done.todo.id)

    async def texts(**wanted: object) -> list[str]:
        return [todo.text for todo in (await ask("list_todos", **wanted)).todos]

    assert await texts() == ["Late", "Soon", "Whenever"]
    assert await texts(list="other") == ["Soon"]
    assert await texts(status="done") == ["Done"]
    assert await texts(due_before="2050-01-01") == ["Late"]
    assert len(await texts(status="all")) == 4
    assert (await ask("list_todos")).todos[0].overdue
    page = await ask("list_todos", limit=2)
    assert [todo.text for todo in (await ask("list_todos", limit=2, page_token=page.next_page)).todos] == ["Whenever"]


async def test_an_item_is_changed_ticked_off_and_opened_again(ask: CallTool, workspace: Path) -> None:
    item = (await ask("add_todo", text="Call Ann", due="2030-01-01")).todo
    await ask("update_todo", todo=item.id, text="Call Ben", priority="low")
    await ask("update_todo", todo=item.id, due="none")
    file = workspace / "Notes/Lists/To-do.md"
    assert f"- [ ] Call Ben (low) <!-- {item.id} -->" in file.read_text()
    await ask("complete_todo", todo="call ben")
    today = now().date().isoformat()
    assert f"- [x] Call Ben (low, done {today}) <!-- {item.id} -->" in file.read_text()
    again = await ask("complete_todo", todo=item.id)
    assert again.backup is None, "nothing more to do"
    await ask("complete_todo", todo=item.id, done=False)
    assert f"- [ ] Call Ben (low) <!-- {item.id} -->" in file.read_text()
    with pytest.raises(InvalidArguments, match="Nothing is to be changed"):
        await ask("update_todo", todo=item.id)


async def test_a_deleted_item_leaves_the_list_as_it_was_behind(ask: CallTool, workspace: Path) -> None:
    await ask("add_todo", text="Stay")
    item = (await ask("add_todo", text="Go")).todo
    gone = await ask("delete_todo", todo=item.id)
    assert [todo.text for todo in (await ask("list_todos")).todos] == ["Stay"]
    assert "Go" in (workspace / gone.backup).read_text()
    with pytest.raises(NotFound):
        await ask("delete_todo", todo=item.id)


async def test_a_deleted_list_can_be_brought_back(ask: CallTool, workspace: Path) -> None:
    await ask("add_todo", text="Precious", list="Plans")
    gone = await ask("delete_list", list="plans")
    assert (await ask("list_lists")).lists == []
    (workspace / gone.trash).rename(workspace / gone.path)
    assert [todo.text for todo in (await ask("list_todos", list="Plans")).todos] == ["Precious"]
    with pytest.raises(NotFound, match="no list 'Nothing'"):
        await ask("delete_list", list="Nothing")


async def test_what_people_write_between_calls_is_respected(ask: CallTool, workspace: Path) -> None:
    item = (await ask("add_todo", text="Tool's", list="Shared")).todo
    file = workspace / "Notes/Lists/Shared.md"
    file.write_text(
        file.read_text() + "\nSome words of mine.\n\n* [ ] By hand\n  - [X] Under it (high)\n* [ ] By hand\n- no item\n"
    )
    todos = {todo.id: todo for todo in (await ask("list_todos", list="Shared", status="all")).todos}
    assert sorted(todo.text for todo in todos.values()) == ["By hand", "By hand", "Tool's", "Under it"]
    assert len(todos) == 4, "each has an id of its own"
    by_hand = [key for key, todo in todos.items() if todo.text == "By hand"]
    await ask("complete_todo", todo=by_hand[1])
    await ask("update_todo", todo=item.id, text="Ours")
    text = file.read_text()
    assert "\nSome words of mine.\n" in text
    assert f"* [ ] By hand <!-- {by_hand[0]} -->\n  - [X] Under it (high)" in text
    assert f"* [x] By hand (done {now().date().isoformat()}) <!-- {by_hand[1]} -->\n- no item\n" in text
    after = {todo.id for todo in (await ask("list_todos", list="Shared", status="all")).todos}
    assert after == todos.keys(), "ids stay, written down or not"
    with pytest.raises(NotFound):
        await ask("complete_todo", todo="words of mine")


async def test_items_nobody_changed_keep_all_that_people_wrote(ask: CallTool, workspace: Path) -> None:
    theirs = ["- [ ] Paint  it <!-- ask Ada -->", "* [X] Rent (due 2030-01-01, due 2030-02-01)"]
    file = workspace / "Notes/Lists/Home.md"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(["# Home", *theirs]))
    added = await ask("add_todo", text="Sweep", list="Home")
    await ask("complete_todo", todo=added.todo.id)
    lines = file.read_text().split("\n")
    assert [line.rpartition(" <!-- t-")[0] for line in lines[1:3]] == theirs
    assert lines[3].startswith("- [x] Sweep (done ")


async def test_items_of_one_text_are_told_apart(ask: CallTool) -> None:
    one = await ask("add_todo", text="Call", list="A")
    await ask("add_todo", text="Call", list="B")
    with pytest.raises(Conflict, match="Several items"):
        await ask("complete_todo", todo="call")
    await ask("complete_todo", todo=one.todo.id)
    assert (await ask("complete_todo", todo="call")).todo.list == "B"


async def test_many_items_at_once_from_two_servers_are_all_kept(ask: CallTool, config: FilesConfig) -> None:
    other = build(config)
    await asyncio.gather(
        *(ask("add_todo", text=f"a{number}", list="Busy") for number in range(10)),
        *(other.tools["add_todo"].call({"text": f"b{number}", "list": "Busy"}) for number in range(10)),
    )
    texts = sorted(todo.text for todo in (await ask("list_todos", list="Busy")).todos)
    assert texts == sorted(f"{letter}{number}" for letter in "ab" for number in range(10))
    assert len((await ask("list_lists")).lists) == 1


@pytest.mark.req("FST-05")
async def test_a_day_may_be_said_in_words(ask: CallTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_TIMEZONE", "Pacific/Kiritimati")
    tomorrow = (datetime.now(ZoneInfo("Pacific/Kiritimati")) + timedelta(days=1)).date()
    assert (await ask("add_todo", text="Call mum", due="tomorrow")).todo.due == tomorrow.isoformat()
    assert (await ask("add_todo", text="Renew", due="3 May 2090")).todo.due == "2090-05-03"
    assert (await ask("add_todo", text="Anrufen", due="morgen")).todo.due == tomorrow.isoformat()
    due = await ask("list_todos", due_before="in two days")
    assert [line.text for line in due.todos] == ["Call mum", "Anrufen"]
    with pytest.raises(InvalidArguments, match="no day that can be read; write it like"):
        await ask("add_todo", text="Never", due="when pigs fly")


@pytest.mark.parametrize("text", ["a <!-- t-00000000aa --> b", "two\nlines", "- [x] done?", "| # `code`", "😀 \u202e"])
async def test_any_text_stays_one_item(ask: CallTool, text: str) -> None:
    added = await ask("add_todo", text=text)
    todos = (await ask("list_todos", status="all")).todos
    assert [(todo.id, todo.done) for todo in todos] == [(added.todo.id, False)]


@pytest.mark.parametrize("arguments", [{"text": "\n"}, {"text": "x", "list": "##"}, {"text": "x", "due": "soon"}])
async def test_an_item_that_says_nothing_is_refused(ask: CallTool, arguments: dict[str, str]) -> None:
    with pytest.raises(AnnabelleError):
        await ask("add_todo", **arguments)


def test_very_many_items_alike_each_have_an_id_of_their_own() -> None:
    """Comparing each with all others would take hours; the test's own time limit is the bound."""
    found = parse_list(MarkdownFile("Notes/Lists/a.md", "a.md", "- [ ] x\n" * 50_000, now()))
    assert len({item.id for item in found.items}) == 50_000


@given(st.text(st.characters(exclude_characters="\r"), max_size=300))
def test_any_file_is_a_list_and_is_stable_once_written(text: str) -> None:
    first = parse_list(MarkdownFile("Notes/Lists/a.md", "a.md", text, now()))
    written = first.to_markdown()
    second = parse_list(MarkdownFile("Notes/Lists/a.md", "a.md", written, now()))
    assert [item.id for item in second.items] == [item.id for item in first.items]
    assert second.to_markdown() == written
